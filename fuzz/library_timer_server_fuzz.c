/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/timer_server.h fed by hostile bytes in its FIFO. Processes are never ended: the program's
 * own kill only says whether it would have been. What is told must be about a process that was
 * allowed to ask, and what is asked for must fit into the limits. */
#include "fuzz_input.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <muster/timer_server.h>

#define MOST_TURNS 64

struct program {
    uint8_t choices; /* what the callbacks answer */
    int killed;
    int told;
};

static int may_ask(void *context, long pid) {
    const struct program *program = context;
    FUZZ_REQUIRE(pid > 0);
    return program->choices & 1;
}

static int pretend_to_kill(void *context, long pid, unsigned long long start_time, int number) {
    struct program *program = context;
    FUZZ_REQUIRE((program->choices & 1) != 0 && pid > 0 && start_time > 0 && number > 0);
    program->killed++;
    return program->choices >> 1 & 1;
}

static void take_event(void *context, const struct muster_timer_event *event) {
    struct program *program = context;
    program->told++;
    if (event->kind != MUSTER_TIMER_EXPIRED && event->kind != MUSTER_TIMER_SIGNALLED) {
        FUZZ_REQUIRE(event->count == 0);
        return;
    }
    FUZZ_REQUIRE((program->choices & 1) != 0 && event->pid > 0 && event->count > 0);
    FUZZ_REQUIRE(event->kind == MUSTER_TIMER_EXPIRED || event->signal > 0);
    for (size_t i = 0; i < event->count; i++) {
        FUZZ_REQUIRE(strlen(event->scopes[i]) <= 4096 && event->expirations[i] >= 0);
    }
}

static void take_log(void *context, int level, const char *origin, const char *message) {
    (void)context;
    FUZZ_REQUIRE(level >= 10 && level <= 50 && *origin != '\0');
    for (const char *byte = message; *byte != '\0'; byte++) {
        FUZZ_REQUIRE((unsigned char)*byte >= 0x20); /* one printable line */
    }
}

static void process(struct muster_timer_server *server) {
    struct pollfd waiting = {.fd = muster_timer_server_fd(server), .events = POLLIN};
    for (int turn = 0; turn < MOST_TURNS && poll(&waiting, 1, 0) > 0; turn++) {
        FUZZ_REQUIRE(muster_timer_server_process(server, NULL) == MUSTER_OK);
    }
}

/* "PID" in the input is this process's, so that a corpus can name one that lives. */
static void write_piece(int fifo, struct slice piece) {
    char line[8192];
    size_t length = 0;
    for (size_t i = 0; i < piece.length && length + 16 < sizeof line; i++) {
        if (i + 3 <= piece.length && memcmp(piece.data + i, "PID", 3) == 0) {
            length += (size_t)snprintf(line + length, 16, "%d", (int)getpid());
            i += 2;
        } else {
            line[length++] = (char)piece.data[i];
        }
    }
    (void)!write(fifo, line, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
    struct muster_timer_server *server = NULL;
    struct program program = {.choices = fuzz_take_byte(&input)};
    char directory[] = "/tmp/muster-fuzz-XXXXXX";
    char path[64];
    size_t count = 0;
    FUZZ_REQUIRE(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/timers", directory);
    settings.path = path;
    settings.may_ask = may_ask;
    settings.kill = pretend_to_kill;
    settings.event = take_event;
    settings.log = take_log;
    settings.context = &program;
    FUZZ_REQUIRE(muster_timer_server_new(&settings, &server, NULL) == MUSTER_OK);
    FUZZ_REQUIRE(muster_timer_server_start(server, NULL) == MUSTER_OK);
    int fifo = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    FUZZ_REQUIRE(fifo >= 0);
    while (input.length > 0) {
        size_t length = input.length < 4096 ? input.length : 4096;
        write_piece(fifo, (struct slice){input.data, length});
        input.data += length;
        input.length -= length;
        process(server);
    }
    close(fifo);
    process(server);
    FUZZ_REQUIRE(muster_timer_server_count(server, &count, NULL) == MUSTER_OK);
    FUZZ_REQUIRE((program.choices & 1) != 0 || count == 0);
    FUZZ_REQUIRE(muster_timer_server_stop(server, NULL) == MUSTER_OK);
    FUZZ_REQUIRE(program.told >= 2);
    muster_timer_server_free(server);
    FUZZ_REQUIRE(rmdir(directory) == 0);
    return 0;
}
