/* SPDX-License-Identifier: BSD-3-Clause */
/* How this node meets the others: the options about nodes, backend, endpoint and master, put
 * together in the order run.py run() and config_from_args() apply them: --standalone rewrites the
 * backend, one node without any address is standalone too, a static backend without endpoint gets
 * it from --master-addr and --master-port. */
#ifndef MUSTER_OPTIONS_RENDEZVOUS_OPTIONS_H
#define MUSTER_OPTIONS_RENDEZVOUS_OPTIONS_H

#include "base/failure.h"
#include "core/launch_config.h"
#include "options/option_result.h"

/* Fills the size and rendezvous parts of `config` (minimum_nodes to rdzv_conf, without the worker
 * count) and adds warnings. FAILURE_INVALID or FAILURE_UNSUPPORTED: `options` has become a mistake;
 * what `config` already holds is the caller's to clear in every case. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_options_apply(
    struct option_result *options, struct launch_config *config);

#endif
