/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/spawn_crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "host/loop/quiet_thread.h"

/* Without the calling thread. The kernel starts no more than a few programs of one process beside
 * each other: each start changes what the process has mapped and open. */
#define THREADS_MAXIMUM ((size_t)3)

struct spawn_crew {
    size_t threads_wanted;
    pthread_t threads[THREADS_MAXIMUM];
    size_t thread_count;
    pthread_mutex_t mutex; /* over all that follows */
    pthread_cond_t is_called;
    pthread_cond_t is_done;
    struct spawn_task *tasks; /* of the present start */
    size_t count;
    size_t taken;
    size_t finished;
    bool is_over;
};

/* Takes a task, if one is left, and performs it. The mutex is held, but not while it is performed.
 */
static bool perform_next(struct spawn_crew *crew) {
    if (crew->taken == crew->count) {
        return false;
    }
    struct spawn_task *task = &crew->tasks[crew->taken++];
    pthread_mutex_unlock(&crew->mutex);
    task->code = process_spawn(&task->request, &task->process, &task->failure);
    pthread_mutex_lock(&crew->mutex);
    if (++crew->finished == crew->count) {
        pthread_cond_signal(&crew->is_done);
    }
    return true;
}

static void *serve(void *context) {
    struct spawn_crew *crew = context;
    pthread_mutex_lock(&crew->mutex);
    while (!crew->is_over) {
        if (!perform_next(crew)) {
            pthread_cond_wait(&crew->is_called, &crew->mutex);
        }
    }
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

struct spawn_crew *spawn_crew_new(int processors) {
    struct spawn_crew *crew = memory_allocate(sizeof *crew);
    size_t others = processors > 1 ? (size_t)processors - 1 : 0;
    crew->threads_wanted = others < THREADS_MAXIMUM ? others : THREADS_MAXIMUM;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->is_called, NULL);
    pthread_cond_init(&crew->is_done, NULL);
    return crew;
}

void spawn_crew_free(struct spawn_crew *crew) {
    if (crew == NULL) {
        return;
    }
    pthread_mutex_lock(&crew->mutex);
    crew->is_over = true;
    pthread_cond_broadcast(&crew->is_called);
    pthread_mutex_unlock(&crew->mutex);
    for (size_t i = 0; i < crew->thread_count; i++) {
        pthread_join(crew->threads[i], NULL);
    }
    pthread_cond_destroy(&crew->is_done);
    pthread_cond_destroy(&crew->is_called);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}

/* A crew that gets no further thread works with those it has, the calling one at least. */
static void call_threads(struct spawn_crew *crew, size_t useful) {
    size_t wanted = useful < crew->threads_wanted ? useful : crew->threads_wanted;
    while (crew->thread_count < wanted &&
           quiet_thread_start("muster-spawner", serve, crew, &crew->threads[crew->thread_count],
               NULL) == FAILURE_NONE) {
        crew->thread_count++;
    }
}

void spawn_crew_start(struct spawn_crew *crew, struct spawn_task *tasks, size_t count) {
    if (count > 1) {
        call_threads(crew, count - 1);
    }
    pthread_mutex_lock(&crew->mutex);
    crew->tasks = tasks;
    crew->count = count;
    crew->taken = 0;
    crew->finished = 0;
    if (count > 1) {
        pthread_cond_broadcast(&crew->is_called);
    }
    while (perform_next(crew)) {
    }
    while (crew->finished < crew->count) {
        pthread_cond_wait(&crew->is_done, &crew->mutex);
    }
    crew->count = 0;
    crew->taken = 0;
    pthread_mutex_unlock(&crew->mutex);
}
