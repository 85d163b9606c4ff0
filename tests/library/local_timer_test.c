/* SPDX-License-Identifier: BSD-3-Clause */
/* Real children of this process; the library as other programs have it. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "muster/local_timer.h"

#define LONG_TIME 3600.0

struct fixture {
    struct muster_local_timer_queue *queue;
    struct muster_local_timer_server *server;
    struct muster_local_timer_observer observer;
    struct muster_local_timer_expiry ended;
    int refused;
    int error;
};

static void note_end(void *context, const struct muster_local_timer_expiry *expiry) {
    struct fixture *fixture = context;
    fixture->ended = *expiry;
}

static void note_refusal(
    void *context, const struct muster_local_timer_request *request, int error) {
    struct fixture *fixture = context;
    assert_string_equal(request->scope, "theirs");
    fixture->refused++;
    fixture->error = error;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.observer = {note_end, note_refusal, fixture}};
    fixture->queue = muster_local_timer_queue_new();
    assert_non_null(fixture->queue);
    fixture->server = muster_local_timer_server_new(fixture->queue);
}

static void tear_down(struct fixture *fixture) {
    muster_local_timer_server_free(fixture->server);
    muster_local_timer_queue_free(fixture->queue);
}

static size_t serve(struct fixture *fixture) {
    return muster_local_timer_serve(fixture->server, LONG_TIME, &fixture->observer);
}

static void serve_until_held(struct fixture *fixture, size_t count) {
    while (muster_local_timer_count(fixture->server) != count) {
        serve(fixture);
    }
}

/* A child that holds the timer and stays, until it is ended. */
static pid_t start_holder(struct fixture *fixture, const char *scope, double seconds) {
    pid_t child = fork();
    if (child == 0) {
        if (muster_local_timer_acquire(fixture->queue, scope, seconds) != 0) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    return child;
}

static void expect_killed(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static double wall_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

FIXTURE_TEST(an_expired_timer_ends_its_child_when_it_is_due) {
    double before = wall_clock();
    pid_t hanging = start_holder(fixture, "hangs", 0.02);
    pid_t patient = start_holder(fixture, "waits", LONG_TIME);
    while (serve(fixture) == 0) {
    }
    assert_true(wall_clock() >= before + 0.02);
    expect_killed(hanging);
    assert_int_equal(fixture->ended.pid, hanging);
    assert_string_equal(fixture->ended.scope, "hangs");
    assert_int_equal(kill(patient, 0), 0);
    serve_until_held(fixture, 1);
    kill(patient, SIGKILL);
    expect_killed(patient);
    muster_local_timer_clear(fixture->server, patient);
    assert_int_equal(muster_local_timer_count(fixture->server), 0);
}

FIXTURE_TEST(what_is_released_in_time_ends_nobody) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        bool is_asked = muster_local_timer_acquire(fixture->queue, "s", 0) == 0 &&
                        muster_local_timer_release(fixture->queue, "s") == 0;
        _exit(is_asked ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(muster_local_timer_queue_size(fixture->queue), 2);
    assert_int_equal(serve(fixture), 0);
    assert_int_equal(fixture->refused, 0); /* it has ended, which is no mistake */
    assert_int_equal(muster_local_timer_count(fixture->server), 0);
}

FIXTURE_TEST(a_process_that_is_no_descendant_is_refused) {
    struct muster_local_timer_expiry expiry;
    const struct {
        long pid;
        int error;
    } strangers[] = {{1, EPERM}, {getppid(), EPERM}, {getpid(), EPERM}, {0, ESRCH}, {-1, ESRCH},
        {INT32_MAX, ESRCH}, {LONG_MAX, ESRCH}};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        const struct muster_local_timer_request request = {strangers[i].pid, "theirs", 1};
        assert_int_equal(muster_local_timer_register(fixture->server, &request), -1);
        assert_int_equal(errno, strangers[i].error);
    }
    assert_int_equal(muster_local_timer_count(fixture->server), 0);
    assert_int_equal(muster_local_timer_expired(fixture->server, &expiry), 0);
}

FIXTURE_TEST(a_round_tells_of_refusals) {
    assert_int_equal(muster_local_timer_acquire(fixture->queue, "theirs", 0), 0); /* of nobody */
    assert_int_equal(serve(fixture), 0);
    assert_int_equal(fixture->refused, 1);
    assert_int_equal(fixture->error, EPERM);
    assert_int_equal(muster_local_timer_acquire(fixture->queue, "theirs", 0), 0);
    assert_int_equal(muster_local_timer_serve(fixture->server, 0, NULL), 0);
}

static void take_in(void *context, const struct muster_local_timer_request *request) {
    assert_true(request->expiration <= wall_clock());
    assert_int_equal(muster_local_timer_register(context, request), 0);
}

FIXTURE_TEST(a_program_may_see_to_the_processes_itself) {
    struct muster_local_timer_expiry expiry;
    pid_t child = start_holder(fixture, "s", 0);
    assert_int_equal(
        muster_local_timer_queue_get(fixture->queue, 1, LONG_TIME, take_in, fixture->server), 1);
    assert_int_equal(muster_local_timer_expired(fixture->server, &expiry), 1);
    assert_int_equal(expiry.pid, child);
    assert_string_equal(expiry.scope, "s");
    assert_int_equal(muster_local_timer_expired(fixture->server, &expiry), 0);
    struct muster_local_timer_expiry earlier = expiry;
    earlier.start_time--; /* another process, which had this pid before */
    assert_int_equal(muster_local_timer_reap(fixture->server, &earlier), 0);
    assert_int_equal(kill(child, 0), 0);
    assert_int_equal(muster_local_timer_reap(fixture->server, &expiry), 0);
    expect_killed(child);
    assert_int_equal(muster_local_timer_reap(fixture->server, &expiry), 0); /* it is gone */
    assert_int_equal(muster_local_timer_count(fixture->server), 0);
}

FIXTURE_TEST(what_cannot_be_asked_for_is_refused) {
    char scope[MUSTER_LOCAL_TIMER_SCOPE_SIZE + 2];
    memset(scope, 's', sizeof scope);
    scope[sizeof scope - 1] = '\0';
    const struct muster_local_timer_request request = {getpid(), scope, 1};
    assert_int_equal(muster_local_timer_acquire(fixture->queue, scope, 1), -1);
    assert_int_equal(errno, EMSGSIZE);
    assert_int_equal(muster_local_timer_register(fixture->server, &request), -1);
    assert_int_equal(errno, EMSGSIZE);
    scope[sizeof scope - 2] = '\0';
    assert_int_equal(muster_local_timer_acquire(fixture->queue, scope, 1), 0);
    const double lengths[] = {-1, 1e10, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(muster_local_timer_acquire(fixture->queue, "s", lengths[i]), -1);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(muster_local_timer_queue_size(fixture->queue), 1);
}

/* A queue of the program's own, over a socket. */

struct own_queue {
    int ends[2]; /* from where it is read, and to where it is written */
    int refusal; /* what `put` answers, or 0 */
};

struct packet {
    long pid;
    double expiration;
    char scope[16];
};

static int put_packet(void *context, const struct muster_local_timer_request *request) {
    const struct own_queue *own = context;
    struct packet packet = {request->pid, request->expiration, ""};
    if (own->refusal != 0) {
        return own->refusal;
    }
    strncpy(packet.scope, request->scope, sizeof packet.scope - 1);
    return send(own->ends[1], &packet, sizeof packet, 0) == (ssize_t)sizeof packet ? 0 : errno;
}

static size_t get_packets(void *context, size_t count, double timeout,
    void (*visit)(void *context, const struct muster_local_timer_request *request), void *visitor) {
    const struct own_queue *own = context;
    struct pollfd polled = {.fd = own->ends[0], .events = POLLIN};
    struct packet packet;
    size_t taken = 0;
    (void)poll(&polled, 1, timeout > 0 ? (int)(timeout * 1000) + 1 : 0);
    while (taken < count &&
           recv(own->ends[0], &packet, sizeof packet, MSG_DONTWAIT) == (ssize_t)sizeof packet) {
        const struct muster_local_timer_request request = {
            packet.pid, packet.scope, packet.expiration};
        visit(visitor, &request);
        taken++;
    }
    return taken;
}

static void set_up_own(struct fixture *fixture, struct own_queue *own) {
    *fixture = (struct fixture){.observer = {note_end, note_refusal, fixture}};
    *own = (struct own_queue){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own->ends), 0);
    const struct muster_local_timer_queue_functions functions = {
        .put = put_packet, .get = get_packets, .fd = own->ends[0], .context = own};
    fixture->queue = muster_local_timer_queue_over(&functions);
    assert_non_null(fixture->queue);
    fixture->server = muster_local_timer_server_new(fixture->queue);
    assert_non_null(fixture->server);
}

static void tear_down_own(struct fixture *fixture, const struct own_queue *own) {
    tear_down(fixture);
    close(own->ends[0]);
    close(own->ends[1]);
}

TEST(a_queue_of_ones_own_carries_what_children_ask_for) {
    struct fixture fixture;
    struct own_queue own;
    set_up_own(&fixture, &own);
    pid_t hanging = start_holder(&fixture, "hangs", 0.02);
    pid_t patient = start_holder(&fixture, "waits", LONG_TIME);
    while (serve(&fixture) == 0) {
    }
    expect_killed(hanging);
    assert_int_equal(fixture.ended.pid, hanging);
    assert_string_equal(fixture.ended.scope, "hangs");
    serve_until_held(&fixture, 1);
    kill(patient, SIGKILL);
    expect_killed(patient);
    tear_down_own(&fixture, &own);
}

TEST(a_queue_of_ones_own_can_be_polled_and_takes_releases) {
    struct fixture fixture;
    struct own_queue own;
    set_up_own(&fixture, &own);
    struct pollfd polled = {.fd = muster_local_timer_server_fd(fixture.server), .events = POLLIN};
    assert_int_equal(poll(&polled, 1, 0), 0);
    pid_t child = start_holder(&fixture, "held", LONG_TIME);
    assert_int_equal(poll(&polled, 1, -1), 1);
    serve_until_held(&fixture, 1);
    const struct muster_local_timer_request release = {child, "held", -1};
    assert_int_equal(put_packet(&own, &release), 0);
    serve_until_held(&fixture, 0);
    kill(child, SIGKILL);
    expect_killed(child);
    tear_down_own(&fixture, &own);
}

TEST(a_queue_of_ones_own_says_why_it_takes_nothing) {
    struct fixture fixture;
    struct own_queue own;
    set_up_own(&fixture, &own);
    own.refusal = EHOSTDOWN;
    assert_int_equal(muster_local_timer_acquire(fixture.queue, "s", 1), -1);
    assert_int_equal(errno, EHOSTDOWN);
    assert_int_equal(muster_local_timer_release(fixture.queue, "s"), -1);
    assert_int_equal(errno, EHOSTDOWN);
    assert_int_equal(muster_local_timer_scope_begin(fixture.queue, "s", 1).error, EHOSTDOWN);
    assert_int_equal(muster_local_timer_serve(fixture.server, 0, NULL), 0);
    tear_down_own(&fixture, &own);
}
