/* SPDX-License-Identifier: BSD-3-Clause */
/* UTF-8: where characters end, whether bytes are text at all, and whether they are fit to be
 * shown. */
#ifndef MUSTER_BASE_UTF8_H
#define MUSTER_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 character at the start of the bytes; 0 when there is no valid one.
 * Overlong forms, surrogates and values beyond U+10FFFF are not valid. */
size_t utf8_character_length(const uint8_t *bytes, size_t length);

/* Whether Python could decode the bytes with its error handler "surrogatepass": UTF-8 in which lone
 * surrogates may occur too. Python spells undecodable arguments and file names with such
 * surrogates. */
bool utf8_is_python_text(const uint8_t *bytes, size_t length);

/* Makes what others have written fit for a terminal and a log, in place: sequences that only colour
 * text are dropped, and every other control character but newline and tab (C0, DEL, C1) and every
 * byte that is no UTF-8 becomes '?'. So nobody else moves the cursor, sets the title or makes the
 * terminal answer. Returns the new length, which is not larger. */
size_t utf8_make_printable(char *text, size_t length);
/* The same for a string. `make_line_printable` is for text that is to stay one line: a newline, a
 * tab, and a mark that changes the direction of text become '?' too. */
void utf8_make_string_printable(char *string);
void utf8_make_line_printable(char *line);

#endif
