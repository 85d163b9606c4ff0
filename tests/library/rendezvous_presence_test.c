/* SPDX-License-Identifier: BSD-3-Clause */
/* Presence of a backend of the program's own: a node that vanishes is seen at once. Heartbeats
 * would take longer here than a test may. */
#include "unit.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library/rendezvous_fixture.h"

#define HEARTBEATS_SECONDS 3600
#define MOST_RECORD 4096
#define MOST_NAME 300

/* What two processes share: a record, which one of them changes at a time, and who is present. */
struct shared {
    int version;
    size_t length;
    char state[MOST_RECORD];
    char names[2][MOST_NAME];
};

/* One of the two processes. Each end of the line becomes readable when the other has changed
 * something, and ends when the other process does. */
struct side {
    struct shared *shared;
    int number;
    int line; /* the end of this side */
    int lock; /* one byte in a socket, taken by whoever has it */
    int lock_back;
    int watch; /* of `line`, until the other has ended */
    bool is_alone;
};

static void lock(const struct side *side) {
    char byte;
    assert_int_equal(read(side->lock, &byte, 1), 1);
}

static void unlock(const struct side *side) {
    assert_int_equal(write(side->lock_back, "l", 1), 1);
}

static void tell_other(const struct side *side) {
    (void)send(side->line, "c", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void show(const struct side *side, struct muster_rendezvous_record *record) {
    static char state[MOST_RECORD]; /* what is in the record may change afterwards */
    static int version;
    memcpy(state, side->shared->state, side->shared->length);
    version = side->shared->version;
    record->exists = version > 0;
    record->state = state;
    record->state_length = side->shared->length;
    record->token = &version;
    record->token_length = sizeof version;
}

static enum muster_error get_shared(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    const struct side *side = context;
    (void)failure;
    lock(side);
    show(side, record);
    unlock(side);
    return MUSTER_OK;
}

static enum muster_error set_shared(void *context, const void *state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    const struct side *side = context;
    struct shared *shared = side->shared;
    int expected = 0;
    (void)failure;
    lock(side);
    if (token_length == sizeof expected) {
        memcpy(&expected, token, sizeof expected);
    }
    if (expected == shared->version && length <= sizeof shared->state) {
        memcpy(shared->state, state, length);
        shared->length = length;
        shared->version++;
        record->is_set = 1;
    }
    show(side, record);
    unlock(side);
    if (record->is_set) {
        tell_other(side);
    }
    return MUSTER_OK;
}

static enum muster_error be_present(
    void *context, const char *node, struct muster_failure *failure) {
    struct side *side = context;
    (void)failure;
    snprintf(side->shared->names[side->number], MOST_NAME, "%s", node != NULL ? node : "");
    tell_other(side);
    return MUSTER_OK;
}

/* A name that was there, and whose process is not, or has given it up. */
static int is_gone(void *context, const char *node) {
    const struct side *side = context;
    const char *other = side->shared->names[1 - side->number];
    return *node != '\0' && (side->is_alone || *other == '\0');
}

static void changed(void *context) {
    struct side *side = context;
    char bytes[64];
    if (recv(side->line, bytes, sizeof bytes, MSG_DONTWAIT) == 0) {
        side->is_alone = true;
        (void)epoll_ctl(side->watch, EPOLL_CTL_DEL, side->line, NULL);
    }
}

static void open_side(struct side *side, struct fixture *fixture) {
    struct epoll_event event = {.events = EPOLLIN};
    side->watch = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(epoll_ctl(side->watch, EPOLL_CTL_ADD, side->line, &event), 0);
    fixture->backend = (struct muster_rendezvous_backend)MUSTER_RENDEZVOUS_BACKEND;
    fixture->backend.get_state = get_shared;
    fixture->backend.set_state = set_shared;
    fixture->backend.present = be_present;
    fixture->backend.is_gone = is_gone;
    fixture->backend.has_watch = 1;
    fixture->backend.watch_fd = side->watch;
    fixture->backend.changed = changed;
    fixture->backend.context = side;
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 2);
    settings.endpoint = NULL;
    settings.backend = &fixture->backend;
    settings.keep_alive_interval = HEARTBEATS_SECONDS;
    settings.last_call_timeout = HEARTBEATS_SECONDS; /* the round is complete with both */
    ask(add_node(fixture, &settings));
}

static void close_side(struct side *side) {
    close(side->line);
    close(side->lock);
    close(side->lock_back);
    close(side->watch);
}

static void make_sides(struct side sides[2]) {
    int lines[2];
    int locks[2];
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, lines), 0);
    assert_int_equal(pipe(locks), 0);
    for (int i = 0; i < 2; i++) {
        sides[i] = (struct side){.shared = shared,
            .number = i,
            .line = lines[i],
            .lock = i == 0 ? locks[0] : dup(locks[0]),
            .lock_back = i == 0 ? locks[1] : dup(locks[1])};
    }
    unlock(&sides[0]);
}

/* The child: a node that runs until it is killed. */
static void live(struct side *side) {
    struct fixture fixture = {.count = 0};
    open_side(side, &fixture);
    for (;;) {
        turn(&fixture);
    }
}

TEST(killed_node_is_seen_at_once) {
    struct fixture fixture = {.count = 0};
    struct side sides[2];
    int status;
    make_sides(sides);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close_side(&(struct side){
            sides[0].shared, 0, sides[0].line, sides[0].lock, sides[0].lock_back, -1, false});
        live(&sides[1]);
    }
    close(sides[1].line);
    open_side(&sides[0], &fixture);
    struct seen *one = &fixture.nodes[0];
    await_round(&fixture, one, 1);
    assert_int_equal(one->info.world_size, 2);
    lock(&sides[0]); /* it does not die with the lock */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    unlock(&sides[0]);
    await(&fixture, &one->rounds_over, 1);
    assert_non_null(strstr(one->reason, "is gone"));
    drop(one);
    close(sides[1].lock);
    close(sides[1].lock_back);
    close_side(&sides[0]);
    (void)munmap(sides[0].shared, sizeof *sides[0].shared);
}

static enum muster_error be_absent(
    void *context, const char *node, struct muster_failure *failure) {
    (void)context;
    (void)node;
    snprintf(failure->message, sizeof failure->message, "no lease");
    return MUSTER_ERROR_SYSTEM;
}

static int is_never_gone(void *context, const char *node) {
    (void)context;
    (void)node;
    return 0;
}

static void log_of_node(void *context, int level, const char *origin, const char *message) {
    struct seen *seen = context;
    (void)origin;
    if (level >= 30) {
        snprintf(seen->reason, sizeof seen->reason, "%s", message);
    }
}

TEST(node_that_is_freed_is_seen_at_once) {
    struct fixture fixture = {.count = 0};
    struct side sides[2];
    make_sides(sides);
    open_side(&sides[0], &fixture);
    open_side(&sides[1], &fixture);
    await_round(&fixture, &fixture.nodes[0], 1);
    await_round(&fixture, &fixture.nodes[1], 1);
    drop(&fixture.nodes[1]);
    await(&fixture, &fixture.nodes[0].rounds_over, 1);
    assert_non_null(strstr(fixture.nodes[0].reason, "is gone"));
    drop(&fixture.nodes[0]);
    assert_string_equal(sides[0].shared->names[0], "");
    close_side(&sides[0]);
    close_side(&sides[1]);
    (void)munmap(sides[0].shared, sizeof *sides[0].shared);
}

FIXTURE_TEST(node_that_cannot_be_present_says_so_and_goes_on) {
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 1);
    struct muster_rendezvous_backend backend = fixture->backend; /* the record is in memory */
    backend.present = be_absent;
    backend.is_gone = is_never_gone;
    settings.endpoint = NULL;
    settings.backend = &backend;
    settings.log = log_of_node;
    struct seen *one = add_node(fixture, &settings);
    ask(one);
    await_round(fixture, one, 1);
    assert_non_null(strstr(one->reason, "this node is not present"));
    assert_non_null(strstr(one->reason, "no lease"));
}
