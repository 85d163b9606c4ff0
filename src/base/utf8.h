/* SPDX-License-Identifier: BSD-3-Clause */
/* UTF-8: where characters end, and whether bytes are text at all. */
#ifndef MUSTER_BASE_UTF8_H
#define MUSTER_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* The length of the UTF-8 character at the start of the bytes; 0 when there is no valid one.
 * Overlong forms, surrogates and values beyond U+10FFFF are not valid. */
size_t utf8_character_length(const uint8_t *bytes, size_t length);

/* Whether Python could decode the bytes with its error handler "surrogatepass": UTF-8 in which lone
 * surrogates may occur too. Python spells undecodable arguments and file names with such
 * surrogates. */
bool utf8_is_python_text(struct slice bytes);

#endif
