/* SPDX-License-Identifier: BSD-3-Clause */
/* A dynamic rendezvous (--rdzv-backend c10d with several nodes) as the options describe it: where
 * the record is kept, how patient to be, what to do when nodes come and go. Matches create_backend
 * in elastic/rendezvous/c10d_rendezvous_backend.py and create_handler in dynamic_rendezvous.py, but
 * what could never work (port 0, a file store without a path) is a mistake here, and what is likely
 * to disappoint (an endpoint that only one machine can reach, the default job name) is warned
 * about. */
#ifndef MUSTER_OPTIONS_DYNAMIC_OPTIONS_H
#define MUSTER_OPTIONS_DYNAMIC_OPTIONS_H

#include "base/failure.h"
#include "core/launch_config.h"
#include "options/option_result.h"

/* Fills `config->dynamic` but for its policies, and adds warnings; sizes, run id, backend and a
 * checked rdzv_conf are there already. FAILURE_INVALID: `options` has become a mistake. */
__attribute__((warn_unused_result)) enum failure_code dynamic_options_apply(
    struct option_result *options, struct launch_config *config);

/* --on-node-loss and --scale-up; where the rendezvous is not dynamic they are only checked, and
 * warned about when given. FAILURE_INVALID as above. */
__attribute__((warn_unused_result)) enum failure_code dynamic_options_apply_policies(
    struct option_result *options, struct launch_config *config);

#endif
