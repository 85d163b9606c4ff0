/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/timer_server.h as a program sees it: requests through a real FIFO, and misuse. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <muster/timer_server.h>

#define LONG_MILLISECONDS 60000
#define FAR_SECONDS 4e9 /* in the year 2096 */

struct fixture {
    char directory[32];
    char path[64];
    struct muster_timer_server *server;
    /* what the callbacks were told */
    int started;
    int stopped;
    int expired;
    int signalled;
    int logged;
    int killed;      /* calls of `kill` */
    int refusals;    /* so often `kill` says that it could not */
    long pid;        /* of the last event */
    char scopes[64]; /* of the last event */
    int may_ask;
    bool frees; /* from inside the callback */
};

static void take_event(void *context, const struct muster_timer_event *event) {
    struct fixture *fixture = context;
    fixture->started += event->kind == MUSTER_TIMER_SERVER_STARTED;
    fixture->stopped += event->kind == MUSTER_TIMER_SERVER_STOPPED;
    fixture->expired += event->kind == MUSTER_TIMER_EXPIRED;
    fixture->signalled += event->kind == MUSTER_TIMER_SIGNALLED;
    fixture->pid = event->pid;
    fixture->scopes[0] = '\0';
    for (size_t i = 0; i < event->count; i++) {
        assert_true(event->expirations[i] < FAR_SECONDS);
        strncat(fixture->scopes, event->scopes[i],
            sizeof fixture->scopes - 1 - strlen(fixture->scopes));
        strncat(fixture->scopes, " ", sizeof fixture->scopes - 1 - strlen(fixture->scopes));
    }
    if (fixture->frees && event->kind == MUSTER_TIMER_SIGNALLED) {
        assert_int_equal(muster_timer_server_process(fixture->server, NULL), MUSTER_ERROR_STATE);
        muster_timer_server_free(fixture->server);
        fixture->server = NULL;
    }
}

static int may_ask(void *context, long pid) {
    const struct fixture *fixture = context;
    assert_true(pid > 0);
    return fixture->may_ask;
}

static int pretend_to_kill(
    void *context, long pid, unsigned long long start_time, int signal_number) {
    struct fixture *fixture = context;
    assert_int_equal(pid, getpid());
    assert_true(start_time > 0);
    assert_int_equal(signal_number, SIGTERM);
    fixture->killed++;
    return fixture->killed > fixture->refusals;
}

static void write_log(void *context, int level, const char *origin, const char *message) {
    struct fixture *fixture = context;
    assert_true(level >= 10 && level <= 50 && origin != NULL && message != NULL);
    fixture->logged++;
}

/* This process asks for the timers itself, and only pretends to be ended. */
static void set_up(struct fixture *fixture) {
    struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
    *fixture = (struct fixture){.may_ask = 1};
    snprintf(fixture->directory, sizeof fixture->directory, "/tmp/muster-timer-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof fixture->path, "%s/timers", fixture->directory);
    settings.path = fixture->path;
    settings.may_ask = may_ask;
    settings.kill = pretend_to_kill;
    settings.event = take_event;
    settings.log = write_log;
    settings.context = fixture;
    assert_int_equal(muster_timer_server_new(&settings, &fixture->server, NULL), MUSTER_OK);
}

static void tear_down(struct fixture *fixture) {
    muster_timer_server_free(fixture->server);
    assert_int_equal(rmdir(fixture->directory), 0); /* the FIFO and the socket are gone */
}

static void start(struct fixture *fixture) {
    assert_int_equal(muster_timer_server_start(fixture->server, NULL), MUSTER_OK);
}

static void ask(
    const struct fixture *fixture, const char *scope, double expiration, int signal_number) {
    char line[256];
    int length = snprintf(line, sizeof line,
        "{\"pid\": %d, \"scope_id\": \"%s\", \"expiration_time\": %f, \"signal\": %d}\n",
        (int)getpid(), scope, expiration, signal_number);
    int fd = open(fixture->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, (size_t)length), length);
    close(fd);
}

/* One turn of the program's own loop. */
static void turn(const struct fixture *fixture) {
    struct pollfd poll_fd = {.fd = muster_timer_server_fd(fixture->server), .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, LONG_MILLISECONDS), 1);
    assert_int_equal(muster_timer_server_process(fixture->server, NULL), MUSTER_OK);
}

static size_t count(const struct fixture *fixture) {
    size_t timers = 99;
    assert_int_equal(muster_timer_server_count(fixture->server, &timers, NULL), MUSTER_OK);
    return timers;
}

FIXTURE_TEST(expired_timer_calls_the_programs_own_kill) {
    start(fixture);
    assert_int_equal(fixture->started, 1);
    ask(fixture, "batch", 1, SIGTERM);
    while (fixture->signalled == 0) {
        turn(fixture);
    }
    assert_int_equal(fixture->killed, 1);
    assert_int_equal(fixture->expired, 1); /* and was told before the signal */
    assert_int_equal(fixture->pid, getpid());
    assert_string_equal(fixture->scopes, "batch ");
    assert_int_equal(count(fixture), 0);
}

FIXTURE_TEST(process_that_cannot_be_ended_is_tried_again) {
    double progress = 0;
    fixture->refusals = 1;
    start(fixture);
    ask(fixture, "batch", 1, SIGTERM);
    while (fixture->killed == 0) {
        turn(fixture);
    }
    double now = (double)time(NULL);
    assert_int_equal(
        muster_timer_server_last_progress_time(fixture->server, &progress, NULL), MUSTER_OK);
    assert_true(progress <= now + 2); /* time() lags behind, by milliseconds */
    while (fixture->signalled == 0) {
        turn(fixture);
    }
    assert_int_equal(fixture->killed, 2);
    assert_true(fixture->logged > 0);
}

FIXTURE_TEST(timer_without_a_signal_is_only_told) {
    start(fixture);
    ask(fixture, "batch", 1, 0);
    while (fixture->expired == 0) {
        turn(fixture);
    }
    assert_int_equal(fixture->killed, 0);
    assert_int_equal(fixture->signalled, 0);
}

static void list_scope(void *context, const struct muster_timer_request *timer) {
    char *scopes = context;
    assert_int_equal(timer->pid, getpid());
    strcat(scopes, timer->scope);
    strcat(scopes, " ");
}

/* register_timers and get_expired_timers. */
FIXTURE_TEST(program_registers_timers_itself) {
    char scopes[64] = "";
    assert_int_equal(
        muster_timer_server_register(fixture->server, getpid(), "late", FAR_SECONDS - 1, 0, NULL),
        MUSTER_ERROR_STATE);
    start(fixture);
    assert_int_equal(
        muster_timer_server_register(fixture->server, getpid(), "late", FAR_SECONDS - 1, 0, NULL),
        MUSTER_OK);
    assert_int_equal(
        muster_timer_server_register(fixture->server, getpid(), "soon", FAR_SECONDS - 9, 0, NULL),
        MUSTER_OK);
    assert_int_equal(muster_timer_server_each_expired(
                         fixture->server, FAR_SECONDS - 9, list_scope, scopes, NULL),
        MUSTER_OK);
    assert_string_equal(scopes, "soon ");
    assert_int_equal(
        muster_timer_server_register(fixture->server, getpid(), "late", -1, 0, NULL), MUSTER_OK);
    assert_int_equal(count(fixture), 1);
    assert_int_equal(
        muster_timer_server_register(fixture->server, getpid(), "batch", 1, SIGTERM, NULL),
        MUSTER_OK);
    while (fixture->signalled == 0) {
        turn(fixture);
    }
    assert_string_equal(fixture->scopes, "batch ");
}

TEST(process_that_runs_is_told_from_one_that_does_not) {
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(muster_timer_is_process_running(getpid()), 1);
    assert_int_equal(muster_timer_is_process_running(child), 0);
}

FIXTURE_TEST(who_may_not_ask_gets_no_timer) {
    fixture->may_ask = 0;
    start(fixture);
    ask(fixture, "batch", FAR_SECONDS, SIGTERM);
    while (fixture->logged == 0) {
        turn(fixture);
    }
    assert_int_equal(count(fixture), 0);
}

FIXTURE_TEST(timers_are_dropped_when_the_program_says_so) {
    double progress = 0;
    start(fixture);
    ask(fixture, "one", FAR_SECONDS, SIGTERM);
    ask(fixture, "two", FAR_SECONDS, SIGTERM);
    while (count(fixture) < 2) {
        turn(fixture);
    }
    assert_int_equal(
        muster_timer_server_last_progress_time(fixture->server, &progress, NULL), MUSTER_OK);
    assert_true(progress > 1e9);
    assert_int_equal(muster_timer_server_clear(fixture->server, getpid(), NULL), MUSTER_OK);
    assert_int_equal(count(fixture), 0);
    ask(fixture, "three", FAR_SECONDS, SIGTERM);
    while (count(fixture) < 1) {
        turn(fixture);
    }
    assert_int_equal(muster_timer_server_stop(fixture->server, NULL), MUSTER_OK);
    assert_int_equal(fixture->stopped, 1);
    assert_int_equal(count(fixture), 0);
    assert_int_equal(muster_timer_server_stop(fixture->server, NULL), MUSTER_ERROR_STATE);
    start(fixture);
    assert_int_equal(muster_timer_server_start(fixture->server, NULL), MUSTER_ERROR_STATE);
}

TEST(two_servers_have_timers_of_their_own) {
    struct fixture fixtures[2];
    for (int i = 0; i < 2; i++) {
        set_up(&fixtures[i]);
        start(&fixtures[i]);
    }
    ask(&fixtures[0], "far", FAR_SECONDS, SIGTERM);
    ask(&fixtures[1], "near", 1, SIGTERM);
    while (fixtures[1].signalled == 0) {
        turn(&fixtures[1]);
    }
    while (count(&fixtures[0]) == 0) {
        turn(&fixtures[0]);
    }
    assert_int_equal(count(&fixtures[1]), 0);
    assert_int_equal(fixtures[0].killed, 0);
    assert_string_equal(fixtures[1].scopes, "near ");
    tear_down(&fixtures[0]);
    tear_down(&fixtures[1]);
}

/* It connects, and is gone before it was answered. */
static void look_and_go(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s.list", path);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

TEST(a_reader_that_goes_raises_no_signal) {
    struct fixture fixture;
    assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
    set_up(&fixture);
    start(&fixture);
    ask(&fixture, "batch", FAR_SECONDS, SIGTERM);
    while (count(&fixture) == 0) {
        turn(&fixture);
    }
    for (int i = 0; i < 10; i++) {
        look_and_go(fixture.path);
        turn(&fixture);
    }
    assert_int_equal(count(&fixture), 1);
    tear_down(&fixture);
}

/* With a request that nobody has read, with a timer, and with one that cannot be ended. */
TEST(server_is_freed_in_every_state) {
    for (int stage = 0; stage < 4; stage++) {
        struct fixture fixture;
        set_up(&fixture);
        fixture.refusals = 100;
        if (stage > 0) {
            start(&fixture);
            ask(&fixture, "batch", stage == 3 ? 1 : FAR_SECONDS, SIGTERM);
        }
        while (stage > 1 && count(&fixture) == 0 && fixture.killed == 0) {
            turn(&fixture);
        }
        tear_down(&fixture);
        assert_int_equal(fixture.signalled, 0);
    }
}

/* What another process is told of the timers. */
struct told {
    int count;
    bool is_right;
};

static void take_timer(void *context, const struct muster_timer_request *timer) {
    struct told *told = context;
    char json[256];
    snprintf(json, sizeof json,
        "{\"version\": 1, \"pid\": %d, \"scope_id\": \"a step\", \"expiration_time\": "
        "4000000000.000000, \"signal\": 15}",
        (int)getppid());
    told->count++;
    told->is_right = timer->pid == getppid() && strcmp(timer->scope, "a step") == 0 &&
                     timer->expiration == FAR_SECONDS && timer->signal == SIGTERM &&
                     strcmp(timer->json, json) == 0;
}

static int list_in_child(const char *path) {
    struct told told = {0};
    if (muster_timer_server_list(path, take_timer, &told, NULL) != MUSTER_OK) {
        return 2;
    }
    return told.count == 1 && told.is_right ? 0 : 1;
}

FIXTURE_TEST(timers_are_shown_to_another_process) {
    int status;
    start(fixture);
    ask(fixture, "a step", FAR_SECONDS, SIGTERM);
    while (count(fixture) == 0) {
        turn(fixture);
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(list_in_child(fixture->path));
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        assert_int_equal(muster_timer_server_process(fixture->server, NULL), MUSTER_OK);
    }
    assert_int_equal(status, 0);
}

TEST(where_nobody_serves_nothing_is_listed) {
    struct told told = {0};
    struct muster_failure failure = {0};
    char path[5000] = {0};
    memset(path, 'x', sizeof path - 1);
    assert_int_equal(muster_timer_server_list("/nowhere/timers", take_timer, &told, &failure),
        MUSTER_ERROR_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
    assert_non_null(strstr(failure.message, "nobody answers"));
    assert_int_equal(muster_timer_server_list(path, take_timer, &told, NULL), MUSTER_ERROR_LIMIT);
    assert_int_equal(muster_timer_server_list("/nowhere", NULL, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(told.count, 0);
}

FIXTURE_TEST(server_may_be_freed_from_inside_its_callback) {
    fixture->frees = true;
    start(fixture);
    ask(fixture, "batch", 1, SIGTERM);
    while (fixture->server != NULL) {
        turn(fixture);
    }
    assert_int_equal(fixture->signalled, 1);
}

FIXTURE_TEST(a_place_where_it_cannot_serve_is_an_error) {
    struct muster_timer_server *second = NULL;
    struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
    settings.path = "/nowhere/timers";
    assert_int_equal(muster_timer_server_new(&settings, &second, NULL), MUSTER_ERROR_SYSTEM);
    settings.path = fixture->path; /* which is served */
    assert_int_equal(muster_timer_server_new(&settings, &second, NULL), MUSTER_ERROR_INVALID);
    settings.path = fixture->directory;
    assert_int_equal(muster_timer_server_new(&settings, &second, NULL), MUSTER_ERROR_INVALID);
    assert_null(second);
}
