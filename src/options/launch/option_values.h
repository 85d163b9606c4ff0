/* SPDX-License-Identifier: BSD-3-Clause */
/* Grammars of single option values beyond plain numbers: node ranges, worker counts, streams by
 * rank, rank lists, signals. Each function takes the text as the user wrote it. A text that breaks
 * the grammar gives FAILURE_INVALID; the appended reason repeats the value, says what was expected
 * and, where it helps, what to write instead. config_builder checks whether values fit together. */
#ifndef MUSTER_OPTIONS_LAUNCH_OPTION_VALUES_H
#define MUSTER_OPTIONS_LAUNCH_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"

/* "N" or "MIN:MAX" with 1 <= MIN <= MAX, as run.py parse_min_max_nnodes. */
__attribute__((warn_unused_result)) enum failure_code option_parse_node_range(
    const char *text, int *out_minimum, int *out_maximum, struct text *out_reason);

/* A number of workers, or one of the words cpu, gpu, xpu, auto, as run.py
 * determine_local_world_size; or a word that may be the name of a device, which the caller keeps.
 * With a word the count is 0. */
__attribute__((warn_unused_result)) enum failure_code option_parse_worker_count(
    const char *text, enum launch_worker_count *out_kind, int *out_count, struct text *out_reason);

/* "V", or "RANK:V,RANK:V" with V from 0 to 3, as multiprocessing/api.py Std.from_str. Unlike there,
 * ranks may have several digits. The caller frees by_rank. */
__attribute__((warn_unused_result)) enum failure_code option_parse_streams(
    const char *text, struct launch_streams *out_streams, struct text *out_reason);

/* Exit codes (1 to 255) and names of signals, parted by commas: "17,SIGBUS". Empty: none. */
__attribute__((warn_unused_result)) enum failure_code option_parse_exit_on(
    const char *text, struct launch_exit_on *out_exit_on, struct text *out_reason);

/* "immediate", "never", or the number of seconds (0 or more) between two admissions of new
 * nodes. */
__attribute__((warn_unused_result)) enum failure_code option_parse_scale_up(const char *text,
    enum rendezvous_scale_up *out_scale_up, struct duration *out_interval, struct text *out_reason);

/* A number of bytes, perhaps with K, M, G or T for powers of 1024; or a percentage from 1% to 100%.
 * Of the two results one is 0. Less than STORE_MEMORY_LEAST bytes are refused. */
__attribute__((warn_unused_result)) enum failure_code option_parse_memory(
    const char *text, uint64_t *out_bytes, int *out_percent, struct text *out_reason);

/* 0 for none, or a number of bytes in the same form; less than OPTION_SCRATCH_LEAST are refused. */
#define OPTION_SCRATCH_LEAST (UINT64_C(1) << 20)
__attribute__((warn_unused_result)) enum failure_code option_parse_scratch(
    const char *text, uint64_t *out_bytes, struct text *out_reason);

/* "null", "console", "file:" and a path, or "exec:" and a program. The caller frees the path or the
 * program (else it is NULL). "dynamic_rendezvous" means "null", because PyTorch's
 * events/handlers.py gives it a handler that does nothing. Other names are refused; in PyTorch they
 * are a KeyError when the first event is recorded. */
__attribute__((warn_unused_result)) enum failure_code option_parse_event_handler(const char *text,
    enum launch_event_handler *out_handler, char **out_path, struct text *out_reason);

/* Whole numbers separated by commas, as run.py reads --local-ranks-filter. The result is sorted,
 * without duplicates. The caller frees the array. */
__attribute__((warn_unused_result)) enum failure_code option_parse_rank_list(
    const char *text, int **out_ranks, size_t *out_count, struct text *out_reason);

/* Signal names separated by commas, with blanks around them ignored, as multiprocessing/api.py
 * PContext.start reads them. The result keeps their order, without duplicates. "" gives an empty
 * list. Unlike there, unknown names and signals that cannot be handled are refused. `out_signals`
 * has room for LAUNCH_MAXIMUM_SIGNALS. */
__attribute__((warn_unused_result)) enum failure_code option_parse_signals(
    const char *text, int *out_signals, size_t *out_count, struct text *out_reason);

/* Appends "invalid value 'TEXT': " and the formatted message; returns FAILURE_INVALID. */
__attribute__((format(printf, 3, 4))) enum failure_code option_refuse_value(
    struct text *out_reason, const char *text, const char *format, ...);

/* The text without blanks at both ends; the caller frees it. */
char *option_trim(const char *text);

/* A copy that the caller frees; NULL when the text is empty or NULL. */
char *option_copy_unless_empty(const char *text);

/* Splits at each separator; there is always one more piece than separators. */
void option_split(const char *text, char separator, struct text_list *out_pieces);

/* Parses HOST:PORT for the rendezvous options. Matches elastic/rendezvous/utils.py
 * parse_rendezvous_endpoint, which splits at the last colon, except for hosts with colons. Here
 * these are IPv6 addresses or are refused. "::1" is a host without port (in PyTorch it is host ":"
 * and port 1). A text like "fe80::1:2940" is refused, because it is a valid address with and
 * without its last group. Does not resolve names. */

#define ENDPOINT_NO_PORT (-1)
/* The maximum length of a host in bytes; DNS names have at most 253. */
#define ENDPOINT_HOST_MAXIMUM 253

struct endpoint {
    char *host; /* without brackets */
    int port;   /* 0-65535 or ENDPOINT_NO_PORT */
};

/* Blanks around the text are ignored; "" is localhost. FAILURE_INVALID with a reason appended when
 * the text is not an endpoint. */
__attribute__((warn_unused_result)) enum failure_code endpoint_parse(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason);
void endpoint_clear(struct endpoint *endpoint);

/* Parses a host alone, with or without brackets; the caller frees it. FAILURE_INVALID as above. */
__attribute__((warn_unused_result)) enum failure_code endpoint_parse_host(
    const char *text, char **out_host, struct text *out_reason);

/* Whether the host certainly is the machine itself, on every machine: localhost and its variants,
 * 127.0.0.0/8 or ::1. */
bool endpoint_is_loopback(const char *host);

/* Parses HOST:PORT,HOST:PORT,… of the members of a job's etcd, for the options and for the engine.
 * Each member may begin with http:// or https://, which is cut off, and may end with a slash.
 * A member without a port has etcd's own, as in etcd_rendezvous.py _create_etcd_client. */

struct endpoint_list {
    struct text_list members; /* HOST:PORT, an IPv6 address in brackets */
    bool is_https;            /* all of them begin with https:// */
};

/* FAILURE_INVALID with a reason appended when the text is no such list. */
__attribute__((warn_unused_result)) enum failure_code endpoint_list_parse(
    const char *text, struct endpoint_list *out_list, struct text *out_reason);
void endpoint_list_clear(struct endpoint_list *list);

#endif
