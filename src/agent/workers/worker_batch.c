/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/worker_batch.h"

#include <stdlib.h>

#include "agent/standby/agent_standby.h"
#include "agent/workers/agent_workers_state.h"
#include "agent/workers/worker_start.h"
#include "base/memory.h"

void worker_batch_init(struct worker_batch *batch, struct agent_workers *workers,
    const struct attempt_logs *logs_or_null, size_t wanted) {
    size_t capacity = wanted < WORKER_BATCH_MAXIMUM ? wanted : WORKER_BATCH_MAXIMUM;
    *batch = (struct worker_batch){.workers = workers, .logs = logs_or_null, .capacity = capacity};
    batch->items = memory_allocate(capacity * sizeof *batch->items);
    batch->tasks = memory_allocate(capacity * sizeof *batch->tasks);
}

static void empty(struct worker_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        text_list_clear(&batch->items[i].environment);
        text_list_clear(&batch->items[i].arguments);
        for (int j = 0; batch->logs != NULL && j < ATTEMPT_STREAM_COUNT; j++) {
            attempt_logs_close_stream(batch->logs, batch->items[i].streams[j]);
        }
    }
    batch->count = 0;
}

void worker_batch_clear(struct worker_batch *batch) {
    empty(batch);
    free(batch->items);
    free(batch->tasks);
}

bool worker_batch_is_full(const struct worker_batch *batch) {
    return batch->count == batch->capacity;
}

enum failure_code worker_batch_add(struct worker_batch *batch, int local_rank,
    struct text_list *environment_taken, const int streams[ATTEMPT_STREAM_COUNT],
    struct failure *failure) {
    struct agent_workers *workers = batch->workers;
    const struct agent_workers_settings *settings = &workers->settings;
    struct worker_batch_item *item = &batch->items[batch->count];
    struct spawn_task *task = &batch->tasks[batch->count++];
    *task = (struct spawn_task){0};
    *item = (struct worker_batch_item){.local_rank = local_rank,
        .streams = {streams[ATTEMPT_STDOUT], streams[ATTEMPT_STDERR]},
        .environment = *environment_taken};
    *environment_taken = (struct text_list){0};
    int further = agent_standby_dress(settings->standby, local_rank, &item->environment);
    if (settings->function != NULL) {
        enum failure_code code =
            worker_value_open(&workers->items[local_rank].value, &further, failure);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    const int descriptors[] = {-1, streams[ATTEMPT_STDOUT], streams[ATTEMPT_STDERR], further};
    worker_start_request(
        settings, local_rank, &item->environment, descriptors, &item->arguments, &task->request);
    return FAILURE_NONE;
}

static void keep_worker(
    struct agent_workers *workers, int local_rank, const struct process *process) {
    workers->items[local_rank].pid = process->pid;
    agent_standby_note_worker(workers->settings.standby, local_rank, process->pid);
    process_family_add(workers->family, process, local_rank);
}

enum failure_code worker_batch_start(
    struct worker_batch *batch, int *out_local_rank, struct failure *failure) {
    enum failure_code code = FAILURE_NONE;
    spawn_crew_start(batch->workers->crew, batch->tasks, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        const struct spawn_task *task = &batch->tasks[i];
        int local_rank = batch->items[i].local_rank;
        if (task->code == FAILURE_NONE) {
            keep_worker(batch->workers, local_rank, &task->process);
        } else if (code == FAILURE_NONE) {
            code = task->code;
            *failure = task->failure;
            *out_local_rank = local_rank;
        }
    }
    empty(batch);
    return code;
}
