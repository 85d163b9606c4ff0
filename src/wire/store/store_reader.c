/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/store_reader.h"

#include <stdio.h>
#include <string.h>

void store_reader_init(struct store_reader *reader, const struct store_limits *limits) {
    *reader = (struct store_reader){0};
    store_request_decoder_init(&reader->decoder, limits);
}

void store_reader_clear(struct store_reader *reader) {
    store_request_decoder_clear(&reader->decoder);
}

static const char no_proof_of_old_clients[] =
    "a client of a PyTorch older than 2.1, which cannot prove that it is of this job "
    "(--auth none on all nodes would let it in)";

static enum failure_code refuse(struct store_reading *out, const char *reason) {
    (void)snprintf(out->decoded.reason, sizeof out->decoded.reason, "%s", reason);
    return FAILURE_PROTOCOL;
}

/* The front of what a client without proof sends. FAILURE_NONE: a part of the proof; or nothing was
 * consumed, and the request decoder is to look at it. */
static enum failure_code take_proof(struct store_reader *reader, const struct store_gate *gate,
    struct slice prefix, struct slice input, struct store_reading *out) {
    struct store_proof_step step = store_proof_serve(&reader->proof, gate->key, prefix, input);
    memcpy(out->reply, step.reply, step.reply_length);
    out->reply_length = step.reply_length;
    out->decoded.consumed = step.consumed;
    out->decoded.needed = step.needed;
    out->presented = step.presented;
    if (step.outcome == STORE_PROOF_FAILED) {
        return refuse(out, step.reason);
    }
    return step.outcome == STORE_PROOF_INCOMPLETE ? FAILURE_INCOMPLETE : FAILURE_NONE;
}

static enum failure_code take_request(
    struct store_reader *reader, struct slice input, struct store_reading *out) {
    enum failure_code code = store_request_decoder_next(&reader->decoder, input, &out->decoded);
    out->is_request = code == FAILURE_NONE;
    return code;
}

enum failure_code store_reader_next(struct store_reader *reader, const struct store_gate *gate,
    struct slice input, struct store_reading *out) {
    out->is_request = false;
    out->reply_length = 0;
    out->decoded.consumed = 0;
    out->decoded.needed = 0;
    out->presented = (struct slice){0};
    if (gate->key == NULL || reader->proof.stage == STORE_PROOF_STAGE_PROVEN) {
        return take_request(reader, input, out);
    }
    struct slice prefix = gate->guarded_prefix;
    enum failure_code code = FAILURE_NONE;
    if (reader->decoder.is_validated && !reader->decoder.is_old) {
        code = take_proof(reader, gate, prefix, input, out);
    }
    if (code != FAILURE_NONE || out->decoded.consumed > 0) {
        return code;
    }
    code = take_request(reader, input, out);
    if (reader->decoder.is_old && prefix.length == 0) {
        return refuse(out, no_proof_of_old_clients);
    }
    if (code == FAILURE_NONE) {
        struct store_request *request = &out->decoded.request;
        const char *objection = store_proof_objection(request, prefix);
        request->nonce = store_proof_ping_answer(&reader->proof, gate->key, request->nonce);
        code = objection == NULL ? FAILURE_NONE : refuse(out, objection);
    }
    return code;
}
