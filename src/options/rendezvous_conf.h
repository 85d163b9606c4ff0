/* SPDX-License-Identifier: BSD-3-Clause */
/* --rdzv-conf: KEY=VALUE between commas, and what the known keys accept. Matches
 * elastic/rendezvous/utils.py _parse_rendezvous_config, api.py RendezvousParameters and the keys
 * that create_handler and create_backend read in dynamic_rendezvous.py and
 * c10d_rendezvous_backend.py; but settings that would make a job hang (keep_alive_interval,
 * keep_alive_max_attempt below 1) are refused. silence_timeout and exit_barrier_timeout are
 * Muster's. */
#ifndef MUSTER_OPTIONS_RENDEZVOUS_CONF_H
#define MUSTER_OPTIONS_RENDEZVOUS_CONF_H

#include "base/failure.h"
#include "base/text.h"
#include "core/launch_config.h"

/* Adds KEY=VALUE entries, blanks around both dropped, a later one of the same key replacing the
 * earlier. FAILURE_INVALID with a reason appended; then `out_settings` is as it was. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_parse(
    const char *text, struct text_list *out_settings, struct text *out_reason);

/* Whether the keys this backend knows have values of their grammar and range; other keys are
 * nobody's. FAILURE_INVALID with a reason appended. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_check(
    const struct text_list *settings, const char *backend, struct text *out_reason);

/* Takes what the settings say of c10d, which have passed rendezvous_conf_check; what they do not
 * mention stays as it is. */
void rendezvous_conf_apply(const struct text_list *settings, struct launch_dynamic *dynamic);

/* Whether store_type asks for a file store. */
bool rendezvous_conf_wants_file(const struct text_list *settings);

/* Adds a warning for each key that the backend does not know. */
void rendezvous_conf_warn_of_unknown(
    const struct text_list *settings, const char *backend, struct text_list *warnings);

/* A boolean as RendezvousParameters.get_as_bool reads it: 1 true t yes y, 0 false f no n, in any
 * case. FAILURE_MALFORMED for anything else. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_parse_boolean(
    const char *text, bool *out_value);

#endif
