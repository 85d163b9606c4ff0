/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/standby_spare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/standby/standby_preparation.h"
#include "host/loop/files.h"
#include "host/standby/standby_gate.h"

/* Of the fourth descriptors that a process is started with. */
#define DESCRIPTOR_COUNT 4
/* Modules that one may name. All of PyTorch has some 3,000. */
#define LEFT_OUT_MAXIMUM 10000

struct standby_spare {
    int local_rank;
    pid_t pid;
    struct standby_gate *gate;
    struct standby_spare_words words;
    struct text_list environment; /* of the worker for whom it was started */
    size_t told;                  /* bytes of the list */
    bool is_forked;               /* of a warm parent; `pid` is 0 until it is here */
    bool has_spoken;              /* and `spoke` has not been called since */
    void (*spoke)(void *context, int local_rank);
    void *context;
};

/* What it says. */

static char *printable_reason(struct slice reason) {
    struct text text = {0};
    text_append_bytes(&text, (const char *)reason.data, reason.length);
    char *line = memory_duplicate_string(text_string(&text));
    utf8_make_line_printable(line);
    text_clear(&text);
    return line;
}

static void leave_out(struct standby_spare *spare, struct slice name) {
    struct text_list *names = &spare->words.left_out;
    if (names->count < LEFT_OUT_MAXIMUM) {
        text_list_add_taken(names, text_format("%.*s", (int)name.length, (const char *)name.data));
    }
}

static void hear(void *context, const struct gate_message *message) {
    struct standby_spare *spare = context;
    switch (message->kind) {
    case GATE_MESSAGE_HELLO:
        spare->words.has_reached_hook = true;
        spare->words.pid = (pid_t)message->hello.pid;
        break;
    case GATE_MESSAGE_READY:
        spare->words.is_ready = true;
        spare->words.is_at_line = message->ready.is_at_line;
        spare->words.memory_kib = message->ready.memory_kib;
        break;
    case GATE_MESSAGE_LEFT_OUT:
        leave_out(spare, message->name);
        return;
    case GATE_MESSAGE_FAILED:
    case GATE_MESSAGE_DIRTY:
    case GATE_MESSAGE_UNSUITED:
        spare->words.has_failed = message->kind == GATE_MESSAGE_FAILED;
        spare->words.is_unsuited = message->kind == GATE_MESSAGE_UNSUITED;
        free(spare->words.reason);
        spare->words.reason = printable_reason(message->reason);
        break;
    case GATE_MESSAGE_THROUGH:
        spare->words.has_gone_through = true;
        break;
    }
    spare->has_spoken = true;
}

static void tell(void *context) {
    struct standby_spare *spare = context;
    bool is_lost = spare->pid == 0 && standby_gate_is_closed(spare->gate);
    if (spare->has_spoken || is_lost) { /* of another one its process tells */
        spare->has_spoken = false;
        spare->spoke(spare->context, spare->local_rank);
    }
}

void standby_spare_drain(struct standby_spare *spare) {
    standby_gate_drain(spare->gate);
    tell(spare);
}

void standby_spare_shut(struct standby_spare *spare) {
    standby_gate_shut(spare->gate);
    spare->has_spoken = false;
}

/* Its start. Until it goes through its gate it reads nothing, and what it writes is kept. */

static void close_all(const int descriptors[DESCRIPTOR_COUNT]) {
    for (int i = 0; i < DESCRIPTOR_COUNT; i++) {
        if (descriptors[i] != -1) {
            close(descriptors[i]);
        }
    }
}

static enum failure_code open_descriptors(struct standby_spare *spare, struct event_loop *loop,
    int descriptors[DESCRIPTOR_COUNT], struct failure *failure) {
    const struct standby_gate_events events = {hear, tell, spare};
    descriptors[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (descriptors[0] == -1) {
        return failure_set_system(failure, errno, "cannot open /dev/null");
    }
    enum failure_code code =
        memory_file_new("muster-standby-stdout", true, &descriptors[1], failure);
    if (code == FAILURE_NONE) {
        code = memory_file_new("muster-standby-stderr", true, &descriptors[2], failure);
    }
    if (code == FAILURE_NONE) {
        code = standby_gate_new(loop, &events, &spare->gate, &descriptors[3], failure);
    }
    return code;
}

static enum failure_code spawn(struct standby_spare *spare, const struct standby_spare_order *order,
    const int descriptors[DESCRIPTOR_COUNT], struct failure *failure) {
    struct text_list environment = {0};
    struct process process;
    text_list_add_all(&environment, order->environment);
    const struct standby_dress dress = {.role = STANDBY_SPARE,
        .hook_directory = order->hook_directory,
        .evidence_signal = order->evidence_signal,
        .rest = order->rest,
        .is_alone = order->is_alone,
        .parent_of = order->is_parent ? (int)getpid() : 0};
    standby_environment_dress(&environment, &dress);
    enum failure_code code = order->starter->spawn(
        order->starter->context, order->local_rank, &environment, descriptors, &process, failure);
    if (code == FAILURE_NONE) {
        spare->pid = process.pid;
        process_family_add_spare(order->starter->family, &process);
        spare_treatment_begin(spare->pid);
        code = standby_gate_send_list(spare->gate, order->list, failure);
    }
    if (code != FAILURE_NONE && spare->pid != 0) {
        process_family_end_spare(order->starter->family, spare->pid);
    }
    text_list_clear(&environment);
    return code;
}

enum failure_code standby_spare_start(struct event_loop *loop,
    const struct standby_spare_order *order, struct standby_spare **out_spare,
    struct failure *failure) {
    struct standby_spare *spare = memory_allocate(sizeof *spare);
    int descriptors[DESCRIPTOR_COUNT] = {-1, -1, -1, -1};
    spare->local_rank = order->local_rank;
    text_list_add_all(&spare->environment, order->environment);
    spare->told = order->list.length;
    spare->spoke = order->spoke;
    spare->context = order->context;
    enum failure_code code = open_descriptors(spare, loop, descriptors, failure);
    if (code == FAILURE_NONE) {
        code = spawn(spare, order, descriptors, failure);
    }
    close_all(descriptors);
    if (code != FAILURE_NONE) {
        standby_spare_free(spare);
        return code;
    }
    *out_spare = spare;
    return FAILURE_NONE;
}

enum failure_code standby_spare_fork(struct event_loop *loop, struct standby_spare *parent,
    const struct standby_spare_order *order, struct standby_spare **out_spare,
    struct failure *failure) {
    struct standby_spare *spare = memory_allocate(sizeof *spare);
    const struct standby_gate_events events = {hear, tell, spare};
    int worker_fd = -1;
    spare->local_rank = order->local_rank;
    spare->is_forked = true;
    text_list_add_all(&spare->environment, order->environment);
    spare->spoke = order->spoke;
    spare->context = order->context;
    enum failure_code code = standby_gate_new(loop, &events, &spare->gate, &worker_fd, failure);
    if (code == FAILURE_NONE) {
        code = standby_gate_send_fork(parent->gate, worker_fd, failure);
        close(worker_fd);
    }
    if (code != FAILURE_NONE) {
        standby_spare_free(spare);
        return code;
    }
    *out_spare = spare;
    return FAILURE_NONE;
}

void standby_spare_look_at(struct standby_spare *parent, pid_t worker) {
    (void)!standby_gate_send_pages(parent->gate, worker, NULL);
}

void standby_spare_make_own(struct standby_spare *spare) {
    (void)!standby_gate_send_pages(spare->gate, 0, NULL);
}

bool standby_spare_adopt(
    struct standby_spare *spare, struct process_family *family, struct slice list) {
    if (!process_family_adopt_spare(family, spare->words.pid)) {
        return false;
    }
    spare->pid = spare->words.pid;
    spare_treatment_begin(spare->pid);
    return standby_gate_send_list(spare->gate, list, NULL) == FAILURE_NONE;
}

void standby_spare_free(struct standby_spare *spare) {
    if (spare != NULL) {
        standby_gate_free(spare->gate);
        free(spare->words.reason);
        text_list_clear(&spare->words.left_out);
        text_list_clear(&spare->environment);
        free(spare);
    }
}

pid_t standby_spare_pid(const struct standby_spare *spare) {
    return spare->pid;
}

const struct standby_spare_words *standby_spare_words(const struct standby_spare *spare) {
    return &spare->words;
}

bool standby_spare_is_forked(const struct standby_spare *spare) {
    return spare->is_forked;
}

const struct text_list *standby_spare_environment(const struct standby_spare *spare) {
    return &spare->environment;
}

void standby_spare_drop_rank(struct standby_spare *spare) {
    standby_environment_drop_rank(&spare->environment);
}

bool standby_spare_is_told(const struct standby_spare *spare, struct slice list) {
    return list.length == spare->told;
}

size_t standby_spare_cut(const struct standby_spare *spare, struct learned_list *list) {
    const struct text_list *names = &spare->words.left_out;
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        count += learned_list_leave_out(list, slice_from_string(names->items[i])) ? 1 : 0;
    }
    return count;
}

/* Its way. */

const char *standby_spare_difference(
    const struct standby_spare *spare, const struct text_list *environment) {
    return standby_environment_difference(&spare->environment, environment);
}

bool standby_spare_teach(struct standby_spare *spare, struct slice list) {
    struct slice rest = slice_from(list, spare->told);
    spare->words.is_ready = false;
    spare->told = list.length;
    return standby_gate_send_more(spare->gate, rest, NULL) == FAILURE_NONE;
}

static int own_unless_given(int descriptor, int own) {
    return descriptor != -1 ? descriptor : own;
}

enum failure_code standby_spare_send(struct standby_spare *spare,
    const struct text_list *environment, const int streams[2], int record,
    struct failure *failure) {
    char *directory = getcwd(NULL, 0);
    if (directory == NULL) {
        return failure_set_system(failure, errno, "the working directory has no name any more");
    }
    const struct standby_passage passage = {
        .directory = directory,
        .environment = environment,
        .descriptors = {STDIN_FILENO, own_unless_given(streams[0], STDOUT_FILENO),
            own_unless_given(streams[1], STDERR_FILENO), record},
    };
    spare_treatment_end(spare->pid);
    enum failure_code code = standby_gate_send_go(spare->gate, &passage, failure);
    free(directory);
    return code;
}
