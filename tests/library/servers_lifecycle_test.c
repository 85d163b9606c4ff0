/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers of probes and of local timers: several at once, freed in every state, and made so often
 * that whatever is left behind would be seen. lifecycle_test has the stores and timer servers. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <muster/health.h>
#include <muster/local_timer.h>

#include "host/raw_client.h"
#include "library/process_look.h"

#define CYCLES 10000
#define WARM_CYCLES 1000
/* Less than a byte for each further cycle would be more than this. */
#define GROWTH_BYTES (1 << 20)
#define LONG_TIME 3600.0

/* Probes. */

static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

static int64_t alive(void *context) {
    return (int64_t)time(NULL) - *(const int *)context;
}

static struct muster_health_server *serve(int *silent_seconds) {
    struct muster_health_settings settings = MUSTER_HEALTH_SETTINGS;
    struct muster_health_server *server = NULL;
    settings.alive = alive;
    settings.context = silent_seconds;
    settings.address = "127.0.0.1";
    enum muster_error error = muster_health_server_new(&settings, &server, NULL);
    if (error == MUSTER_ERROR_MISSING) {
        SKIP_BECAUSE("libmicrohttpd is not installed");
    }
    assert_int_equal(error, MUSTER_OK);
    return server;
}

static void process_ready(struct muster_health_server *server, int client) {
    struct pollfd places[2] = {{.fd = muster_health_server_fd(server), .events = POLLIN},
        {.fd = client, .events = POLLIN}};
    assert_true(poll(places, 2, -1) > 0);
    if (places[0].revents != 0) {
        assert_int_equal(muster_health_server_process(server, NULL), MUSTER_OK);
    }
}

/* The status of the answer that comes. */
static int status_of(struct muster_health_server *server, int client) {
    char answer[1024] = {0};
    ssize_t length = -1;
    int status = 0;
    while (length < 0) {
        process_ready(server, client);
        length = recv(client, answer, sizeof answer - 1, MSG_DONTWAIT);
    }
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d ", &status), 1);
    return status;
}

TEST(two_servers_answer_each_for_itself) {
    int silences[2] = {0, 3600};
    int clients[2];
    struct muster_health_server *servers[2];
    for (int i = 0; i < 2; i++) {
        servers[i] = serve(&silences[i]);
        clients[i] = client_connect(muster_health_server_port(servers[i]));
        client_send(clients[i], request, sizeof request - 1);
    }
    assert_int_equal(status_of(servers[1], clients[1]), 503);
    assert_int_equal(status_of(servers[0], clients[0]), 200);
    for (int i = 0; i < 2; i++) {
        close(clients[i]);
        muster_health_server_free(servers[i]);
    }
}

TEST(a_client_that_goes_raises_no_signal) {
    int silence = 0;
    const struct linger none = {.l_onoff = 1};
    assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
    struct muster_health_server *server = serve(&silence);
    for (int i = 0; i < 20; i++) {
        int client = client_connect(muster_health_server_port(server));
        client_send(client, request, sizeof request - 1);
        setsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof none); /* a reset, not an end */
        for (int turns = 0; turns < i % 4; turns++) {
            assert_int_equal(muster_health_server_process(server, NULL), MUSTER_OK);
        }
        close(client);
    }
    int client = client_connect(muster_health_server_port(server));
    client_send(client, request, sizeof request - 1);
    assert_int_equal(status_of(server, client), 200);
    close(client);
    muster_health_server_free(server);
}

/* Its client is connecting, has asked half, has asked, is answered; all are closed. */
TEST(a_health_server_is_freed_in_every_state) {
    const size_t lengths[] = {0, 10, sizeof request - 1};
    int silence = 0;
    for (int round = 0; round < 3 * 4; round++) {
        char rest[1024];
        struct muster_health_server *server = serve(&silence);
        int client = client_connect(muster_health_server_port(server));
        client_send(client, request, lengths[round % 3]);
        for (int turns = 0; turns < round / 3; turns++) {
            assert_int_equal(muster_health_server_process(server, NULL), MUSTER_OK);
        }
        muster_health_server_free(server);
        while (recv(client, rest, sizeof rest, 0) > 0) { /* ends, or is reset */
        }
        close(client);
    }
}

/* Local timers. */

struct timers {
    struct muster_local_timer_queue *queue;
    struct muster_local_timer_server *server;
};

static struct timers make_timers(void) {
    struct timers timers = {.queue = muster_local_timer_queue_new()};
    timers.server = muster_local_timer_server_new(timers.queue);
    assert_non_null(timers.server);
    return timers;
}

static void free_timers(struct timers timers) {
    muster_local_timer_server_free(timers.server);
    muster_local_timer_queue_free(timers.queue);
}

static pid_t start_holder(struct timers timers, double seconds) {
    pid_t child = fork();
    if (child == 0) {
        if (muster_local_timer_acquire(timers.queue, "scope", seconds) != 0) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    return child;
}

static void expect_end(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(two_servers_end_their_own_children) {
    struct timers timers[2] = {make_timers(), make_timers()};
    pid_t patient = start_holder(timers[0], LONG_TIME);
    pid_t late = start_holder(timers[1], 0);
    while (muster_local_timer_serve(timers[1].server, LONG_TIME, NULL) == 0) {
    }
    expect_end(late);
    while (muster_local_timer_count(timers[0].server) == 0) {
        assert_int_equal(muster_local_timer_serve(timers[0].server, LONG_TIME, NULL), 0);
    }
    assert_int_equal(muster_local_timer_count(timers[1].server), 0);
    kill(patient, SIGKILL);
    expect_end(patient);
    free_timers(timers[0]);
    free_timers(timers[1]);
}

/* With a request that nobody has read, and with a timer that is held: nobody is ended. */
TEST(a_local_timer_server_is_freed_in_every_state) {
    for (int is_read = 0; is_read < 2; is_read++) {
        struct timers timers = make_timers();
        pid_t holder = start_holder(timers, LONG_TIME);
        struct pollfd place = {.fd = muster_local_timer_server_fd(timers.server), .events = POLLIN};
        assert_int_equal(poll(&place, 1, -1), 1);
        while (is_read && muster_local_timer_count(timers.server) == 0) {
            muster_local_timer_serve(timers.server, LONG_TIME, NULL);
        }
        free_timers(timers);
        assert_int_equal(waitpid(holder, NULL, WNOHANG), 0);
        kill(holder, SIGKILL);
        expect_end(holder);
    }
}

TEST(a_child_frees_nothing_of_its_parents) {
    struct timers timers = make_timers();
    int status;
    pid_t child = fork();
    if (child == 0) {
        muster_local_timer_server_free(timers.server);
        muster_local_timer_queue_free(timers.queue); /* its own copy */
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pid_t late = start_holder(timers, 0);
    while (muster_local_timer_serve(timers.server, LONG_TIME, NULL) == 0) {
    }
    expect_end(late);
    free_timers(timers);
}

TEST(ten_thousand_of_each_leave_nothing_behind) {
    long warm = 0;
    int silence = 0;
    struct muster_health_server *first = serve(&silence); /* libmicrohttpd stays loaded */
    size_t before = process_descriptors();
    int cycles = PROCESS_IS_SANITIZED ? WARM_CYCLES : CYCLES; /* one would show a leak there */
    for (int i = 0; i < cycles; i++) {
        muster_health_server_free(serve(&silence));
        struct timers timers = make_timers();
        assert_int_equal(muster_local_timer_acquire(timers.queue, "scope", LONG_TIME), 0);
        free_timers(timers);
        if (i == WARM_CYCLES) {
            warm = process_resident_bytes();
        }
    }
    assert_int_equal(process_descriptors(), before);
    muster_health_server_free(first);
    if (!PROCESS_IS_SANITIZED) { /* they keep what was freed */
        assert_true(process_resident_bytes() - warm < GROWTH_BYTES);
    }
}
