/* SPDX-License-Identifier: BSD-3-Clause */
/* How this node meets the other nodes: the options about nodes, backend, endpoint and master. They
 * are applied in the order of run.py run() and config_from_args(). --standalone changes the
 * backend. One node without any address is standalone, too. A static backend without an endpoint
 * gets it from --master-addr and --master-port. */
#ifndef MUSTER_OPTIONS_LAUNCH_RENDEZVOUS_OPTIONS_H
#define MUSTER_OPTIONS_LAUNCH_RENDEZVOUS_OPTIONS_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_result.h"

/* Parses [NAMESPACE/]NAME of the objects in which Kubernetes keeps a job's register, for the
 * options and for the engine. */

struct kubernetes_place {
    char *space; /* NULL: that of the pod */
    char *name;
};

/* FAILURE_INVALID with a reason appended. */
__attribute__((warn_unused_result)) enum failure_code kubernetes_place_parse(
    const char *text, struct kubernetes_place *out_place, struct text *out_reason);
void kubernetes_place_clear(struct kubernetes_place *place);

/* Whether it can be the name of a namespace. */
bool kubernetes_is_space(const char *text);

/* Adds KEY=VALUE entries; blanks around keys and values are ignored. A later entry replaces an
 * earlier one with the same key. FAILURE_INVALID with a reason appended, which has no password
 * in it (core/launch/launch_config); `out_settings` is then unchanged. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_parse(
    const char *text, struct text_list *out_settings, struct text *out_reason);

/* Adds a warning for each key that the backend does not know. */
void rendezvous_conf_warn_of_unknown(
    const struct text_list *settings, const char *backend, struct text_list *warnings);

/* Fills the size and rendezvous parts of `config` (minimum_nodes to rdzv_conf, without the worker
 * count) and adds warnings. FAILURE_INVALID or FAILURE_UNSUPPORTED: `options` has become a mistake.
 * The caller clears `config` in every case. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_options_apply(
    struct option_result *options, struct launch_config *config);

#endif
