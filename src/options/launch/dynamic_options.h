/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a dynamic rendezvous (--rdzv-backend c10d): where the record is kept, how long to
 * wait, what to do when nodes come and go. Matches create_backend in
 * elastic/rendezvous/c10d_rendezvous_backend.py and create_handler in dynamic_rendezvous.py, with
 * two differences. Values that can never work (port 0, or a file store without a path, for several
 * nodes) are mistakes. Values that are likely to surprise (an endpoint that only one machine can
 * reach, the default job name) cause warnings. */
#ifndef MUSTER_OPTIONS_LAUNCH_DYNAMIC_OPTIONS_H
#define MUSTER_OPTIONS_LAUNCH_DYNAMIC_OPTIONS_H

#include <stdbool.h>

#include "base/failure.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_result.h"

/* Whether a job of one node meets at a place that no other node can know: a free port of this
 * machine, as with --standalone, or a file store without a path, where torchrun makes a temporary
 * file. Sizes, backend and a checked rdzv_conf must be set already. */
bool dynamic_options_meet_nobody(
    const struct option_result *options, const struct launch_config *config);

/* Fills `config->dynamic` except for its policies, and adds warnings. Sizes, run id, backend and a
 * checked rdzv_conf must be set already. FAILURE_INVALID: `options` has become a mistake. */
__attribute__((warn_unused_result)) enum failure_code dynamic_options_apply(
    struct option_result *options, struct launch_config *config);

/* Applies --on-node-loss and --scale-up. When the rendezvous is not dynamic, they are checked, and
 * cause a warning if they were given. FAILURE_INVALID as above. */
__attribute__((warn_unused_result)) enum failure_code dynamic_options_apply_policies(
    struct option_result *options, struct launch_config *config);

#endif
