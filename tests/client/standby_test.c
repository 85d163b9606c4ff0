/* SPDX-License-Identifier: BSD-3-Clause */
/* libmuster-standby in a standby worker, against a gatekeeper that says what an agent says. The
 * standby workers are children of the test. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/standby_record.h"
#include "muster/standby.h"

#define PACKET_MAXIMUM 1024
#define TEXT_MAXIMUM 4096
#define NOT_STANDBY 90 /* the exit status of a child that was told so */

struct gatekeeper {
    int gate;
    pid_t pid;
    int printed; /* standard output and error of the standby worker before the gate */
    int record;
    int out[2]; /* those behind it; the second is the writing end */
    int in[2];
};

struct child {
    void (*before)(void); /* the gate */
    void (*after)(void);
    bool has_streams;
};

static _Noreturn void be_standby_worker(
    const struct gatekeeper *keeper, int fd, const struct child *child) {
    char order[64];
    int null = open("/dev/null", O_RDWR);
    snprintf(order, sizeof order, "fd=%d;role=spare;pythonpath=0;later=1", fd);
    setenv("MUSTER_STANDBY", order, 1);
    dup2(null, STDIN_FILENO);
    dup2(keeper->printed, STDOUT_FILENO);
    dup2(keeper->printed, STDERR_FILENO);
    for (int other = STDERR_FILENO + 1; other < 1024; other++) {
        if (other != fd) {
            close(other);
        }
    }
    for (int stream = 0; stream <= STDERR_FILENO && !child->has_streams; stream++) {
        close(stream);
    }
    if (child->before != NULL) {
        child->before();
    }
    if (muster_standby_wait() != 1) {
        _exit(NOT_STANDBY);
    }
    child->after();
    fflush(stdout);
    _exit(0);
}

static void open_gate(struct gatekeeper *keeper, const struct child *child) {
    int ends[2];
    *keeper = (struct gatekeeper){.printed = memory_file(), .record = memory_file()};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(pipe(keeper->out), 0);
    assert_int_equal(pipe(keeper->in), 0);
    fflush(NULL);
    keeper->pid = fork();
    assert_true(keeper->pid >= 0);
    if (keeper->pid == 0) {
        be_standby_worker(keeper, ends[1], child);
    }
    close(ends[1]);
    keeper->gate = ends[0];
}

/* The standby worker has ended with this status. */
static void expect_end(struct gatekeeper *keeper, int expected) {
    int status;
    if (keeper->gate != -1) {
        close(keeper->gate);
    }
    assert_int_equal(waitpid(keeper->pid, &status, 0), keeper->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    close(keeper->printed);
    close(keeper->record);
    close(keeper->in[0]);
    close(keeper->in[1]);
    close(keeper->out[0]);
    if (keeper->out[1] != -1) {
        close(keeper->out[1]);
    }
}

/* The body of a packet; the caller frees it. */
static uint8_t *expect_packet(struct gatekeeper *keeper, char letter, size_t expected_length) {
    uint8_t *packet = malloc(PACKET_MAXIMUM);
    ssize_t length = recv(keeper->gate, packet, PACKET_MAXIMUM, 0);
    assert_true(length > 0);
    assert_int_equal(packet[0], letter);
    assert_int_equal(length - 1, expected_length);
    memmove(packet, packet + 1, (size_t)length - 1);
    return packet;
}

static uint32_t number_at(const uint8_t *body, size_t index) {
    body += index * 4;
    return (uint32_t)body[0] | (uint32_t)body[1] << 8 | (uint32_t)body[2] << 16 |
           (uint32_t)body[3] << 24;
}

static void expect_ready(struct gatekeeper *keeper) {
    uint8_t *hello = expect_packet(keeper, 'H', 8);
    assert_int_equal(number_at(hello, 0), 1);
    assert_int_equal(number_at(hello, 1), keeper->pid);
    free(hello);
    uint8_t *ready = expect_packet(keeper, 'P', 16);
    assert_int_equal(number_at(ready, 0), 0);
    assert_int_equal(number_at(ready, 1), 0);
    assert_in_range(number_at(ready, 3), 1, UINT32_MAX);
    free(ready);
}

/* It says why, and ends. */
static void expect_refusal(struct gatekeeper *keeper, const char *why) {
    char reason[PACKET_MAXIMUM] = {0};
    ssize_t length = recv(keeper->gate, reason, sizeof reason - 1, 0);
    assert_true(length > 0);
    assert_int_equal(reason[0], 'D');
    assert_non_null(strstr(reason, why));
    expect_end(keeper, MUSTER_STANDBY_UNUSABLE);
}

static void send_with(
    struct gatekeeper *keeper, const void *data, size_t length, const int *fds, size_t count) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(8 * sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)data, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET};
        control.header.cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
    }
    assert_int_equal(sendmsg(keeper->gate, &message, MSG_NOSIGNAL), (ssize_t)length);
}

static void send_list(struct gatekeeper *keeper) {
    int list = memory_file();
    send_with(keeper, "L", 1, &list, 1);
    close(list);
}

#define HEAD "G\0\0\0\0"
#define TO_ROOT "\1\0\0\0/"
#define VARIABLES "RANK=3\0MUSTER_STANDBY=fd=3;role=record;pythonpath=0\0NAMELESS\0=\0WORD=a=b\0"
static const char go[] = HEAD TO_ROOT VARIABLES;
#define GO_LENGTH (sizeof go - 1) /* without the literal's own end */

static void send_streams(struct gatekeeper *keeper, const void *data, size_t length) {
    const int fds[] = {keeper->in[0], keeper->out[1], keeper->out[1], keeper->record};
    send_with(keeper, data, length, fds, 4);
}

/* All that the worker writes until its end. */
static void expect_output(struct gatekeeper *keeper, const char *expected) {
    char text[TEXT_MAXIMUM] = {0};
    size_t length = 0;
    ssize_t count;
    close(keeper->out[1]);
    keeper->out[1] = -1;
    while ((count = read(keeper->out[0], text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)count;
    }
    assert_string_equal(text, expected);
}

/* What standby workers do. */

static void nothing(void) {
}

static void print_before(void) {
    printf("printed before\n");
    fflush(stdout);
    printf("and not flushed\n");
}

static void tell_place(void) {
    char line[64] = "";
    char *directory = getcwd(NULL, 0);
    const char *standby = getenv("MUSTER_STANDBY");
    printf("rank %s in %s, word %s, standby %s, path %s\n", getenv("RANK"), directory,
        getenv("WORD"), standby == NULL ? "unset" : standby,
        getenv("PATH") == NULL ? "unset" : "set");
    printf("read %s", fgets(line, sizeof line, stdin) == NULL ? "nothing\n" : line);
    setenv("RANK", "4", 1);
    printf("then rank %s; a second call gives %d\n", getenv("RANK"), muster_standby_wait());
    free(directory);
}

static void count_descriptors(void) {
    int count = -1; /* the listing's own */
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    dprintf(STDERR_FILENO, "%d descriptors\n", count);
}

static void take_signal(int number) {
    (void)number;
}

static void handle_signals(void) {
    struct sigaction action = {.sa_handler = take_signal};
    sigaction(SIGUSR1, &action, NULL);
}

static void print_too_much(void) {
    for (int i = 0; i <= MUSTER_STANDBY_PRINTED_MAXIMUM; i++) {
        putchar('x');
    }
}

static void tell_length(void) {
    printf("%zu bytes for %s\n", strlen(getenv("LARGE")), getenv("RANK"));
}

static void tell_nothing(void) {
}

/* The tests. */

TEST(standby_worker_becomes_the_worker) {
    struct gatekeeper keeper;
    open_gate(&keeper, &(struct child){print_before, tell_place, true});
    expect_ready(&keeper);
    send_list(&keeper);
    assert_int_equal(write(keeper.in[1], "a line\n", 7), 7);
    send_streams(&keeper, go, GO_LENGTH);
    free(expect_packet(&keeper, 'R', 0));
    expect_output(&keeper, "printed before\nand not flushed\n"
                           "rank 3 in /, word a=b, standby unset, path unset\nread a line\n"
                           "then rank 4; a second call gives 0\n");
    expect_hello(keeper.record, keeper.pid);
    expect_end(&keeper, 0);
}

TEST(modules_that_were_imported_later_are_nothing_to_wait_for) {
    struct gatekeeper keeper;
    open_gate(&keeper, &(struct child){NULL, tell_nothing, true});
    expect_ready(&keeper);
    send_list(&keeper);
    for (int i = 0; i < 100; i++) {
        int list = memory_file();
        send_with(&keeper, "T", 1, &list, 1);
        close(list);
        free(expect_packet(&keeper, 'P', 16));
    }
    send_streams(&keeper, go, GO_LENGTH);
    free(expect_packet(&keeper, 'R', 0));
    expect_end(&keeper, 0);
}

TEST(large_environment_comes_in_a_file) {
    static char body[300000];
    static const char start[] = "\0\0\0\0RANK=9\0LARGE=";
    struct gatekeeper keeper;
    memset(body, 'x', sizeof body - 1);
    memcpy(body, start, sizeof start - 1);
    int file = memory_file();
    assert_int_equal(write(file, body, sizeof body), (ssize_t)sizeof body);
    open_gate(&keeper, &(struct child){NULL, tell_length, true});
    expect_ready(&keeper);
    const int fds[] = {
        file, keeper.in[0], keeper.out[1], keeper.out[1], keeper.record, keeper.printed};
    send_with(&keeper, "G\3\0\0\0", 5, fds, 6); /* and one for evidence */
    free(expect_packet(&keeper, 'R', 0));
    char expected[64];
    snprintf(expected, sizeof expected, "%zu bytes for 9\n", sizeof body - sizeof start);
    expect_output(&keeper, expected);
    close(file);
    expect_end(&keeper, 0);
}

TEST(no_descriptor_is_left_open) {
    for (int has_streams = 0; has_streams < 2; has_streams++) {
        struct gatekeeper keeper;
        open_gate(&keeper, &(struct child){NULL, count_descriptors, has_streams != 0});
        expect_ready(&keeper);
        send_list(&keeper);
        send_list(&keeper);
        send_streams(&keeper, go, GO_LENGTH);
        free(expect_packet(&keeper, 'R', 0));
        expect_output(&keeper, "3 descriptors\n");
        expect_end(&keeper, 0);
    }
}

TEST(agent_that_ends_is_the_end) {
    struct gatekeeper keeper;
    open_gate(&keeper, &(struct child){NULL, nothing, true});
    expect_ready(&keeper);
    expect_end(&keeper, 0);
}

TEST(signals_do_not_end_the_waiting) {
    struct gatekeeper keeper;
    open_gate(&keeper, &(struct child){handle_signals, nothing, true});
    expect_ready(&keeper);
    assert_int_equal(kill(keeper.pid, SIGUSR1), 0);
    send_list(&keeper);
    assert_int_equal(kill(keeper.pid, SIGUSR1), 0);
    send_streams(&keeper, go, GO_LENGTH);
    free(expect_packet(&keeper, 'R', 0));
    expect_end(&keeper, 0);
}

TEST(torn_orders_are_refused) {
    for (size_t length = 1; length < GO_LENGTH; length++) {
        bool is_shorter_environment = length >= 10 && go[length - 1] == '\0';
        if (is_shorter_environment) {
            continue;
        }
        struct gatekeeper keeper;
        open_gate(&keeper, &(struct child){NULL, nothing, true});
        expect_ready(&keeper);
        send_streams(&keeper, go, length);
        if (length == sizeof HEAD TO_ROOT - 1) { /* no environment at all is an environment */
            free(expect_packet(&keeper, 'R', 0));
            expect_end(&keeper, 0);
        } else {
            expect_refusal(&keeper, "is not understood");
        }
    }
}

TEST(what_is_unknown_is_refused) {
    static const struct {
        const char *data;
        size_t length;
        size_t fd_count;
    } cases[] = {
        {"X", 1, 0},
        {go, GO_LENGTH, 3},
        {go, GO_LENGTH, 0},
        {"G\4\0\0\0\0\0\0\0", 9, 4},
        {"G\1\0\0\0", 5, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gatekeeper keeper;
        open_gate(&keeper, &(struct child){NULL, nothing, true});
        expect_ready(&keeper);
        const int fds[] = {keeper.in[0], keeper.out[1], keeper.out[1], keeper.record};
        send_with(&keeper, cases[i].data, cases[i].length, fds, cases[i].fd_count);
        expect_refusal(&keeper, "is not understood");
    }
}

TEST(directory_that_is_gone_is_refused) {
    static const char away[] = HEAD "\5\0\0\0/gone";
    struct gatekeeper keeper;
    open_gate(&keeper, &(struct child){NULL, nothing, true});
    expect_ready(&keeper);
    send_streams(&keeper, away, sizeof away - 1);
    expect_refusal(
        &keeper, "cannot change to the working directory /gone: No such file or directory");
}

TEST(too_much_output_is_refused_before_it_is_ready) {
    struct gatekeeper keeper;
    open_gate(&keeper, &(struct child){print_too_much, nothing, true});
    free(expect_packet(&keeper, 'H', 8));
    expect_refusal(&keeper, "has printed more than 65536 bytes");
}

TEST(who_comes_too_late_ends) {
    struct gatekeeper keeper;
    open_gate(&keeper, &(struct child){NULL, nothing, true});
    expect_ready(&keeper);
    send_streams(&keeper, go, GO_LENGTH);
    /* Perhaps R is there already; then it is the worker. */
    assert_int_equal(shutdown(keeper.gate, SHUT_RDWR), 0);
    char byte;
    bool is_through = recv(keeper.gate, &byte, 1, 0) == 1;
    expect_end(&keeper, is_through ? 0 : MUSTER_STANDBY_UNUSABLE);
}

TEST(without_a_gate_there_is_no_standby_worker) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("MUSTER_STANDBY", "fd=999;role=spare", 1);
        (void)muster_standby_wait();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == MUSTER_STANDBY_UNUSABLE);
}
