/* SPDX-License-Identifier: BSD-3-Clause */
/* What agents write into the store of a job beside its record: which jobs have waited there, which
 * version of their protocol they speak, and who hosts the store. */
#ifndef MUSTER_WIRE_RENDEZVOUS_JOB_NOTES_H
#define MUSTER_WIRE_RENDEZVOUS_JOB_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/endpoint_match.h"

/* The jobs that have waited for nodes at one store, as a value in it: their run ids, one a line,
 * the latest last. Agents add theirs, and nobody removes any: the record of a job says whether it
 * still waits. Every program that reaches the store can write the value, so it is believed as far
 * as it makes sense, and it never grows beyond its limit. */

/* Of the whole value. Earlier lines make room for the latest. */
#define WAITING_LIST_BYTES 4096
/* Longer run ids, and those that are no line of text, are not listed. */
#define WAITING_LIST_ID_BYTES 256

/* Appends the list with `run_id` as its last line. Returns false, and appends nothing, where it is
 * listed already, or cannot be. */
bool waiting_list_add(struct slice list, const char *run_id, struct text *out_list);

/* Adds the run ids of other jobs than `run_id`, the latest first, `maximum` of them at most. */
void waiting_list_read(
    struct slice list, const char *run_id, size_t maximum, struct text_list *out_run_ids);

/* Which version of their protocol the Muster agents of a dynamic job speak: what they write to each
 * other beside torchrun's record. The number is raised when agents before it would not understand
 * what is written. The agent that begins a job writes its own version, with the name of its
 * program, under the key rendezvous_key_write_protocol; agents of another version are refused.
 * torchrun's nodes do not look at it. The text is the number, a space and the program's name:
 *
 *     1 muster 0.3.0
 */

/* What a node of torchrun's reads in the place of the record of a job that it cannot be in. Its
 * protocol has no word for a refusal. So the value is, in base64, a pickle that names a module
 * which cannot be there, whose name is the sentence: the node ends with ModuleNotFoundError, No
 * module named "this job's nodes have to be ...". See _RendezvousStateHolder.sync in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */

/* Appends the value for a node that has come to a job whose store another node may come to host. */
void torchrun_refusal_write_of_succession(struct text *out);

/* Of the longest program name that is read, with its NUL. */
#define PROTOCOL_VERSION_PROGRAM_SIZE 64
#define PROTOCOL_VERSION_MAXIMUM 999999

struct protocol_version {
    int64_t number;                              /* 1 to PROTOCOL_VERSION_MAXIMUM */
    char program[PROTOCOL_VERSION_PROGRAM_SIZE]; /* printable ASCII, not empty */
};

/* Of this program. */
struct protocol_version protocol_version_own(void);

/* Appends the text. */
void protocol_version_write(const struct protocol_version *version, struct text *out);

/* FAILURE_MALFORMED for another text. */
__attribute__((warn_unused_result)) enum failure_code protocol_version_read(
    struct slice text, struct protocol_version *out_version);

/* Appends "muster 0.3.0, which speaks version 1 of Muster's protocol". */
void protocol_version_describe(const struct protocol_version *version, struct text *out);

/* What a node that hosts the job's store no more answers to "who is host?": the term that it knows
 * of, and where the host of that term listens. The text is the value of the key
 * rendezvous_key_write_host, the only one that a node serves that stands by:
 *
 *     {"muster_host": 1, "term": 3, "place": "29400 node7.local 10.0.0.7"}
 *
 * A node that knows of no host leaves the place out. No node asks it: the register says who is
 * host. It is for somebody who looks for the reason why a node serves nobody. */

struct host_answer {
    int64_t term;            /* 0: it knows of no term */
    struct host_place place; /* names are NULL: it knows of no host */
};

void host_answer_clear(struct host_answer *answer);

/* Appends the text. */
void host_answer_write(const struct host_answer *answer, struct text *out);

/* What a host of the store that leaves tells its nodes, in the queue in which it tells those that
 * delegate how they stand (delegation_text.h). One word each. Where the store is from then on, a
 * node reads in the job's register. */

enum handover_word {
    HANDOVER_NAMED, /* "named": this node is to claim the place of its host */
    HANDOVER_MOVED, /* "moved": another node has claimed it */
    HANDOVER_WORD_COUNT,
};

const char *handover_word_text(enum handover_word word);
/* Returns false, and leaves `out_word` as it is, for every other text. */
bool handover_word_read(struct slice text, enum handover_word *out_word);

#endif
