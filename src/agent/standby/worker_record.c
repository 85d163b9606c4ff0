/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/worker_record.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/standby/standby_preparation.h"
#include "host/loop/files.h"
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
