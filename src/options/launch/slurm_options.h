/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job takes from Slurm where the command line says nothing about its nodes: how many there
 * are, where they meet, the job's name, and how many workers each has. `srun muster run train.py`
 * needs no more. It fills in options that were not given, so all rules for given ones hold for
 * them, too. Under the name of torchrun nothing is taken, as torchrun takes nothing; a warning says
 * what to write. */
#ifndef MUSTER_OPTIONS_LAUNCH_SLURM_OPTIONS_H
#define MUSTER_OPTIONS_LAUNCH_SLURM_OPTIONS_H

#include "base/text.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_result.h"

/* Ports at which nodes meet are drawn from these, by job and step: below those that the kernel
 * gives to clients, and below torchrun's own 29400 and 29500. */
#define SLURM_FIRST_PORT 20000
#define SLURM_PORT_COUNT 9391

/* Fills in what Slurm says, and adds the line that says so, or warnings, to `config`.
 * FAILURE_INVALID: `options` has become a mistake. */
__attribute__((warn_unused_result)) enum failure_code slurm_options_apply(
    struct option_result *options, const struct text_list *environment,
    struct launch_config *config);

#endif
