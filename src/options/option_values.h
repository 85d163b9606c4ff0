/* SPDX-License-Identifier: BSD-3-Clause */
/* Grammars of single option values beyond plain numbers: node ranges, worker counts, streams by
 * rank, rank lists, signals. Each takes the text as given; what breaks the grammar is
 * FAILURE_INVALID with a reason appended that repeats the value, says what was expected and, where
 * it helps, what to write instead. Whether values fit together is config_builder's. */
#ifndef MUSTER_OPTIONS_OPTION_VALUES_H
#define MUSTER_OPTIONS_OPTION_VALUES_H

#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/launch_config.h"

/* "N" or "MIN:MAX" with 1 <= MIN <= MAX, as run.py parse_min_max_nnodes. */
__attribute__((warn_unused_result)) enum failure_code option_parse_node_range(
    const char *text, int *out_minimum, int *out_maximum, struct text *out_reason);

/* A number of workers, or cpu, gpu, xpu, auto, as run.py determine_local_world_size; the count is 0
 * with a word. */
__attribute__((warn_unused_result)) enum failure_code option_parse_worker_count(
    const char *text, enum launch_worker_count *out_kind, int *out_count, struct text *out_reason);

/* "V", or "RANK:V,RANK:V" with V from 0 to 3, as multiprocessing/api.py Std.from_str, but ranks may
 * have several digits (there: one, so that ranks from 10 on could not be named). The caller frees
 * by_rank. */
__attribute__((warn_unused_result)) enum failure_code option_parse_streams(
    const char *text, struct launch_streams *out_streams, struct text *out_reason);

/* "immediate", "never", or seconds from 0 on between two admissions of new nodes. */
__attribute__((warn_unused_result)) enum failure_code option_parse_scale_up(const char *text,
    enum rendezvous_scale_up *out_scale_up, struct duration *out_interval, struct text *out_reason);

/* "null", "console", or "file:" and a path, which the caller frees (else NULL). There, any other
 * name is a KeyError when the first event is recorded. */
__attribute__((warn_unused_result)) enum failure_code option_parse_event_handler(const char *text,
    enum launch_event_handler *out_handler, char **out_path, struct text *out_reason);

/* Whole numbers between commas, as run.py reads --local-ranks-filter; sorted, each once. The caller
 * frees the array. */
__attribute__((warn_unused_result)) enum failure_code option_parse_rank_list(
    const char *text, int **out_ranks, size_t *out_count, struct text *out_reason);

/* Signal names between commas, blanks around them dropped, as multiprocessing/api.py PContext.start
 * reads them; each once, in order. "" is none. Unlike there, a name that is no signal is refused,
 * and so are signals that cannot be handled. `out_signals` has room for LAUNCH_MAXIMUM_SIGNALS. */
__attribute__((warn_unused_result)) enum failure_code option_parse_signals(
    const char *text, int *out_signals, size_t *out_count, struct text *out_reason);

/* Appends "invalid value 'TEXT': " and the formatted rest; returns FAILURE_INVALID. */
__attribute__((format(printf, 3, 4))) enum failure_code option_refuse_value(
    struct text *out_reason, const char *text, const char *format, ...);

/* The text without blanks at both ends; the caller frees it. */
char *option_trim(const char *text);

/* A copy the caller frees; NULL when the text is empty or NULL. */
char *option_copy_unless_empty(const char *text);

/* The pieces between separators; always one more than there are separators. */
void option_split(const char *text, char separator, struct text_list *out_pieces);

#endif
