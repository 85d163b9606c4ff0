/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/failure/failure_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/workers/signal_name.h"

static const uint8_t *find_newline(const uint8_t *at, const uint8_t *end) {
    return at == end ? NULL : memchr(at, '\n', (size_t)(end - at));
}

/* Where the last lines begin. */
static const uint8_t *find_start(struct slice bytes) {
    size_t at =
        bytes.length > 0 && bytes.data[bytes.length - 1] == '\n' ? bytes.length - 1 : bytes.length;
    size_t lines = 0;
    while (at > 0) {
        lines += bytes.data[at - 1] == '\n' ? 1 : 0;
        if (lines == LAST_LINES_MAXIMUM) {
            break;
        }
        at--;
    }
    return bytes.data + at;
}

static void last_lines_append_line(const uint8_t *start, const uint8_t *end, struct text *out) {
    while (end > start && end[-1] == '\r') {
        end--;
    }
    const uint8_t *shown = end;
    while (shown > start && shown[-1] != '\r') {
        shown--;
    }
    text_append_bytes(out, (const char *)shown, (size_t)(end - shown));
    text_append(out, "\n");
}

void last_lines_append(struct slice end, bool is_cut, struct text *out) {
    if (end.length == 0) {
        return;
    }
    if (end.length > LAST_LINES_WINDOW) {
        end = slice_from(end, end.length - LAST_LINES_WINDOW);
        is_cut = true;
    }
    const uint8_t *stop = end.data + end.length;
    const uint8_t *first_newline = is_cut ? find_newline(end.data, stop) : NULL;
    if (first_newline != NULL && first_newline + 1 < stop) {
        end = slice_from(end, (size_t)(first_newline + 1 - end.data));
    }
    size_t before = out->length;
    for (const uint8_t *line = find_start(end); line < stop;) {
        const uint8_t *newline = find_newline(line, stop);
        last_lines_append_line(line, newline == NULL ? stop : newline, out);
        line = newline == NULL ? stop : newline + 1;
    }
    out->length = before + utf8_make_printable(out->data + before, out->length - before);
    out->data[out->length] = '\0';
}

/* Hang summary. */

void hang_summary_clear(struct hang_summary *summary) {
    free(summary->call);
    free(summary->waits_in);
    free(summary->stack);
    *summary = (struct hang_summary){0};
}

void hang_summary_copy(const struct hang_summary *summary, struct hang_summary *out_copy) {
    *out_copy = (struct hang_summary){
        .state = summary->state,
        .call = memory_duplicate_string(summary->call),
        .waits_in = memory_duplicate_string(summary->waits_in),
        .stack = memory_duplicate_string(summary->stack),
        .thread_count = summary->thread_count,
        .file_error = summary->file_error,
    };
}

/* The state in words, for example "sleeping" for 'S'. */
static const char *hang_summary_state_words(char state) {
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "in uninterruptible sleep";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "ended";
    case 'I':
        return "idle";
    case '\0':
        return "gone";
    default:
        return "in a state not known";
    }
}

void hang_summary_append(const struct hang_summary *summary, struct text *out) {
    text_append(out, hang_summary_state_words(summary->state));
    if (summary->call != NULL) {
        text_append_format(out, " in %s", summary->call);
    }
    if (summary->waits_in != NULL) {
        text_append_format(out, " (%s)", summary->waits_in);
    }
    if (summary->thread_count > 1) {
        text_append_format(out, ", %zu threads", summary->thread_count);
    }
    if (summary->stack != NULL) {
        text_append_format(out, ", at %.*s", (int)strcspn(summary->stack, "\n"), summary->stack);
    }
}

/* Death explanation. */

/* What a signal usually means that the kernel or the program itself has sent. Signals that people
 * and job managers send (SIGTERM, SIGINT, …) need no explanation. */
static const char *signal_meaning(int signal) {
    static const struct {
        const char *name;
        const char *meaning;
    } meanings[] = {
        {"SIGSEGV", "invalid memory access"},
        {"SIGBUS", "memory access that could not be served; often /dev/shm is full"},
        {"SIGABRT", "the program ended itself with abort(), as after a failed assertion"},
        {"SIGFPE", "arithmetic error, such as an integer division by zero"},
        {"SIGILL", "invalid instruction; often built for another kind of CPU"},
        {"SIGTRAP", "breakpoint or failed check in the program"},
        {"SIGSYS", "system call that a seccomp filter forbids"},
        {"SIGPIPE", "wrote to a pipe or connection that nobody reads"},
        {"SIGXCPU", "limit on CPU time reached, see ulimit -t"},
        {"SIGXFSZ", "limit on file size reached, see ulimit -f"},
    };
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (signal_number_from_name(meanings[i].name) == signal) {
            return meanings[i].meaning;
        }
    }
    return NULL;
}

/* Begins the next sentence. */
static void separate(struct text *out, size_t start) {
    if (out->length > start) {
        text_append(out, "; ");
    }
}

static void explain_recorded_kill(const struct death_facts *facts, struct text *out) {
    text_append(out, "killed by the kernel's OOM killer: ");
    text_append(out, facts->is_memory_cgroup_kill ? "its control group's memory limit was reached"
                                                  : "the machine's memory was used up");
    if (facts->resident_kib > 0) {
        text_append_format(out, " (the process held %" PRIu64 " MiB)", facts->resident_kib / 1024);
    }
}

/* Explains OOM kills that were counted, while the kernel's log does not say which processes were
 * killed. */
static void explain_counted_kills(const struct death_facts *facts, struct text *out) {
    bool may_be_victim = facts->exit.is_signal && facts->exit.value == SIGNAL_NUMBER_KILL;
    if (facts->counts_machine && !may_be_victim) {
        return; /* probably processes that do not belong to this job */
    }
    if (may_be_victim) {
        text_append_format(out, "%s killed by the kernel's OOM killer, which",
            facts->counts_machine ? "possibly" : "most likely");
    } else {
        text_append(out, "the kernel's OOM killer");
    }
    text_append_format(out, " ended %" PRIu64 " process%s %s meanwhile", facts->oom_kills,
        facts->oom_kills == 1 ? "" : "es",
        facts->counts_machine ? "on this machine" : "of this control group");
}

/* Expands a core pattern. Returns false when the pattern has parts that are not known afterwards
 * (the name of the command, the time, …). */
static bool expand_pattern(const struct death_facts *facts, struct text *path) {
    bool has_pid = false;
    for (const char *at = facts->core_pattern; *at != '\0'; at++) {
        if (*at != '%') {
            text_append_bytes(path, at, 1);
            continue;
        }
        at++;
        if (*at == 'p' || *at == 'P') {
            text_append_format(path, "%" PRId64, facts->pid);
            has_pid = true;
        } else if (*at == 's') {
            text_append_format(path, "%d", facts->exit.value);
        } else if (*at == '%') {
            text_append(path, "%");
        } else {
            return false;
        }
    }
    if (facts->core_uses_pid && !has_pid) {
        text_append_format(path, ".%" PRId64, facts->pid);
    }
    return true;
}

static void explain_core(const struct death_facts *facts, struct text *out) {
    const char *pattern = facts->core_pattern;
    if (pattern == NULL || *pattern == '\0') {
        text_append(out, "core dumped");
        return;
    }
    if (*pattern == '|') {
        const char *program = pattern + 1 + strspn(pattern + 1, " ");
        text_append_format(out, "core dump handed to %.*s", (int)strcspn(program, " "), program);
        return;
    }
    struct text path = {0};
    if (expand_pattern(facts, &path)) {
        text_append_format(out, "core dumped to '%s'", text_string(&path));
    } else {
        text_append_format(out, "core dumped to a file named by the pattern '%s'", pattern);
    }
    if (*pattern != '/') {
        text_append(out, " in the worker's working directory");
    }
    text_clear(&path);
}

void death_explain(const struct death_facts *facts, struct text *out) {
    const struct process_exit *exit = &facts->exit;
    size_t start = out->length;
    bool is_success = !exit->is_signal && exit->value == 0;
    if (facts->has_kernel_record) {
        explain_recorded_kill(facts, out);
    } else if (facts->oom_kills > 0 && !is_success) {
        explain_counted_kills(facts, out);
    }
    const char *meaning = exit->is_signal ? signal_meaning(exit->value) : NULL;
    if (meaning != NULL) {
        separate(out, start);
        text_append(out, meaning);
    }
    if (exit->is_signal && exit->has_dumped_core) {
        separate(out, start);
        explain_core(facts, out);
    }
}

/* Report. */

void failure_account_clear(struct failure_account *account) {
    free(account->host);
    free(account->node);
    free(account->start_message);
    free(account->error_file);
    free(account->log_file);
    free(account->message);
    free(account->summary);
    free(account->evidence);
    free(account->note);
    *account = (struct failure_account){0};
}

void failure_account_copy(const struct failure_account *account, struct failure_account *out_copy) {
    struct failure_account copy = *account;
    copy.host = memory_duplicate_string(account->host);
    copy.node = memory_duplicate_string(account->node);
    copy.start_message = memory_duplicate_string(account->start_message);
    copy.error_file = memory_duplicate_string(account->error_file);
    copy.log_file = memory_duplicate_string(account->log_file);
    copy.message = memory_duplicate_string(account->message);
    copy.summary = memory_duplicate_string(account->summary);
    copy.evidence = memory_duplicate_string(account->evidence);
    copy.note = memory_duplicate_string(account->note);
    failure_account_clear(out_copy);
    *out_copy = copy;
}

static void describe_exit(struct process_exit exit, struct text *out) {
    if (!exit.is_signal) {
        text_append_format(out, "exit code %d", exit.value);
        return;
    }
    const char *name = signal_name_from_number(exit.value);
    text_append_format(out, "signal %d", exit.value);
    if (name != NULL) {
        text_append_format(out, " (%s)", name);
    }
    if (exit.has_dumped_core) {
        text_append(out, ", core dumped");
    }
}

static void describe_in_full(const struct failure_account *account, struct text *out) {
    text_append_format(out, "rank %d (local_rank %d) on %s ", account->rank, account->local_rank,
        account->host == NULL ? "an unknown host" : account->host);
    if (account->start_message != NULL) {
        text_append_format(out, "could not be started: %s", account->start_message);
        return;
    }
    if (account->stuck.nanoseconds > 0) {
        text_append_format(out, "hung in the kernel for %.1f s", duration_seconds(account->stuck));
        return;
    }
    text_append(out, "failed: ");
    describe_exit(account->exit, out);
    const char *why = account->summary != NULL ? account->summary : account->evidence;
    if (why != NULL) {
        text_append_format(out, " (%s)", why);
    }
}

void failure_account_describe(const struct failure_account *account, struct text *out) {
    struct text full = {0};
    describe_in_full(account, &full);
    size_t length = 0;
    for (size_t i = 0; i < full.length;) {
        const uint8_t *bytes = (const uint8_t *)full.data + i;
        size_t width = utf8_character_length(bytes, full.length - i);
        if (length + (width == 0 ? 1 : width) > FAILURE_ACCOUNT_LINE_MAXIMUM) {
            break;
        }
        if (width == 0) {
            text_append(out, "?");
            width = 1;
        } else if (bytes[0] < 0x20 || bytes[0] == 0x7f) {
            text_append(out, " ");
        } else {
            text_append_bytes(out, full.data + i, width);
        }
        length += width;
        i += width;
    }
    text_clear(&full);
}

/* Judgement. */

#define SIGNAL_NUMBER_ABORT 6

/* Messages of the kernel, TCPStore, Gloo and NCCL, in lower case. */
static const char *const phrases[] = {
    "broken pipe",
    "connection refused",
    "connection reset by",
    "connection closed by",
    "connection was likely closed",
    "failed to recv, got 0 bytes",
    "failed on socketimpl",
    "socket closed",
    "recv operation to complete",
    "send operation to complete",
    "pair closure",
    "ncclremoteerror",
    "remote process exit",
    "nccl communicator was aborted",
    "collective operation timeout",
};

static char small_letter(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool starts_with_phrase(const char *text, const char *phrase) {
    for (; *phrase != '\0'; text++, phrase++) {
        if (small_letter(*text) != *phrase) {
            return false;
        }
    }
    return true;
}

static bool contains_phrase(const char *text, const char *phrase) {
    const char initials[] = {phrase[0], (char)(phrase[0] - 'a' + 'A'), '\0'};
    for (; (text = strpbrk(text, initials)) != NULL; text++) {
        if (starts_with_phrase(text, phrase)) {
            return true;
        }
    }
    return false;
}

static bool describes_lost_peer(const char *text) {
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        if (contains_phrase(text, phrases[i])) {
            return true;
        }
    }
    return false;
}

enum failure_judgement failure_judge(
    const struct failure_account *account, bool is_from_our_signal) {
    if (is_from_our_signal) {
        return FAILURE_JUDGED_TERMINATED;
    }
    if (account->message != NULL) {
        return describes_lost_peer(account->message) ? FAILURE_JUDGED_DISCONNECTED
                                                     : FAILURE_JUDGED_INDEPENDENT;
    }
    /* NCCL's watchdog ends its process by abort. Other signals, a worker that never ran and a
     * worker that hangs have nothing to do with other nodes. */
    bool has_ended = account->start_message == NULL && account->stuck.nanoseconds == 0;
    bool may_be_consequence =
        !account->exit.is_signal || account->exit.value == SIGNAL_NUMBER_ABORT;
    return has_ended && may_be_consequence ? FAILURE_JUDGED_UNKNOWN : FAILURE_JUDGED_INDEPENDENT;
}

const char *failure_judgement_text(enum failure_judgement judgement) {
    switch (judgement) {
    case FAILURE_JUDGED_TERMINATED:
        return "consequence: ended by the launcher";
    case FAILURE_JUDGED_DISCONNECTED:
        return "consequence: lost its connection to another worker";
    case FAILURE_JUDGED_UNKNOWN:
        return "unknown: it left no message";
    case FAILURE_JUDGED_INDEPENDENT:
        break;
    }
    return "independent of the root cause, as far as can be told";
}

/* Report. */

#define MAXIMUM_RULE_WIDTH 60
#define NOT_AVAILABLE "<N/A>"

static const char exception_line[] =
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n";
static const char no_traceback_hint[] =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

static const char *signal_text(int signal) {
    const char *name = signal_name_from_number(signal);
    return name != NULL ? name : NOT_AVAILABLE;
}

/* Every further line is indented by two blanks, as torchrun indents tracebacks. */
static void append_indented(struct text *out, const char *message) {
    for (const char *end; (end = strchr(message, '\n')) != NULL; message = end + 1) {
        text_append_bytes(out, message, (size_t)(end - message));
        text_append(out, "\n  ");
    }
    text_append(out, message);
}

static void append_generated_message(
    struct text *out, const struct failure_report_job *job, const struct failure_account *account) {
    if (account->start_message != NULL) {
        append_indented(out, account->start_message);
    } else if (account->stuck.nanoseconds > 0) {
        text_append_format(out,
            "PID %" PRId64 " hung in the kernel for %.1f s (uninterruptible sleep, state D)",
            account->pid, duration_seconds(account->stuck));
    } else if (account->exit.is_signal) {
        text_append_format(out, "Signal %d (%s) received by PID %" PRId64, account->exit.value,
            signal_text(account->exit.value), account->pid);
    } else {
        text_append(out, job->is_python ? no_traceback_hint : NOT_AVAILABLE);
    }
}

static void append_message(
    struct text *out, const struct failure_report_job *job, const struct failure_account *account) {
    bool has_message = account->message != NULL && account->message[0] != '\0';
    if (!has_message) {
        append_generated_message(out, job, account);
    } else if (account->is_message_object) {
        append_indented(out, account->message);
    } else {
        text_append(out, account->message);
    }
    const char *details[] = {
        account->exit.is_signal && account->exit.has_dumped_core ? "core dumped" : NULL,
        account->evidence, account->note};
    for (size_t i = 0; i < sizeof details / sizeof *details; i++) {
        if (details[i] != NULL) {
            text_append(out, has_message ? "\n  " : "; ");
            append_indented(out, details[i]);
        }
    }
}

static void append_exit(struct text *out, const struct failure_account *account) {
    text_append(out, "  exitcode  : ");
    if (account->start_message != NULL) {
        text_append(out, NOT_AVAILABLE " (not started)\n");
        return;
    }
    if (account->stuck.nanoseconds > 0) {
        text_append_format(out, NOT_AVAILABLE " (pid: %" PRId64 ") (stuck)\n", account->pid);
        return;
    }
    text_append_format(
        out, "%d (pid: %" PRId64 ") ", process_exit_python_code(account->exit), account->pid);
    if (account->exit.is_signal && signal_name_from_number(account->exit.value) != NULL) {
        text_append_format(out, " (%s)", signal_text(account->exit.value));
    }
    text_append(out, "\n");
}

/* Text of another node that must not look like further lines of the report. */
static void append_line(struct text *out, const char *text) {
    size_t start = out->length;
    text_append(out, text);
    utf8_make_line_printable(out->data + start);
    out->length = start + strlen(out->data + start);
    text_append(out, "\n");
}

/* Marked, so that nothing in them can be taken for a line of the report. */
static void append_last_lines(struct text *out, const char *lines) {
    if (lines == NULL || *lines == '\0') {
        return;
    }
    text_append(out, "  last lines of log_file:\n");
    for (const char *end; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        text_append(out, end > lines ? "  | " : "  |");
        text_append_bytes(out, lines, (size_t)(end + 1 - lines));
    }
}

static void append_block(struct text *out, const struct failure_report_job *job, size_t index,
    const struct failure_report_entry *entry) {
    const struct failure_report_time *time = &entry->time;
    const struct failure_account *account = entry->account;
    text_append_format(out, "[%zu]:\n", index);
    text_append_format(out, "  time      : %04d-%02d-%02d_%02d:%02d:%02d\n", time->year,
        time->month, time->day, time->hour, time->minute, time->second);
    text_append(out, "  host      : ");
    append_line(out, account->host);
    text_append_format(
        out, "  rank      : %d (local_rank: %d)\n", account->rank, account->local_rank);
    append_exit(out, account);
    text_append(out, "  error_file: ");
    append_line(out, account->error_file != NULL ? account->error_file : NOT_AVAILABLE);
    if (account->log_file != NULL) {
        text_append(out, "  log_file  : ");
        append_line(out, account->log_file);
    }
    if (entry->judgement != NULL) {
        text_append_format(out, "  judgement : %s\n", entry->judgement);
    }
    text_append(out, "  traceback : ");
    append_message(out, job, account);
    text_append(out, "\n");
    append_last_lines(out, entry->last_lines);
}

/* The length of the longest line, in characters and not in bytes. */
static size_t widest_line(const char *text) {
    size_t widest = 0;
    size_t width = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            width = 0;
        } else if (((unsigned char)*text & 0xc0) != 0x80 && ++width > widest) {
            widest = width;
        }
    }
    return widest;
}

static void append_rule(struct text *out, char character, size_t width) {
    char rule[MAXIMUM_RULE_WIDTH + 1];
    memset(rule, character, width);
    rule[width] = '\n';
    text_append_bytes(out, rule, width + 1);
}

static void append_others(struct text *out, const struct failure_report_job *job,
    const struct failure_report_entry *entries, size_t count, size_t root) {
    text_append(out, "Failures:\n");
    if (count < 2) {
        text_append(out, "  <NO_OTHER_FAILURES>\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (i != root) {
            append_block(out, job, i, &entries[i]);
        }
    }
}

void failure_report_format(struct text *out, const struct failure_report_job *job,
    const struct failure_report_entry *entries, size_t count, size_t root) {
    struct text title = {0};
    struct text root_block = {0};
    struct text others = {0};
    text_append_format(&title, "%s FAILED\n", job->name);
    append_block(&root_block, job, root, &entries[root]);
    append_others(&others, job, entries, count, root);
    struct text *parts[] = {&title, &root_block, &others};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        parts[i]->length = utf8_make_printable(parts[i]->data, parts[i]->length);
        parts[i]->data[parts[i]->length] = '\0';
    }

    size_t width = widest_line(text_string(&title));
    size_t root_width = widest_line(text_string(&root_block));
    size_t others_width = count > 1 ? widest_line(text_string(&others)) : 0;
    width = root_width > width ? root_width : width;
    width = others_width > width ? others_width : width;
    width = width > MAXIMUM_RULE_WIDTH ? MAXIMUM_RULE_WIDTH : width;

    text_append(out, exception_line);
    append_rule(out, '=', width);
    text_append(out, text_string(&title));
    append_rule(out, '-', width);
    text_append(out, "Root Cause (first observed failure):\n");
    text_append(out, text_string(&root_block));
    append_rule(out, '-', width);
    text_append(out, text_string(&others));
    append_rule(out, '=', width);
    text_clear(&title);
    text_clear(&root_block);
    text_clear(&others);
}
