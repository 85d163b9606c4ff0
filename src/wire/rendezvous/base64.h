/* SPDX-License-Identifier: BSD-3-Clause */
/* Base64 with the standard alphabet and padding, as Python's base64.b64encode writes it and its
 * b64decode reads it by default. */
#ifndef MUSTER_WIRE_RENDEZVOUS_BASE64_H
#define MUSTER_WIRE_RENDEZVOUS_BASE64_H

#include "base/bytes.h"
#include "base/failure.h"

/* Appends the text. FAILURE_LIMIT at the buffer's ceiling, which leaves the buffer as it was. */
__attribute__((warn_unused_result)) enum failure_code base64_encode(
    struct slice input, struct bytes *out);

/* Appends the bytes. Characters outside the alphabet are skipped. FAILURE_MALFORMED when padding is
 * missing, when the last group has only one character, and for characters of the alphabet after the
 * padding (Python's versions disagree about those). FAILURE_LIMIT when a text of this length could
 * give more bytes than the buffer's ceiling allows. On failure the buffer is as it was. */
__attribute__((warn_unused_result)) enum failure_code base64_decode(
    struct slice input, struct bytes *out);

#endif
