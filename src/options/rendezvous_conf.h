/* SPDX-License-Identifier: BSD-3-Clause */
/* --rdzv-conf: KEY=VALUE between commas, and what the known keys accept. Matches
 * elastic/rendezvous/utils.py _parse_rendezvous_config and api.py RendezvousParameters, but
 * settings that would make a job hang (keep_alive_interval, keep_alive_max_attempt below 1) are
 * refused. */
#ifndef MUSTER_OPTIONS_RENDEZVOUS_CONF_H
#define MUSTER_OPTIONS_RENDEZVOUS_CONF_H

#include "base/failure.h"
#include "base/text.h"

/* Adds KEY=VALUE entries, blanks around both dropped, a later one of the same key replacing the
 * earlier. FAILURE_INVALID with a reason appended; then `out_settings` is as it was. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_parse(
    const char *text, struct text_list *out_settings, struct text *out_reason);

/* Whether the keys this backend knows have values of their grammar; other keys are nobody's.
 * FAILURE_INVALID with a reason appended. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_check(
    const struct text_list *settings, const char *backend, struct text *out_reason);

/* A boolean as RendezvousParameters.get_as_bool reads it: 1 true t yes y, 0 false f no n, in any
 * case. FAILURE_MALFORMED for anything else. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_conf_parse_boolean(
    const char *text, bool *out_value);

#endif
