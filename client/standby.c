/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate of standby workers, for programs that are not Python's. Users link it into their own
 * programs, so it uses nothing of src/. The messages are those of src/wire/standby/gate_message.h;
 * the hook for Python, client/standby/sitecustomize.py, speaks them, too. */
#include "muster/standby.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "standby_notice.h"
#include "standby_packet.h"
#include "standby_passage.h"
#include "standby_streams.h"

#define VERSION 1
#define PROGRESS_FILENO 200
#define RECORD STANDBY_STREAMS /* behind the streams */

extern char **environ;

/* What the agent has said in MUSTER_STANDBY. -1: nothing usable. */
struct order {
    int fd;
    int evidence_fd;
    int is_spare;
    int is_record;
};

/* Taking the order. */

static int read_number(const char *text) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && number >= 0 && number <= INT_MAX
               ? (int)number
               : -1;
}

static void take_part(struct order *order, const char *name, const char *value) {
    if (strcmp(name, "fd") == 0) {
        order->fd = read_number(value);
    } else if (strcmp(name, "evidence") == 0) {
        order->evidence_fd = read_number(value);
    } else if (strcmp(name, "role") == 0) {
        order->is_spare = strcmp(value, "spare") == 0;
        order->is_record = strcmp(value, "record") == 0;
    }
}

/* Cuts the text up. Parts that a later agent adds are passed over. */
static void read_order(char *text, struct order *out_order) {
    *out_order = (struct order){.fd = -1, .evidence_fd = -1};
    char *rest;
    for (char *part = strtok_r(text, ";", &rest); part != NULL; part = strtok_r(NULL, ";", &rest)) {
        char *value = strchr(part, '=');
        if (value != NULL) {
            *value = '\0';
            take_part(out_order, part, value + 1);
        }
    }
}

/* Whether the descriptor is a file of the agent's, and not one that came to its number since. */
static int is_memory_file(int fd) {
    static const char wanted[] = "/memfd:";
    char path[64];
    char target[sizeof wanted];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = fd < 0 ? -1 : readlink(path, target, sizeof target);
    return length >= (ssize_t)(sizeof wanted - 1) && memcmp(target, wanted, sizeof wanted - 1) == 0;
}

/* A started worker. */

/* It allows standby workers: this program comes to the gate. */
static int write_hello(int fd) {
    char line[64];
    int length = snprintf(line, sizeof line, "hello 1 %ld\n", (long)getpid());
    ssize_t written;
    do {
        written = write(fd, line, (size_t)length);
    } while (written == -1 && errno == EINTR);
    return written == length ? 0 : -1;
}

/* It stays open for muster_progress_step, which finds it under any number. */
static void leave_record(int fd) {
    if (getenv("MUSTER_PROGRESS") != NULL) {
        (void)!fcntl(fd, F_DUPFD_CLOEXEC, PROGRESS_FILENO);
    }
    close(fd);
}

static int say_hello(const struct order *order) {
    if (order->fd < 0 || !order->is_record) {
        errno = EINVAL;
        return -1;
    }
    if (!is_memory_file(order->fd)) {
        errno = EBADF;
        return -1;
    }
    muster_standby_arrange_notice(order->fd);
    int result = write_hello(order->fd);
    int error = errno;
    leave_record(order->fd);
    errno = error;
    return result;
}

/* A standby worker. */

static uint32_t cpu_milliseconds(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) {
        return 0;
    }
    return (uint32_t)((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
}

static uint32_t memory_kib(void) {
    char text[128];
    unsigned long long pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    if (fd != -1) {
        close(fd);
    }
    if (length > 0) {
        text[length] = '\0';
        (void)sscanf(text, "%*s %llu", &pages);
    }
    return (uint32_t)(pages * ((unsigned long long)sysconf(_SC_PAGESIZE) / 1024));
}

static void say_ready(int gate) {
    muster_standby_say_numbers(
        gate, 'P', (const uint32_t[]){0, 0, cpu_milliseconds(), memory_kib()}, 4);
}

/* Lists of modules are of no use to a program like this. */
static void receive_go(int gate, struct standby_packet *packet) {
    muster_standby_receive(gate, packet);
    while (packet->data[0] == STANDBY_LIST || packet->data[0] == STANDBY_MORE) {
        for (size_t i = 0; i < packet->fd_count; i++) {
            close(packet->fds[i]);
        }
        if (packet->data[0] == STANDBY_MORE) {
            say_ready(gate);
        }
        muster_standby_receive(gate, packet);
    }
}

/* The body in memory of its own, which the environment will point to. Takes the file. */
static char *take_body(
    int gate, const struct standby_packet *packet, int file, size_t *out_length) {
    struct stat status = {0};
    *out_length = packet->length - STANDBY_GO_HEAD;
    if (file != -1) {
        if (fstat(file, &status) != 0 || status.st_size > (off_t)STANDBY_BODY_MAXIMUM) {
            muster_standby_refuse(gate, "the environment is too large", 0);
        }
        *out_length = (size_t)status.st_size;
    }
    char *body = malloc(*out_length + 1);
    if (body == NULL) {
        muster_standby_refuse(gate, "no memory for the environment", errno);
    }
    if (file == -1) {
        memcpy(body, packet->data + STANDBY_GO_HEAD, *out_length);
    } else {
        muster_standby_read_file(gate, file, body, *out_length);
        close(file);
    }
    return body;
}

/* Becomes the worker that the agent would start now. */
static void pass(int gate, struct standby_packet *packet) {
    struct standby_passage passage;
    struct standby_go go;
    if (muster_standby_go_read(packet->data, packet->length, &go) != 0 ||
        packet->fd_count != go.descriptor_count) {
        muster_standby_refuse(gate, "the agent's message to go is not understood", 0);
    }
    muster_standby_move_away(gate, packet->fds, packet->fd_count);
    size_t length;
    char *body = take_body(gate, packet, go.is_in_file ? packet->fds[0] : -1, &length);
    int error = muster_standby_passage_read(body, length, &passage);
    if (error != 0) {
        muster_standby_refuse(gate, "the environment from the agent is not understood", error);
    }
    if (*passage.directory != '\0' && chdir(passage.directory) != 0) {
        int why = errno;
        char reason[400]; /* and what is wrong with it behind it */
        (void)snprintf(
            reason, sizeof reason, "cannot change to the working directory %s", passage.directory);
        muster_standby_refuse(gate, reason, why);
    }
    environ = passage.environment;
    const int *fds = packet->fds + go.is_in_file;
    muster_standby_replace_streams(gate, fds);
    muster_standby_arrange_notice(fds[RECORD]);
    (void)write_hello(fds[RECORD]);
    leave_record(fds[RECORD]);
    if (go.has_evidence) {
        close(fds[RECORD + 1]);
    }
}

/* Without its gate a standby worker has no rank and no business. */
static void check_gate(int gate) {
    int type = 0;
    socklen_t size = sizeof type;
    if (gate < 0 || getsockopt(gate, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
        type != SOCK_SEQPACKET) {
        _exit(MUSTER_STANDBY_UNUSABLE);
    }
    int flags = fcntl(gate, F_GETFL);
    (void)fcntl(gate, F_SETFL, flags & ~O_NONBLOCK);
    (void)fcntl(gate, F_SETFD, FD_CLOEXEC);
}

static void stand_by(const struct order *order) {
    int gate = order->fd;
    check_gate(gate);
    muster_standby_say_numbers(gate, 'H', (const uint32_t[]){VERSION, (uint32_t)getpid()}, 2);
    fflush(stdout);
    fflush(stderr);
    muster_standby_check_printed(gate);
    struct standby_packet packet = {.data = malloc(STANDBY_PACKET_MAXIMUM)};
    if (packet.data == NULL) {
        muster_standby_refuse(gate, "no memory for the agent's messages", errno);
    }
    say_ready(gate);
    receive_go(gate, &packet);
    pass(gate, &packet);
    free(packet.data);
    if (muster_standby_send_packet(gate, "R", 1) != 0) {
        _exit(MUSTER_STANDBY_UNUSABLE); /* the agent has waited too long, and started another one */
    }
    close(gate);
}

int muster_standby_wait(void) {
    const char *variable = getenv("MUSTER_STANDBY");
    if (variable == NULL) {
        return 0;
    }
    struct order order;
    char *text = strdup(variable);
    if (text == NULL) {
        return -1;
    }
    read_order(text, &order);
    free(text);
    unsetenv("MUSTER_STANDBY");
    if (is_memory_file(order.evidence_fd)) {
        close(order.evidence_fd);
    }
    if (!order.is_spare) {
        return say_hello(&order);
    }
    stand_by(&order);
    return 1;
}
