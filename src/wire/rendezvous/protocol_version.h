/* SPDX-License-Identifier: BSD-3-Clause */
/* Which version of their protocol the Muster agents of a dynamic job speak: what they write to each
 * other beside torchrun's record. The number is raised when agents before it would not understand
 * what is written. The agent that begins a job writes its own version, with the name of its
 * program, under the key rendezvous_key_write_protocol; agents of another version are refused.
 * torchrun's nodes do not look at it. The text is the number, a space and the program's name:
 *
 *     1 muster 0.3.0
 */
#ifndef MUSTER_WIRE_RENDEZVOUS_PROTOCOL_VERSION_H
#define MUSTER_WIRE_RENDEZVOUS_PROTOCOL_VERSION_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

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

#endif
