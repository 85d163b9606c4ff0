/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that only a plug-in of PyTorch knows ("npu"): counted by asking the Python of the workers
 * once, in a process that imports torch. Compare determine_local_world_size in
 * torch/distributed/run.py. */
#ifndef MUSTER_AGENT_WORKERS_DEVICE_QUESTION_H
#define MUSTER_AGENT_WORKERS_DEVICE_QUESTION_H

#include "base/failure.h"
#include "base/text.h"
#include "host/loop/blocking_pool.h"

/* How many devices of this name there are, 0 where it says none. Of "auto" those of any plug-in
 * that is installed; without one torch is not imported. `python` is looked up on PATH where it has
 * no slash. FAILURE_MISSING where its PyTorch knows no such name, or there is none; FAILURE_INVALID
 * with what Python says, or as process_spawn or blocking_task_run_within. `watch` may be NULL. */
__attribute__((warn_unused_result)) enum failure_code device_question_ask(const char *python,
    const char *name, const struct text_list *environment, const struct blocking_watch *watch,
    int *out_count, struct failure *failure);

#endif
