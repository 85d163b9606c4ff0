/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/standby_spare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "host/loop/files.h"
#include "host/standby/standby_gate.h"
#include "wire/standby/gate_message.h"

void worker_record_init(struct worker_record *record) {
    *record = (struct worker_record){.fd = -1};
}

void worker_record_expect_end(struct worker_record *record) {
    death_notice_free(record->notice);
    record->notice = NULL;
}

void worker_record_clear(struct worker_record *record) {
    worker_record_expect_end(record);
    if (record->fd != -1) {
        close(record->fd);
    }
    worker_record_init(record);
}

bool worker_record_renew(struct worker_record *record, struct event_loop *loop,
    const struct death_notice_events *events) {
    worker_record_clear(record);
    if (memory_file_with_head("muster-standby-record", STANDBY_RECORD_HEAD, &record->fd, NULL) !=
        FAILURE_NONE) {
        return false;
    }
    record->length = STANDBY_RECORD_HEAD;
    record->read = STANDBY_RECORD_HEAD;
    record->grown = event_loop_now(loop);
    (void)!death_notice_new(loop, record->fd, events, &record->notice, NULL);
    return true;
}

/* The first line of a record is shorter. */
#define HELLO_MAXIMUM 64

static bool says_hello_in(struct slice text, int64_t pid) {
    struct slice imports;
    int64_t greeter;
    return standby_record_read_hello(text, &greeter, &imports) == FAILURE_NONE && greeter == pid;
}

/* Without the last one, which may not have been written to its end. */
static struct slice whole_lines(struct slice text) {
    while (text.length > 0 && text.data[text.length - 1] != '\n') {
        text.length--;
    }
    return text;
}

/* When it has grown is told by the looks alone. The time that the file has of its last change is of
 * a clock that may be set. */
bool worker_record_look(
    struct worker_record *record, struct learned_list *learned, struct instant now) {
    struct bytes text = {0};
    size_t length = memory_file_length(record->fd);
    death_notice_look(record->notice, record->worker);
    if (length == record->length) {
        return false;
    }
    record->length = length;
    record->grown = now;
    memory_file_read(record->fd, record->read, STANDBY_RECORD_MAXIMUM, &text);
    record->has_hello =
        record->has_hello || says_hello_in(bytes_slice(&text), (int64_t)record->worker);
    if (record->has_hello) {
        struct slice lines = whole_lines(bytes_slice(&text));
        learned_list_add_text(learned, lines);
        record->read += lines.length;
        memory_file_forget(record->fd, STANDBY_RECORD_HEAD + HELLO_MAXIMUM, record->read);
    }
    bytes_clear(&text);
    return record->has_hello;
}

/* Whether the process has said hello in its record. */
static bool says_hello(int record, pid_t pid) {
    struct bytes bytes = {0};
    memory_file_read(record, STANDBY_RECORD_HEAD, HELLO_MAXIMUM, &bytes);
    bool is_there = says_hello_in(bytes_slice(&bytes), (int64_t)pid);
    bytes_clear(&bytes);
    return is_there;
}

bool worker_record_can_answer(const struct worker_record *record, pid_t pid) {
    return record->fd != -1 && record->worker == pid && says_hello(record->fd, pid);
}

/* Probe. */

static enum failure_code start(struct standby_probe *probe,
    const struct agent_standby_starter *starter, const struct text_list *environment, int nowhere,
    struct failure *failure) {
    const int descriptors[] = {nowhere, nowhere, nowhere, probe->record};
    struct process process;
    enum failure_code code =
        starter->probe(starter->context, environment, descriptors, &process, failure);
    if (code == FAILURE_NONE) {
        probe->pid = process.pid;
        process_family_add_spare(starter->family, &process);
    }
    return code;
}

enum failure_code standby_probe_start(struct standby_probe *probe,
    const struct agent_standby_starter *starter, const struct text_list *environment,
    const char *hook_directory, struct failure *failure) {
    struct text_list dressed = {0};
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere == -1) {
        return failure_set_system(failure, errno, "cannot open /dev/null");
    }
    text_list_add_all(&dressed, environment);
    const struct standby_dress dress = {.role = STANDBY_RECORD, .hook_directory = hook_directory};
    standby_environment_dress(&dressed, &dress);
    enum failure_code code = memory_file_with_head(
        "muster-standby-record", STANDBY_RECORD_HEAD, &probe->record, failure);
    if (code == FAILURE_NONE) {
        code = start(probe, starter, &dressed, nowhere, failure);
        if (code != FAILURE_NONE) {
            close(probe->record);
        }
    }
    close(nowhere);
    text_list_clear(&dressed);
    return code;
}

bool standby_probe_end(struct standby_probe *probe) {
    bool has_hello = probe->pid != 0 && says_hello(probe->record, probe->pid);
    if (probe->pid != 0) {
        close(probe->record);
    }
    *probe = (struct standby_probe){0};
    return has_hello;
}

/* Spare. */

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

/* Telling. */

#define BYTES_PER_MIB (1024.0 * 1024.0)
#define BYTES_PER_GIB (1024.0 * BYTES_PER_MIB)

static void add_part(struct text *line, int count, const char *one, const char *several) {
    if (count > 0) {
        text_append_format(line, ", %d %s", count, count == 1 ? one : several);
    }
}

static void tell_ready(const struct log *log, const struct standby_effect *effect) {
    double bytes = (double)effect->told.bytes;
    bool is_large = bytes >= BYTES_PER_GIB;
    struct text line = {0};
    add_part(
        &line, effect->told.at_line, "at the line of its program", "at the line of their program");
    log_info(log, "standby workers ready: %d of %d, %.1f %s%s", effect->told.count,
        effect->told.total, bytes / (is_large ? BYTES_PER_GIB : BYTES_PER_MIB),
        is_large ? "GiB" : "MiB", text_string(&line));
    text_clear(&line);
}

static void tell_awaited(const struct log *log, const struct launch_config *config,
    const struct standby_awaited *awaited) {
    struct text line = {0};
    add_part(&line, awaited->importing, "is importing", "are importing");
    if (awaited->importing > 0 && config->standby_rest > 0) {
        text_append(&line, " (they rest while workers want the CPU: --standby-rest)");
    }
    if (awaited->unbegun > 0) {
        text_append_format(&line,
            ", %d %s until no worker has imported anything for %g s (--standby-after)",
            awaited->unbegun, awaited->unbegun == 1 ? "waits" : "wait",
            duration_seconds(config->standby_after));
    }
    add_part(&line, awaited->ended, "has ended and is made anew later",
        "have ended and are made anew later");
    log_info(log, "standby workers: %d of %d ready%s", awaited->ready, awaited->total,
        text_string(&line));
    text_clear(&line);
}

static const char *const cold_words[STANDBY_COLD_COUNT] = {
    [STANDBY_COLD_NONE] = "none yet: workers were not quiet",
    [STANDBY_COLD_SILENT] = "none: no worker has reached the hook",
    [STANDBY_COLD_SCARCE] = "none: memory or processes are short",
    [STANDBY_COLD_DUE] = "none yet: they import one at a time",
    [STANDBY_COLD_IMPORTING] = "importing",
    [STANDBY_COLD_LEARNING] = "learning",
    [STANDBY_COLD_ENDED] = "ended",
    [STANDBY_COLD_REFUSED] = "refused",
    [STANDBY_COLD_OFF] = "none any more",
};

/* Ranks that are beside each other and cold for the same reason are one part of the line. Returns
 * the rank after them. */
static int add_cold(struct text *line, const struct standby_effect *effect, int first) {
    const enum standby_cold *cold = effect->told.cold;
    int end = first + 1;
    while (end < effect->told.total && cold[end] == cold[first]) {
        end++;
    }
    if (cold[first] != STANDBY_COLD_NOT) {
        text_append_format(line, "%s%d", line->length == 0 ? "; cold: local rank " : ", ", first);
        if (end - first > 1) {
            text_append_format(line, "-%d", end - 1);
        }
        text_append_format(line, " (%s)", cold_words[cold[first]]);
    }
    return end;
}

static void tell_used(const struct log *log, const struct standby_effect *effect) {
    struct text line = {0};
    for (int rank = 0; effect->told.cold != NULL && rank < effect->told.total;) {
        rank = add_cold(&line, effect, rank);
    }
    log_info(log, "started from standby: %d of %d workers%s", effect->told.count,
        effect->told.total, text_string(&line));
    text_clear(&line);
}

enum log_level standby_level_of_none(const struct launch_config *config) {
    return config->standby == LAUNCH_STANDBY_AUTO ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING;
}

static void tell_off(const struct log *log, const struct launch_config *config,
    const struct standby_effect *effect) {
    enum log_level level = standby_level_of_none(config);
    static const char consequence[] = "there are no standby workers in this job from now on";
    struct process_exit how = effect->off.exit;
    int rank = effect->off.local_rank;
    switch (effect->off.why) {
    case STANDBY_OFF_UNSUITED:
        log_record(log, level, LOG_ORIGIN,
            "what nobody may import before the program runs cannot be left out of what standby "
            "workers import; %s",
            consequence);
        break;
    case STANDBY_OFF_LATE:
        log_record(log, level, LOG_ORIGIN,
            "the standby worker of local rank %d did not reach its hook within %d s; %s", rank,
            STANDBY_WARMING_SECONDS, consequence);
        break;
    case STANDBY_OFF_ENDED:
        log_record(log, level, LOG_ORIGIN,
            "the standby worker of local rank %d ended with status %d before it was ready; %s",
            rank, how.value, consequence);
        break;
    case STANDBY_OFF_DEATHS:
        log_record(log, level, LOG_ORIGIN, "%d standby workers have ended, the last by %s %d; %s",
            STANDBY_DEATHS_MAXIMUM, how.is_signal ? "signal" : "exit status", how.value,
            consequence);
        break;
    case STANDBY_OFF_DIRTY: /* it has said so itself */
    case STANDBY_OFF_NONE:
    case STANDBY_OFF_COUNT:
        break;
    }
}

void standby_tell(const struct log *log, const struct launch_config *config,
    const struct standby_effect *effect) {
    switch (effect->kind) {
    case STANDBY_EFFECT_TELL_READY:
        tell_ready(log, effect);
        break;
    case STANDBY_EFFECT_TELL_TAUGHT:
        log_info(log, "standby workers have imported what workers did since: %d of %d",
            effect->told.count, effect->told.total);
        break;
    case STANDBY_EFFECT_TELL_USED:
        tell_used(log, effect);
        break;
    case STANDBY_EFFECT_TELL_AWAITED:
        tell_awaited(log, config, &effect->awaited);
        break;
    case STANDBY_EFFECT_TELL_OFF:
        tell_off(log, config, effect);
        break;
    case STANDBY_EFFECT_TELL_SCARCE:
        log_info(log,
            "--standby auto: there are no standby workers while they would take more "
            "than 1/%d of the memory that is available, or less than half of the processes of a "
            "cgroup are left (pids.max)",
            STANDBY_MEMORY_PART);
        break;
    case STANDBY_EFFECT_TELL_SILENT:
        log_record(log, standby_level_of_none(config), LOG_ORIGIN,
            "there are no standby workers: no worker has reached their hook. It is "
            "not reached where Python is started with -I, -E or -S, or by a program "
            "that clears the environment or runs it in another container");
        break;
    case STANDBY_EFFECT_WARM:
    case STANDBY_EFFECT_TEACH:
    case STANDBY_EFFECT_END_SPARE:
    case STANDBY_EFFECT_END_ALL:
    case STANDBY_EFFECT_LOOK:
    case STANDBY_EFFECT_ARM_TIMER:
    case STANDBY_EFFECT_PUBLISH:
    case STANDBY_EFFECT_WARMED:
    case STANDBY_EFFECT_DISARM_TIMER:
    case STANDBY_EFFECT_COUNT:
        break;
    }
}

void standby_tell_choice(
    const struct log *log, enum standby_choice choice, int worker_count, int cpu_count) {
    switch (choice) {
    case STANDBY_CHOICE_NO_RESTART:
        log_info(log, "there are no standby workers: with --max-restarts 0 and a fixed number of "
                      "nodes the workers are never started again");
        break;
    case STANDBY_CHOICE_NO_PYTHON:
        log_info(log, "--standby auto: there are no standby workers, since the program is not "
                      "Python; --standby on makes them if it calls muster_standby_wait()");
        break;
    case STANDBY_CHOICE_FEW_CPUS:
        log_info(log,
            "--standby auto: there are no standby workers, since %d worker(s) on %d CPU(s) leave "
            "less than two CPUs for each; --standby on makes them all the same",
            worker_count, cpu_count);
        break;
    case STANDBY_CHOICE_WANTED:
    case STANDBY_CHOICE_OFF:
        break;
    }
}

void standby_tell_dirty(
    const struct log *log, const struct launch_config *config, int local_rank, const char *reason) {
    log_record(log, standby_level_of_none(config), LOG_ORIGIN,
        "the standby worker of local rank %d would not be what a worker is: %s; there are no "
        "standby workers in this job from now on",
        local_rank, reason);
}

void standby_tell_separate(const struct log *log, const char *reason) {
    log_info(log,
        "each standby worker imports by itself, since one parent cannot fork them: %s "
        "(--standby-parent)",
        reason);
}

void standby_tell_outdated(const struct log *log, int local_rank, const char *reason) {
    log_info(log,
        "the standby worker of local rank %d is out of date: %s; the worker is started anew",
        local_rank, reason);
}

void standby_tell_unsuited(
    const struct log *log, int local_rank, const char *reason, size_t count) {
    log_info(log,
        "the standby worker of local rank %d would not be what a worker is: %s; %zu module(s) wait "
        "for the program from now on: that one, and what imports it",
        local_rank, reason, count);
}
