/* SPDX-License-Identifier: BSD-3-Clause */
/* One standby worker: its process, its gate, and what it has said. */
#ifndef MUSTER_AGENT_STANDBY_STANDBY_SPARE_H
#define MUSTER_AGENT_STANDBY_STANDBY_SPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/standby/learned_list.h"
#include "host/loop/event_loop.h"

struct agent_standby_starter;
struct standby_spare;

/* What it has said so far. */
struct standby_spare_words {
    bool has_reached_hook;
    bool is_ready;
    uint32_t memory_kib; /* that it takes; set when it is ready */
    char *reason;        /* why it cannot be used; NULL: it can */
    bool is_unsuited;    /* it cannot be used, but one that leaves these modules out could be */
    struct text_list left_out; /* as it has named them: any bytes */
    bool has_gone_through;
};

struct standby_spare_order {
    int local_rank;
    const struct text_list *environment; /* of a worker of that rank */
    const char *hook_directory;          /* NULL where the program is not Python */
    int evidence_signal;                 /* when it has become a worker; 0: none */
    double rest;                         /* after working, in times of that; 0: none */
    bool is_alone;                       /* there is no worker yet for which to rest */
    struct slice list;                   /* what it is to import */
    const struct agent_standby_starter *starter;
    /* It has said something. May free it. */
    void (*spoke)(void *context, int local_rank);
    void *context;
};

/* Starts it and adds it to the family as a spare. Lists and texts stay the caller's. */
__attribute__((warn_unused_result)) enum failure_code standby_spare_start(struct event_loop *loop,
    const struct standby_spare_order *order, struct standby_spare **out_spare,
    struct failure *failure);
/* Closes the gate: it ends, unless it has gone through. Accepts NULL. */
void standby_spare_free(struct standby_spare *spare);

pid_t standby_spare_pid(const struct standby_spare *spare);
const struct standby_spare_words *standby_spare_words(const struct standby_spare *spare);

/* Leaves out of the list what it has named. Returns how many modules are left out only now. */
size_t standby_spare_cut(const struct standby_spare *spare, struct learned_list *list);

/* Why it may not become a worker with this environment, given the one that it was started with: the
 * variable that is different, as in standby_environment_difference. NULL: it may. */
const char *standby_spare_difference(
    const struct standby_spare *spare, const struct text_list *environment);

/* Tells one that is ready what it was not told yet of a list that has only grown. It is ready again
 * when its words say so. False when it cannot be told. */
bool standby_spare_teach(struct standby_spare *spare, struct slice list);

/* Tells it to go through its gate. */
__attribute__((warn_unused_result)) enum failure_code standby_spare_send(
    struct standby_spare *spare, const struct text_list *environment, const int streams[2],
    int record, struct failure *failure);

/* Takes what it has said and the loop has not taken yet; `spoke` may be called. */
void standby_spare_drain(struct standby_spare *spare);
/* The same, without a call; from now on it cannot say anything. */
void standby_spare_shut(struct standby_spare *spare);

#endif
