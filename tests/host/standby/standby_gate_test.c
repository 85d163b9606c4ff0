/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/standby/standby_gate.h"

struct fixture {
    struct event_loop *loop;
    struct standby_gate *gate;
    int worker; /* the other end */
    char heard[16];
    int taken_count;
};

static void hear(void *context, const struct gate_message *message) {
    static const char letters[] = {
        [GATE_MESSAGE_HELLO] = 'H',
        [GATE_MESSAGE_READY] = 'P',
        [GATE_MESSAGE_DIRTY] = 'D',
        [GATE_MESSAGE_THROUGH] = 'R',
    };
    struct fixture *fixture = context;
    fixture->heard[strlen(fixture->heard)] = letters[message->kind];
}

static void note_taken(void *context) {
    struct fixture *fixture = context;
    fixture->taken_count++;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    const struct standby_gate_events events = {hear, note_taken, fixture};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        standby_gate_new(fixture->loop, &events, &fixture->gate, &fixture->worker, NULL),
        FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    standby_gate_free(fixture->gate);
    assert_true(event_loop_free(fixture->loop));
    if (fixture->worker != -1) {
        close(fixture->worker);
    }
}

static ssize_t say(const struct fixture *fixture, const char *bytes, size_t length) {
    return send(fixture->worker, bytes, length, MSG_NOSIGNAL);
}

/* One packet from the agent, with its descriptors. */
static size_t take_packet(
    const struct fixture *fixture, char *bytes, size_t size, int descriptors[8]) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec part = {bytes, size};
    struct msghdr message = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.space,
        .msg_controllen = sizeof control.space};
    ssize_t length = recvmsg(fixture->worker, &message, MSG_CMSG_CLOEXEC);
    assert_true(length > 0);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(descriptors, CMSG_DATA(header), count * sizeof(int));
    for (size_t i = count; i < 8; i++) {
        descriptors[i] = -1;
    }
    return (size_t)length;
}

static void close_all(const int descriptors[8]) {
    for (int i = 0; i < 8 && descriptors[i] != -1; i++) {
        close(descriptors[i]);
    }
}

FIXTURE_TEST(what_a_standby_worker_says_is_heard_in_order) {
    say(fixture, "H\1\0\0\0\1\0\0\0", 9);
    say(fixture, "P\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
    event_loop_run_ready(fixture->loop);
    assert_string_equal(fixture->heard, "HP");
    assert_int_equal(fixture->taken_count, 1);
}

FIXTURE_TEST(what_makes_no_sense_is_left_out) {
    char long_one[GATE_MESSAGE_MAXIMUM + 100] = "D";
    say(fixture, "X", 1);
    say(fixture, "H", 1);
    say(fixture, long_one, sizeof long_one); /* its end is cut off */
    say(fixture, "R", 1);
    event_loop_run_ready(fixture->loop);
    assert_string_equal(fixture->heard, "DR");
}

FIXTURE_TEST(the_list_comes_as_a_file) {
    char packet[64];
    int descriptors[8];
    assert_int_equal(
        standby_gate_send_list(fixture->gate, slice_from_string("json\t\n"), NULL), FAILURE_NONE);
    assert_int_equal(take_packet(fixture, packet, sizeof packet, descriptors), 1);
    assert_int_equal(packet[0], 'L');
    assert_int_equal(pread(descriptors[0], packet, sizeof packet, 0), 6);
    assert_memory_equal(packet, "json\t\n", 6);
    assert_int_equal(descriptors[1], -1);
    close_all(descriptors);
}

FIXTURE_TEST(what_was_imported_later_comes_as_a_list_of_its_own) {
    char packet[64];
    int descriptors[8];
    assert_int_equal(
        standby_gate_send_more(fixture->gate, slice_from_string("wave\t\n"), NULL), FAILURE_NONE);
    assert_int_equal(take_packet(fixture, packet, sizeof packet, descriptors), 1);
    assert_int_equal(packet[0], 'T');
    assert_int_equal(pread(descriptors[0], packet, sizeof packet, 0), 6);
    assert_memory_equal(packet, "wave\t\n", 6);
    close_all(descriptors);
}

FIXTURE_TEST(the_order_to_fork_passes_the_end_of_another_gate) {
    char packet[16];
    int descriptors[8];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(standby_gate_send_fork(fixture->gate, ends[1], NULL), FAILURE_NONE);
    assert_int_equal(take_packet(fixture, packet, sizeof packet, descriptors), 1);
    assert_int_equal(packet[0], 'F');
    assert_int_equal(send(descriptors[0], "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(ends[0], packet, sizeof packet, 0), 1);
    close_all(descriptors);
    close(ends[0]);
    close(ends[1]);
}

FIXTURE_TEST(the_order_to_look_at_pages_passes_nothing_but_a_number) {
    char packet[16];
    assert_int_equal(standby_gate_send_pages(fixture->gate, 7, NULL), FAILURE_NONE);
    assert_int_equal(recv(fixture->worker, packet, sizeof packet, 0), 5);
    assert_memory_equal(packet, "W\7\0\0\0", 5);
}

FIXTURE_TEST(a_gate_is_closed_when_nobody_is_at_the_other_end) {
    assert_false(standby_gate_is_closed(fixture->gate));
    close(fixture->worker);
    fixture->worker = -1;
    event_loop_run_ready(fixture->loop);
    assert_true(standby_gate_is_closed(fixture->gate));
    assert_int_equal(fixture->taken_count, 1);
}

static void assert_same_file(int left, const char *path) {
    char link[64];
    char name[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", left);
    ssize_t length = readlink(link, name, sizeof name - 1);
    assert_true(length > 0);
    name[length] = '\0';
    assert_string_equal(name, path);
}

FIXTURE_TEST(the_order_to_go_passes_the_descriptors_in_their_order) {
    char packet[256];
    int descriptors[8];
    struct text_list environment = {0};
    text_list_add(&environment, "A=1");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    const struct standby_passage passage = {"/", &environment, {null, zero, null, zero}};
    assert_int_equal(standby_gate_send_go(fixture->gate, &passage, NULL), FAILURE_NONE);
    assert_int_equal(take_packet(fixture, packet, sizeof packet, descriptors), 14);
    assert_memory_equal(packet, "G\0\0\0\0\1\0\0\0/A=1", 14);
    assert_same_file(descriptors[0], "/dev/null");
    assert_same_file(descriptors[1], "/dev/zero");
    assert_same_file(descriptors[3], "/dev/zero");
    assert_int_equal(descriptors[4], -1);
    close_all(descriptors);
    close(null);
    close(zero);
    text_list_clear(&environment);
}

TEST(a_large_environment_comes_in_a_file) {
    struct fixture fixture;
    char packet[256];
    char *body = calloc(1, 300000);
    int descriptors[8];
    struct text_list environment = {0};
    char *value = calloc(1, 200001);
    memset(value, 'v', 200000);
    set_up(&fixture);
    text_list_set_variable(&environment, "LARGE", value);
    const struct standby_passage passage = {"/", &environment, {0, 1, 2, 2}};
    assert_int_equal(standby_gate_send_go(fixture.gate, &passage, NULL), FAILURE_NONE);
    assert_int_equal(take_packet(&fixture, packet, sizeof packet, descriptors), 5);
    assert_memory_equal(packet, "G\1\0\0\0", 5);
    assert_int_equal(pread(descriptors[0], body, 300000, 0), 5 + 200000 + 7);
    assert_memory_equal(body, "\1\0\0\0/LARGE=vvv", 14);
    assert_true(descriptors[4] != -1);
    assert_int_equal(descriptors[5], -1);
    close_all(descriptors);
    free(body);
    free(value);
    text_list_clear(&environment);
    tear_down(&fixture);
}

FIXTURE_TEST(a_gate_that_is_shut_tells_what_was_said_before) {
    assert_int_equal(say(fixture, "R", 1), 1);
    standby_gate_shut(fixture->gate);
    assert_string_equal(fixture->heard, "R");
    assert_int_equal(fixture->taken_count, 0);
    assert_int_equal(say(fixture, "R", 1), -1);
    assert_int_equal(errno, EPIPE);
    event_loop_run_ready(fixture->loop);
    assert_string_equal(fixture->heard, "R");
}

FIXTURE_TEST(who_has_not_gone_through_a_gate_that_is_shut_never_does) {
    standby_gate_shut(fixture->gate);
    assert_int_equal(say(fixture, "R", 1), -1);
    standby_gate_drain(fixture->gate);
    assert_string_equal(fixture->heard, "");
}

FIXTURE_TEST(nothing_can_be_sent_to_a_standby_worker_that_is_gone) {
    struct failure failure;
    close(fixture->worker);
    fixture->worker = -1;
    event_loop_run_ready(fixture->loop);
    assert_int_equal(
        standby_gate_send_list(fixture->gate, slice_from_string("a"), &failure), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, EPIPE);
    event_loop_run_ready(fixture->loop);
}
