/* SPDX-License-Identifier: BSD-3-Clause */
/* How a node describes a worker's failure to the other nodes: a core/failure/failure_report as
 * JSON. The format is Muster's own; no other launcher reads it. */
#ifndef MUSTER_WIRE_FAILURE_FAILURE_JSON_H
#define MUSTER_WIRE_FAILURE_FAILURE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/failure/failure_report.h"

/* The error file that a worker under @record leaves (TORCHELASTIC_ERROR_FILE), and the copy of the
 * root cause's file that the agent leaves for its own parent. Matches ProcessFailure in
 * torch/distributed/elastic/multiprocessing/errors/__init__.py and ErrorHandler.dump_error_file in
 * …/error_handler.py, with one difference: an error file that cannot be read does not end the
 * agent. The reason is described, and the file is otherwise treated as absent. */

/* Larger files are not read. A traceback has a few KiB. */
#define ERROR_FILE_JSON_MAXIMUM_SIZE (1024u * 1024)

struct error_file {
    char *message; /* the text to show, a traceback if there is one; never NULL, may be empty */
    bool is_message_object; /* the message was a JSON object, not a plain string */
    char *summary;          /* one line, "ValueError: boom", or NULL */
    bool has_timestamp;
    int64_t timestamp; /* Unix seconds */
};

/* Reads the bytes of an error file. FAILURE_MALFORMED or FAILURE_LIMIT for input that cannot be
 * used; the reason is appended to `out_reason` (one line, may be NULL). A timestamp that cannot be
 * used is left out and is no failure. The caller clears the result with error_file_clear. */
__attribute__((warn_unused_result)) enum failure_code error_file_json_read(
    struct slice input, struct error_file *out_file, struct text *out_reason);
void error_file_clear(struct error_file *file);

/* Appends the error file that @record would have written for this failure. The agent writes it for
 * its parent when the root cause's own file is on another node. */
void error_file_json_write(const struct failure_account *account, struct text *out);

/* Appends the parent's copy: the same document, with "errorCode" inside an object message when
 * `exit_code` is not 0 (a negative code is the signal). FAILURE_MALFORMED when `input` is not
 * JSON. */
__attribute__((warn_unused_result)) enum failure_code error_file_json_write_for_parent(
    struct slice input, int exit_code, struct text *out);

/* The most bytes of a traceback that are sent. The beginning of a longer one is left out, because
 * the end of a traceback says what happened. */
#define FAILURE_JSON_MESSAGE_MAXIMUM 65536u
/* The most bytes of any other text. */
#define FAILURE_JSON_TEXT_MAXIMUM 4096u
/* The most bytes of an account as JSON, whatever characters its texts contain. */
#define FAILURE_JSON_MAXIMUM_SIZE (768u * 1024)

/* Appends the account. Bytes that are not UTF-8 are replaced. */
void failure_json_write(const struct failure_account *account, struct text *out);

/* Reads an account. FAILURE_MALFORMED or FAILURE_LIMIT for input that cannot be used. Members with
 * unknown names are ignored. The caller clears the result with failure_account_clear. */
__attribute__((warn_unused_result)) enum failure_code failure_json_read(
    struct slice input, struct failure_account *out_account);

#endif
