/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of a job of changing nodes that cannot work together, though each of them could work with
 * others. Only times that the user has given are compared: a default gives way. torchrun accepts
 * all of them, and its job then never begins, or does not survive the loss of a node. */
#ifndef MUSTER_OPTIONS_LAUNCH_TIMEOUT_PAIRS_H
#define MUSTER_OPTIONS_LAUNCH_TIMEOUT_PAIRS_H

#include "base/failure.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_result.h"

/* `config` has all its times. FAILURE_INVALID: the mistake in `options` names both times. */
enum failure_code timeout_pairs_check(
    struct option_result *options, const struct launch_config *config);

#endif
