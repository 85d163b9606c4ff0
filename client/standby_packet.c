/* SPDX-License-Identifier: BSD-3-Clause */
#include "standby_packet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "muster/standby.h"

#define REASON_SIZE 512

int muster_standby_send_packet(int gate, const void *data, size_t length) {
    ssize_t sent;
    do {
        sent = send(gate, data, length, MSG_NOSIGNAL);
    } while (sent == -1 && errno == EINTR);
    return sent == (ssize_t)length ? 0 : -1;
}

/* Tells why this process cannot become a worker, as far as somebody still listens, and ends. */
_Noreturn void muster_standby_refuse(int gate, const char *what, int error) {
    char reason[REASON_SIZE];
    int length = snprintf(reason, sizeof reason, error == 0 ? "D%s" : "D%s: %s", what,
        error == 0 ? "" : strerror(error));
    size_t size = length < (int)sizeof reason ? (size_t)length : sizeof reason - 1;
    (void)muster_standby_send_packet(gate, reason, size);
    _exit(MUSTER_STANDBY_UNUSABLE);
}

static void append_number(char **end, uint32_t number) {
    for (int i = 0; i < 4; i++) {
        *(*end)++ = (char)(unsigned char)(number >> (8 * i));
    }
}

void muster_standby_say_numbers(int gate, char kind, const uint32_t *numbers, size_t count) {
    char message[32] = {kind};
    char *end = message + 1;
    for (size_t i = 0; i < count; i++) {
        append_number(&end, numbers[i]);
    }
    if (muster_standby_send_packet(gate, message, (size_t)(end - message)) != 0) {
        _exit(0); /* the agent needs it no more */
    }
}

static void take_descriptors(struct standby_packet *packet, struct msghdr *message) {
    packet->fd_count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && packet->fd_count < STANDBY_DESCRIPTORS_MAXIMUM; i++) {
            memcpy(
                &packet->fds[packet->fd_count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        }
    }
}

/* Waits for a packet. The end of the agent is this process's, too. */
void muster_standby_receive(int gate, struct standby_packet *packet) {
    union {
        struct cmsghdr header; /* for its alignment */
        char space[CMSG_SPACE(STANDBY_DESCRIPTORS_MAXIMUM * sizeof(int))];
    } control;
    struct iovec part = {packet->data, STANDBY_PACKET_MAXIMUM};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t length;
    do {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        length = recvmsg(gate, &message, MSG_CMSG_CLOEXEC);
    } while (length == -1 && errno == EINTR);
    if (length == 0 || (length == -1 && errno == ECONNRESET)) {
        _exit(0);
    }
    if (length == -1) {
        muster_standby_refuse(gate, "cannot read from the gate", errno);
    }
    packet->length = (size_t)length;
    take_descriptors(packet, &message);
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        muster_standby_refuse(gate, "a message of the agent is cut off", 0);
    }
}

void muster_standby_read_file(int gate, int fd, char *data, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t count = pread(fd, data + done, length - done, (off_t)done);
        if (count == 0 || (count == -1 && errno != EINTR)) {
            muster_standby_refuse(gate, "a file became shorter", count == 0 ? 0 : errno);
        }
        done += count > 0 ? (size_t)count : 0;
    }
}
