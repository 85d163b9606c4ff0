/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/loop/descriptors.h"

static void make_pair(int ends[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

TEST(a_descriptor_arrives_and_is_closed_in_programs) {
    int ends[2];
    int pipe_ends[2];
    int received;
    char text[16];
    make_pair(ends);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(
        descriptor_packet_send(ends[0], slice_from_string("packet"), &pipe_ends[1], 1), 0);
    close(pipe_ends[1]);
    assert_int_equal(descriptor_packet_receive(ends[1], text, sizeof text, &received), 6);
    assert_memory_equal(text, "packet", 6);
    assert_int_equal(fcntl(received, F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(received, "x", 1), 1);
    assert_int_equal(read(pipe_ends[0], text, sizeof text), 1);
    close(received);
    close(pipe_ends[0]);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_packet_need_have_no_descriptor) {
    int ends[2];
    int received = 0;
    char text[3];
    make_pair(ends);
    assert_int_equal(descriptor_packet_send(ends[0], slice_from_string("packet"), NULL, 0), 0);
    assert_int_equal(descriptor_packet_receive(ends[1], text, sizeof text, &received), 3);
    assert_int_equal(received, -1);
    assert_int_equal(descriptor_packet_receive(ends[1], text, sizeof text, &received), -1);
    assert_int_equal(errno, EAGAIN);
    close(ends[0]);
    assert_int_equal(descriptor_packet_receive(ends[1], text, sizeof text, &received), 0);
    close(ends[1]);
}

/* No other one is left open here. */
TEST(of_many_descriptors_one_is_taken) {
    int ends[2];
    int pipe_ends[2];
    int received = 0;
    char text[16];
    make_pair(ends);
    assert_int_equal(pipe(pipe_ends), 0);
    const int many[DESCRIPTOR_PACKET_MOST] = {pipe_ends[1], pipe_ends[1], pipe_ends[1],
        pipe_ends[1], pipe_ends[1], pipe_ends[1], pipe_ends[1], pipe_ends[1]};
    assert_int_equal(
        descriptor_packet_send(ends[0], slice_from_string("packet"), many, DESCRIPTOR_PACKET_MOST),
        0);
    assert_int_equal(descriptor_packet_send(
                         ends[0], slice_from_string("packet"), many, DESCRIPTOR_PACKET_MOST + 1),
        EINVAL);
    close(pipe_ends[1]);
    assert_int_equal(descriptor_packet_receive(ends[1], text, sizeof text, &received), 6);
    assert_true(received >= 0);
    close(received);
    assert_int_equal(read(pipe_ends[0], text, sizeof text), 0);
    close(pipe_ends[0]);
    close(ends[0]);
    close(ends[1]);
}

TEST(an_end_without_reader_is_told) {
    int ends[2];
    make_pair(ends);
    close(ends[1]);
    assert_int_equal(descriptor_packet_send(ends[0], slice_from_string("packet"), NULL, 0), EPIPE);
    close(ends[0]);
}
