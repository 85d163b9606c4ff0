/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/worker_record.h"

#include <unistd.h>

#include "agent/standby/standby_probe.h"
#include "base/bytes.h"
#include "host/standby/memory_file.h"
#include "wire/standby/standby_record.h"

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
    record->read = STANDBY_RECORD_HEAD;
    record->grown = event_loop_now(loop);
    (void)!death_notice_new(loop, record->fd, events, &record->notice, NULL);
    return true;
}

/* When it has grown is told by the looks alone. The time that the file has of its last change is of
 * a clock that may be set. */
bool worker_record_look(
    struct worker_record *record, struct learned_list *learned, struct instant now) {
    struct bytes text = {0};
    struct slice imports;
    int64_t pid;
    size_t length = memory_file_length(record->fd);
    bool has_hello = false;
    death_notice_look(record->notice, record->worker);
    if (length == record->read) {
        return false;
    }
    record->read = length;
    record->grown = now;
    memory_file_read(record->fd, STANDBY_RECORD_HEAD, STANDBY_RECORD_MAXIMUM, &text);
    if (standby_record_read_hello(bytes_slice(&text), &pid, &imports) == FAILURE_NONE &&
        pid == (int64_t)record->worker) {
        learned_list_add_text(learned, imports);
        has_hello = true;
    }
    bytes_clear(&text);
    return has_hello;
}

bool worker_record_can_answer(const struct worker_record *record, pid_t pid) {
    return record->fd != -1 && record->worker == pid && standby_probe_has_hello(record->fd, pid);
}
