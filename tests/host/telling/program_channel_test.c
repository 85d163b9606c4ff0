/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/process/process_table.h"
#include "host/telling/program_channel.h"

struct fixture {
    struct event_loop *loop;
    struct program_channel *channel;
    int ends[2]; /* the program's, the agent's */
    int asked[4];
    size_t asked_count;
    int64_t told; /* the last message */
};

static void note(void *context, int signal) {
    struct fixture *fixture = context;
    assert_true(fixture->asked_count < 4);
    fixture->asked[fixture->asked_count++] = signal;
    event_loop_stop(fixture->loop);
}

static void keep_message(void *context, const void *message) {
    struct fixture *fixture = context;
    memcpy(&fixture->told, message, sizeof fixture->told);
    event_loop_stop(fixture->loop);
}

static void set_up(struct fixture *fixture, int program) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fixture->ends), 0);
    const struct program_channel_settings settings = {
        fixture->ends[1], program, note, keep_message, sizeof fixture->told, fixture};
    assert_int_equal(
        program_channel_new(fixture->loop, &settings, &fixture->channel, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    program_channel_free(fixture->channel);
    assert_true(event_loop_free(fixture->loop));
    close(fixture->ends[1]);
    if (fixture->ends[0] >= 0) {
        close(fixture->ends[0]);
    }
}

static void read_all(int fd, struct text *out) {
    char chunk[65536];
    ssize_t length;
    while ((length = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT)) > 0) {
        text_append_bytes(out, chunk, (size_t)length);
    }
}

FIXTURE_TEST_AFTER(messages_come_whole_between_signals, set_up(&fixture, -1)) {
    const int64_t message = 0x0f01020304050607;
    unsigned char bytes[2 + sizeof message] = {PROGRAM_CHANNEL_MESSAGE};
    memcpy(bytes + 1, &message, sizeof message);
    bytes[sizeof bytes - 1] = SIGTERM;
    assert_int_equal(send(fixture->ends[0], bytes, 4, 0), 4); /* in two pieces */
    (void)event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->told, 0);
    assert_int_equal(send(fixture->ends[0], bytes + 4, sizeof bytes - 4, 0), sizeof bytes - 4);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->told, message);
    assert_int_equal(fixture->asked_count, 1);
    assert_int_equal(fixture->asked[0], SIGTERM);
}

FIXTURE_TEST_AFTER(lines_come_in_order, set_up(&fixture, -1)) {
    struct text heard = {0};
    program_channel_tell(fixture->channel, "one\n", true);
    program_channel_tell(fixture->channel, "two\n", false);
    read_all(fixture->ends[0], &heard);
    assert_string_equal(text_string(&heard), "one\ntwo\n");
    text_clear(&heard);
}

static char *long_line(size_t length) {
    char *line = memory_allocate(length + 2);
    memset(line, 'x', length);
    line[length] = '\n';
    return line;
}

FIXTURE_TEST_AFTER(program_that_does_not_read_holds_up_nothing, set_up(&fixture, -1)) {
    struct text heard = {0};
    char *line = long_line(PROGRAM_CHANNEL_CEILING / 4);
    for (int i = 0; i < 8; i++) { /* twice what may wait */
        program_channel_tell(fixture->channel, line, true);
    }
    program_channel_tell(fixture->channel, "result\n", false);
    while (strstr(text_string(&heard), "result\n") == NULL) {
        read_all(fixture->ends[0], &heard);
        (void)event_loop_run_ready(fixture->loop);
    }
    size_t lines = (heard.length - strlen("result\n")) / strlen(line);
    assert_in_range(lines, 3, 7);
    assert_int_equal(heard.length, lines * strlen(line) + strlen("result\n"));
    text_clear(&heard);
    free(line);
}

FIXTURE_TEST_AFTER(each_byte_asks_for_a_signal, set_up(&fixture, -1)) {
    const unsigned char requests[] = {SIGINT, SIGTERM};
    assert_int_equal(send(fixture->ends[0], requests, 2, 0), 2);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->asked_count, 2);
    assert_int_equal(fixture->asked[0], SIGINT);
    assert_int_equal(fixture->asked[1], SIGTERM);
}

FIXTURE_TEST_AFTER(end_of_the_socket_asks_for_the_end_once, set_up(&fixture, -1)) {
    close(fixture->ends[0]);
    fixture->ends[0] = -1;
    event_loop_run(fixture->loop);
    program_channel_tell(fixture->channel, "nobody hears it\n", false);
    (void)event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->asked_count, 1);
    assert_int_equal(fixture->asked[0], SIGTERM);
}

FIXTURE_TEST_AFTER(program_that_asks_and_is_gone_asks_once, set_up(&fixture, -1)) {
    const unsigned char request = SIGTERM;
    assert_int_equal(send(fixture->ends[0], &request, 1, 0), 1);
    close(fixture->ends[0]);
    fixture->ends[0] = -1;
    event_loop_run(fixture->loop);
    while (event_loop_run_ready(fixture->loop)) {
    }
    assert_int_equal(fixture->asked_count, 1);
}

TEST(end_of_the_program_asks_for_the_end) {
    struct fixture fixture;
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        pause();
        _exit(0);
    }
    int pidfd = pidfd_open_process(program);
    if (pidfd < 0) {
        kill(program, SIGKILL);
        waitpid(program, NULL, 0);
        SKIP_BECAUSE("the kernel has no pidfds");
    }
    set_up(&fixture, pidfd); /* the test itself holds the other end of the socket */
    kill(program, SIGKILL);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.asked[0], SIGTERM);
    tear_down(&fixture);
    waitpid(program, NULL, 0);
    close(pidfd);
}

/* The program has its end while the agent waits with the last lines. */
TEST(last_lines_are_waited_for) {
    struct fixture fixture;
    char *line = long_line(PROGRAM_CHANNEL_CEILING / 4);
    set_up(&fixture, -1);
    program_channel_tell(fixture.channel, line, false);
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        struct text heard = {0};
        close(fixture.ends[1]);
        char chunk[65536];
        ssize_t length;
        while ((length = recv(fixture.ends[0], chunk, sizeof chunk, 0)) > 0) {
            text_append_bytes(&heard, chunk, (size_t)length);
        }
        _exit(heard.length == PROGRAM_CHANNEL_CEILING / 4 + 1 ? 0 : 1);
    }
    int status;
    tear_down(&fixture);
    assert_int_equal(waitpid(program, &status, 0), program);
    assert_int_equal(status, 0);
    free(line);
}
