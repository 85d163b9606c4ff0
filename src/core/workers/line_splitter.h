/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the bytes that a worker writes into lines for the console. The bytes may arrive in any
 * pieces. A line is shown as Python's open(…, errors="replace") reads it, which
 * torch/distributed/elastic/multiprocessing/tail_log.py uses: "\r\n" and a single "\r" end a line
 * like "\n", and bytes that are not UTF-8 become U+FFFD. In contrast to tail_log.py an unfinished
 * line is held back until it is finished or the stream ends. Log files get the raw bytes. */
#ifndef MUSTER_CORE_WORKERS_LINE_SPLITTER_H
#define MUSTER_CORE_WORKERS_LINE_SPLITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"

/* The longest line in bytes, without its newline. A longer line comes in pieces, each a line of its
 * own, so that a worker that never ends a line needs little memory. Pieces never split a character.
 */
#define LINE_SPLITTER_CEILING 65536

struct line {
    struct slice text;   /* UTF-8 that ends with a newline, which may have been added */
    uint64_t raw_length; /* how many bytes of input became this line */
};

/* A zeroed struct is a valid splitter at the start of a stream. */
struct line_splitter {
    struct text line;    /* the unfinished line, decoded */
    uint64_t raw_length; /* how many bytes of input became `line` */
    uint8_t sequence[4]; /* the beginning of an incomplete character */
    uint8_t sequence_length;
    bool has_return; /* the last byte was "\r": a "\n" after it belongs to the same newline */
};

/* Called for each line. The text is only valid during the call. */
typedef void line_visit(void *context, const struct line *line);

void line_splitter_clear(struct line_splitter *splitter);

/* Takes the next bytes of the stream, and gives every line that they finish. */
void line_splitter_feed(
    struct line_splitter *splitter, struct slice input, line_visit *visit, void *context);

/* The stream has ended: gives the rest as a line with a newline. Afterwards the splitter is as new.
 */
void line_splitter_finish(struct line_splitter *splitter, line_visit *visit, void *context);

/* Whether one of the needles occurs in the line with its newline. The empty needle occurs in every
 * line. */
bool line_matches(struct slice line, const struct text_list *needles);

#endif
