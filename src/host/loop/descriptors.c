/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/loop/files.h"

/* The limit is the process', and so is what is kept of it; stores ask on threads of their own. */
static _Atomic uint64_t kept;

void descriptor_limit_keep(uint64_t count) {
    kept = count;
}

uint64_t descriptor_limit_kept(void) {
    return kept;
}

long descriptor_limit_raise(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) {
        return -1;
    }
    long before = (long)limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? before : -1;
}

uint64_t descriptor_limit_read(void) {
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

void descriptor_limit_restore(long soft_limit) {
    struct rlimit limit;
    if (soft_limit >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = (rlim_t)soft_limit;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Descriptor packet. */

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

/* Inherited descriptors. */

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define FLAG_CLOSE_ON_EXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC */

/* The highest descriptor tried when there is neither close_range nor /proc. */
#define DESCRIPTORS_CEILING 65536

static bool mark_close_on_exec(void *context, int fd) {
    const int *first = context;
    if (fd >= *first) {
        fcntl(fd, F_SETFD,
            FD_CLOEXEC); /* fails for a number that is no open descriptor, which does not matter */
    }
    return true;
}

static int descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > DESCRIPTORS_CEILING) {
        return DESCRIPTORS_CEILING;
    }
    return (int)limit.rlim_cur;
}

void inherited_descriptors_end_at_exec_one_by_one(int first) {
    if (!number_directory_each("/proc/self/fd", mark_close_on_exec, &first)) {
        int limit = descriptor_limit();
        for (int fd = first; fd < limit; fd++) {
            mark_close_on_exec(&first, fd);
        }
    }
}

void inherited_descriptors_end_at_exec(int first) {
    if (syscall(SYS_close_range, (unsigned)first, ~0U, FLAG_CLOSE_ON_EXEC) != 0) {
        inherited_descriptors_end_at_exec_one_by_one(first);
    }
}

void inherited_descriptors_close(int first) {
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) != 0) {
        int limit = descriptor_limit();
        for (int fd = first; fd < limit; fd++) {
            close(fd);
        }
    }
}
