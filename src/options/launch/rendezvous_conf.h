/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses --rdzv-conf (KEY=VALUE separated by commas) and checks the values of known keys. Matches
 * elastic/rendezvous/utils.py _parse_rendezvous_config, api.py RendezvousParameters and the keys
 * that create_handler and create_backend read in dynamic_rendezvous.py and
 * c10d_rendezvous_backend.py. Unlike there, values that would make a job hang (keep_alive_interval
 * or keep_alive_max_attempt below 1) are refused. silence_timeout and exit_barrier_timeout are
 * Muster's own keys. */
#ifndef MUSTER_OPTIONS_LAUNCH_RENDEZVOUS_CONF_H
#define MUSTER_OPTIONS_LAUNCH_RENDEZVOUS_CONF_H

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"

/* Adds KEY=VALUE entries; blanks around keys and values are ignored. A later entry replaces an
 * earlier one with the same key. FAILURE_INVALID with a reason appended, which has no password
 * in it (core/launch/secret_setting); `out_settings` is then unchanged. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_parse(
    const char *text, struct text_list *out_settings, struct text *out_reason);

/* Checks the values of the keys that this backend knows: their grammar and range. Other keys are
 * ignored. FAILURE_INVALID with a reason appended. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_check(
    const struct text_list *settings, const char *backend, struct text *out_reason);

/* Applies the settings for c10d, which must have passed rendezvous_conf_check. Values without a
 * setting stay unchanged, but for delegation, whose default follows from the number of nodes. */
void rendezvous_conf_apply(const struct text_list *settings, struct launch_dynamic *dynamic);

/* Whether store_type selects a file store. */
bool rendezvous_conf_wants_file(const struct text_list *settings);

/* Adds a warning for each key that the backend does not know. */
void rendezvous_conf_warn_of_unknown(
    const struct text_list *settings, const char *backend, struct text_list *warnings);

/* The same for a job of one node, which uses none: for each key that no backend knows. */
void rendezvous_conf_warn_of_none(
    const struct text_list *settings, const char *backend, struct text_list *warnings);

/* A boolean as RendezvousParameters.get_as_bool reads it: 1 true t yes y, 0 false f no n, in any
 * case. FAILURE_MALFORMED for anything else. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_parse_boolean(
    const char *text, bool *out_value);

#endif
