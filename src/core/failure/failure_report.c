/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/failure/failure_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "core/workers/signal_name.h"

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
