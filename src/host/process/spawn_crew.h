/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts several programs beside each other. A thread that starts one sleeps until the program
 * runs, so a node of many workers is started sooner by a few threads, where it has processors for
 * them. The calling thread is one of them; the others are the crew. The threads live until the crew
 * is freed, because the kernel kills a process when the thread that has started it ends
 * (process_spawn). */
#ifndef MUSTER_HOST_PROCESS_SPAWN_CREW_H
#define MUSTER_HOST_PROCESS_SPAWN_CREW_H

#include <stddef.h>

#include "base/failure.h"
#include "host/process/process_spawn.h"

struct spawn_crew;

/* One program to be started. Where the crew has threads the request must not have a function: a
 * copy of the agent is made by the thread that has the agent's loop. */
struct spawn_task {
    struct process_request request;
    enum failure_code code; /* the outcome, as process_spawn has it */
    struct process process;
    struct failure failure;
};

/* A crew that uses up to `processors` processors, the calling thread's included; one that may use
 * no other has no thread. Threads are started when they are needed first. Never NULL. */
struct spawn_crew *spawn_crew_new(int processors);
/* The processes that it has started are killed. Accepts NULL. */
void spawn_crew_free(struct spawn_crew *crew);

/* Starts them all, whatever becomes of the others, and returns when each has its outcome. */
void spawn_crew_start(struct spawn_crew *crew, struct spawn_task *tasks, size_t count);

#endif
