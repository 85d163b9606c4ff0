/* SPDX-License-Identifier: BSD-3-Clause */
/* An entry of a register as text: one JSON object, whose record is in base64. The text is what an
 * engine keeps. Members that a later version of Muster may add are skipped; a text of a later
 * "version" is refused. */
#ifndef MUSTER_WIRE_REGISTER_REGISTER_ENTRY_TEXT_H
#define MUSTER_WIRE_REGISTER_REGISTER_ENTRY_TEXT_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/register/register_entry.h"

/* Every entry that register_entry_check accepts has a shorter text. */
#define REGISTER_ENTRY_TEXT_MAXIMUM ((size_t)1 << 20)

/* Appends the text. The entry must have passed register_entry_check. */
void register_entry_write(const struct register_entry *entry, struct text *out);

/* FAILURE_MALFORMED or FAILURE_LIMIT for what is no entry, FAILURE_UNSUPPORTED for an entry of a
 * later version; then `out_reason` (may be NULL) gets a few words that continue "it ". Otherwise
 * the caller clears the entry. */
__attribute__((warn_unused_result)) enum failure_code register_entry_read(
    struct slice input, struct register_entry *out_entry, struct text *out_reason);

#endif
