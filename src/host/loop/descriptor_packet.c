/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/descriptor_packet.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int descriptor_packet_send(int fd, struct slice packet, const int *descriptors, size_t count) {
    union {
        struct cmsghdr header; /* for its alignment */
        char space[CMSG_SPACE(DESCRIPTOR_PACKET_MOST * sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)packet.data, packet.length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > DESCRIPTOR_PACKET_MOST) {
        return EINVAL;
    }
    if (count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(count * sizeof *descriptors);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof *descriptors);
        memcpy(CMSG_DATA(header), descriptors, count * sizeof *descriptors);
    }
    ssize_t sent;
    do {
        sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent == -1 && errno == EINTR);
    return sent == -1 ? errno : 0;
}

ssize_t descriptor_packet_receive(int fd, void *data, size_t size, int *out_descriptor) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))]; /* the kernel closes what does not fit */
    } control;
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.space,
        .msg_controllen = CMSG_LEN(sizeof(int))}; /* in the space there is room for two */
    *out_descriptor = -1;
    ssize_t length = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = length == -1 ? NULL : CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(out_descriptor, CMSG_DATA(header), sizeof(int));
    }
    return length;
}
