/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/finished_logs.h"

#include <stdlib.h>

#include "base/memory.h"

struct finished_logs {
    struct event_loop *loop;
    struct log_thread *thread;
    int unfinished_count;            /* of attempts */
    void (*complete)(void *context); /* NULL: nobody is to be told */
    void *context;
    bool is_awaited;
    bool is_let_go; /* and freed with the last answer of the thread */
};

struct finished_logs *finished_logs_new(struct event_loop *loop, struct log_thread *thread) {
    const struct finished_logs initial = {.loop = loop, .thread = thread};
    return memory_duplicate(&initial, sizeof initial);
}

static void attempt_finished(void *context) {
    struct finished_logs *logs = context;
    logs->unfinished_count--;
    if (logs->unfinished_count > 0) {
        return;
    }
    if (logs->is_let_go) {
        free(logs);
        return;
    }
    if (logs->is_awaited) {
        event_loop_stop(logs->loop);
    }
    if (logs->complete != NULL) {
        void (*complete)(void *context) = logs->complete;
        logs->complete = NULL;
        complete(logs->context);
    }
}

void finished_logs_notify(
    struct finished_logs *logs, void (*complete)(void *context), void *context) {
    logs->complete = complete;
    logs->context = context;
}

void finished_logs_free(struct finished_logs *logs) {
    if (logs == NULL) {
        return;
    }
    if (logs->unfinished_count > 0) {
        logs->is_let_go = true;
    } else {
        free(logs);
    }
}

void finished_logs_ask(struct finished_logs *logs) {
    if (logs->thread != NULL) {
        logs->unfinished_count++;
        log_thread_finish_attempt(logs->thread, attempt_finished, logs);
    }
}

static void stop_loop(void *context) {
    event_loop_stop(context);
}

bool finished_logs_await(struct finished_logs *logs, struct duration patience) {
    if (logs->unfinished_count > 0) {
        struct event_timer *end = event_timer_new(logs->loop, stop_loop, logs->loop);
        event_timer_set(end, instant_after(event_loop_now(logs->loop), patience));
        logs->is_awaited = true;
        event_loop_run(logs->loop);
        logs->is_awaited = false;
        event_timer_free(end);
    }
    return logs->unfinished_count == 0;
}
