/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of `muster store`, one function each: ask the store with the given options, print
 * the answer, return the exit status. */
#ifndef MUSTER_MAIN_STORE_STORE_OPERATIONS_H
#define MUSTER_MAIN_STORE_STORE_OPERATIONS_H

#include "options/argparse/option_result.h"

struct store_session;

int store_run_get(struct store_session *session, const struct option_result *options);
int store_run_set(struct store_session *session, const struct option_result *options);
int store_run_append(struct store_session *session, const struct option_result *options);
int store_run_add(struct store_session *session, const struct option_result *options);
int store_run_wait(struct store_session *session, const struct option_result *options);
int store_run_check(struct store_session *session, const struct option_result *options);
int store_run_delete(struct store_session *session, const struct option_result *options);
int store_run_compare_set(struct store_session *session, const struct option_result *options);
int store_run_keys(struct store_session *session, const struct option_result *options);
int store_run_count(struct store_session *session, const struct option_result *options);
int store_run_push(struct store_session *session, const struct option_result *options);
int store_run_pop(struct store_session *session, const struct option_result *options);
int store_run_len(struct store_session *session, const struct option_result *options);
int store_run_barrier(struct store_session *session, const struct option_result *options);
int store_run_ping(struct store_session *session, const struct option_result *options);
int store_run_watch(struct store_session *session, const struct option_result *options);

#endif
