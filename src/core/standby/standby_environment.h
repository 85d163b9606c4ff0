/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a standby worker. It is that of a worker of the last attempt without the names
 * that belong to a round: those come when the standby worker becomes a worker. All other names must
 * be right from the beginning, because what is imported may have read them. */
#ifndef MUSTER_CORE_STANDBY_STANDBY_ENVIRONMENT_H
#define MUSTER_CORE_STANDBY_STANDBY_ENVIRONMENT_H

#include <stdbool.h>

#include "base/text.h"

/* The variable that tells a process what its descriptor 3 is. */
#define STANDBY_VARIABLE "MUSTER_STANDBY"

/* It tells a worker where the page is in which it says how far it is (wire/telling/progress_page).
 */
#define PROGRESS_VARIABLE "MUSTER_PROGRESS"

enum standby_role {
    STANDBY_RECORD, /* a worker, which records what it imports */
    STANDBY_SPARE,  /* a standby worker */
    STANDBY_STEPS,  /* a worker of a job without them, whose optimizer's steps are counted */
};

struct standby_dress {
    enum standby_role role;
    const char *hook_directory; /* put in front of PYTHONPATH; NULL: the program is not Python */
    int evidence_signal;        /* Python shall say its stacks when it gets this signal; 0: none */
    double rest;   /* how many times as long as it has worked a standby worker rests when others
                    * want its CPU */
    bool is_alone; /* no workers run beside it until it is ready */
    int parent_of; /* it is a warm parent, whose children this process adopts; 0: it is none */
};

/* Adds to the environment of a worker what makes it a worker that records, or a standby worker. For
 * the latter, the names of the round go. */
void standby_environment_dress(struct text_list *environment, const struct standby_dress *dress);

/* Makes the environment of one worker that of all workers of its node. */
void standby_environment_drop_rank(struct text_list *environment);

/* Takes both variables out of an environment. An agent that is started by a worker inherits what
 * was said to that worker. */
void standby_environment_undress(struct text_list *environment);

/* Why a standby worker that was started with the environment of worker `before` may not become
 * worker `now`: the first variable that is different, borrowed from one of them, with its value
 * behind it. NULL: it may. Neither is dressed. */
const char *standby_environment_difference(
    const struct text_list *before, const struct text_list *now);

#endif
