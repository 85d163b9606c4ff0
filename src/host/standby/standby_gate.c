/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/standby_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/descriptors.h"
#include "host/loop/files.h"

#define PASSAGE_DESCRIPTORS 4

struct standby_gate {
    struct standby_gate_events events;
    int fd;
    struct event_descriptor *descriptor; /* NULL: the other end is closed */
};

static void stop_listening(struct standby_gate *gate) {
    event_descriptor_free(gate->descriptor);
    gate->descriptor = NULL;
}

/* What makes no sense is left out: whether the standby worker can be used shows in what it says. */
static void take(struct standby_gate *gate, struct slice packet) {
    struct gate_message message;
    if (gate_message_read(packet, &message) == FAILURE_NONE) {
        gate->events.message(gate->events.context, &message);
    }
}

void standby_gate_drain(struct standby_gate *gate) {
    uint8_t packet[GATE_MESSAGE_MAXIMUM];
    for (;;) {
        ssize_t length = recv(gate->fd, packet, sizeof packet, MSG_DONTWAIT);
        if (length > 0) {
            take(gate, (struct slice){packet, (size_t)length});
        } else if (length == 0 || errno != EINTR) {
            if (length == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
                stop_listening(gate);
            }
            return;
        }
    }
}

static void readable(void *context) {
    struct standby_gate *gate = context;
    standby_gate_drain(gate);
    gate->events.taken(gate->events.context);
}

bool standby_gate_is_closed(const struct standby_gate *gate) {
    return gate->descriptor == NULL;
}

void standby_gate_shut(struct standby_gate *gate) {
    shutdown(gate->fd, SHUT_RDWR);
    standby_gate_drain(gate);
    stop_listening(gate);
}

enum failure_code standby_gate_new(struct event_loop *loop,
    const struct standby_gate_events *events, struct standby_gate **out_gate, int *out_worker_fd,
    struct failure *failure) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1) {
        return failure_set_system(failure, errno, "cannot make a pair of sockets");
    }
    struct standby_gate *gate = memory_allocate(sizeof *gate);
    gate->events = *events;
    gate->fd = ends[0];
    enum failure_code code =
        event_descriptor_new(loop, gate->fd, readable, gate, &gate->descriptor, failure);
    if (code != FAILURE_NONE) {
        close(ends[1]);
        standby_gate_free(gate);
        return code;
    }
    *out_gate = gate;
    *out_worker_fd = ends[1];
    return FAILURE_NONE;
}

void standby_gate_free(struct standby_gate *gate) {
    if (gate != NULL) {
        stop_listening(gate);
        close(gate->fd);
        free(gate);
    }
}

static enum failure_code send_packet(struct standby_gate *gate, struct slice packet,
    const int *descriptors, size_t count, struct failure *failure) {
    int error = descriptor_packet_send(gate->fd, packet, descriptors, count);
    return error != 0 ? failure_set_system(failure, error, "cannot write to a standby worker")
                      : FAILURE_NONE;
}

static enum failure_code send_list(
    struct standby_gate *gate, const char *letter, struct slice list, struct failure *failure) {
    int fd;
    enum failure_code code = memory_file_of("muster-standby-list", list, &fd, failure);
    if (code == FAILURE_NONE) {
        code = send_packet(gate, slice_from_string(letter), &fd, 1, failure);
        close(fd);
    }
    return code;
}

enum failure_code standby_gate_send_list(
    struct standby_gate *gate, struct slice list, struct failure *failure) {
    return send_list(gate, "L", list, failure);
}

enum failure_code standby_gate_send_more(
    struct standby_gate *gate, struct slice list, struct failure *failure) {
    return send_list(gate, "T", list, failure);
}

enum failure_code standby_gate_send_fork(
    struct standby_gate *gate, int worker_fd, struct failure *failure) {
    return send_packet(gate, slice_from_string("F"), &worker_fd, 1, failure);
}

enum failure_code standby_gate_send_pages(
    struct standby_gate *gate, pid_t worker, struct failure *failure) {
    struct bytes packet = {0};
    gate_message_write_pages((uint32_t)worker, &packet);
    enum failure_code code = send_packet(gate, bytes_slice(&packet), NULL, 0, failure);
    bytes_clear(&packet);
    return code;
}

enum failure_code standby_gate_send_go(
    struct standby_gate *gate, const struct standby_passage *passage, struct failure *failure) {
    int descriptors[PASSAGE_DESCRIPTORS + 1];
    size_t count = 0;
    int body_fd = -1;
    struct bytes body = {0};
    struct bytes packet = {0};
    enum failure_code code = FAILURE_NONE;
    gate_message_write_body(passage->directory, passage->environment, &body);
    bool is_in_file = body.length > GATE_INLINE_MAXIMUM;
    gate_message_write_go(is_in_file ? GATE_BODY_IN_FILE : 0, &packet);
    if (is_in_file) {
        code = memory_file_of("muster-standby-body", bytes_slice(&body), &body_fd, failure);
        descriptors[count++] = body_fd;
    } else {
        (void)!bytes_append(&packet, body.data, body.length); /* there is no ceiling */
    }
    memcpy(&descriptors[count], passage->descriptors, sizeof passage->descriptors);
    count += PASSAGE_DESCRIPTORS;
    if (code == FAILURE_NONE) {
        code = send_packet(gate, bytes_slice(&packet), descriptors, count, failure);
    }
    if (body_fd != -1) {
        close(body_fd);
    }
    bytes_clear(&body);
    bytes_clear(&packet);
    return code;
}

/* Spare treatment. */

#define HIGHEST_SCORE 1000

static void set_score(pid_t pid, int score) {
    char path[NUMBER_PATH_SIZE];
    char digits[16];
    number_path_format(path, "/proc/", (int)pid, "/oom_score_adj");
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd != -1) {
        int length = snprintf(digits, sizeof digits, "%d", score);
        (void)!write(fd, digits, (size_t)length);
        close(fd);
    }
}

void spare_treatment_begin(pid_t pid) {
    set_score(pid, HIGHEST_SCORE);
}

void spare_treatment_end(pid_t pid) {
    int score;
    if (whole_file_read_integer("/proc/self/oom_score_adj", &score, NULL) == FAILURE_NONE) {
        set_score(pid, score);
    }
}
