/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the bytes a worker writes into lines for the console, whatever pieces they arrive in.
 * A line is shown as Python's text files show it (open(…, errors="replace"), which
 * torch/distributed/elastic/multiprocessing/tail_log.py reads with): "\r\n" and a lone "\r" end a
 * line like "\n", bytes that are no UTF-8 become U+FFFD. Unlike there, an unfinished line is held
 * back until it is finished or the stream ends. Log files get the raw bytes and not this. */
#ifndef MUSTER_CORE_LINE_SPLITTER_H
#define MUSTER_CORE_LINE_SPLITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"

/* Longest line in bytes, without its newline. A longer one comes in pieces, each a line of its own,
 * so that a worker that never ends a line costs little memory. Pieces never cut a character. */
#define LINE_SPLITTER_CEILING 65536

struct line {
    struct slice text;   /* UTF-8, ends with a newline (that was added where there was none) */
    uint64_t raw_length; /* how many bytes of input it was made of */
};

/* A zeroed struct is a valid splitter at the start of a stream. */
struct line_splitter {
    struct text line;    /* the unfinished line, decoded */
    uint64_t raw_length; /* bytes of input `line` was made of */
    uint8_t sequence[4]; /* the start of a character that is not complete */
    uint8_t sequence_length;
    bool has_return; /* a "\r" came last: a "\n" would belong to it */
};

/* Called for each line; the text is only valid during the call. */
typedef void line_visit(void *context, const struct line *line);

void line_splitter_clear(struct line_splitter *splitter);

/* Takes the next bytes of the stream and gives every line they finish. */
void line_splitter_feed(
    struct line_splitter *splitter, struct slice input, line_visit *visit, void *context);

/* The stream has ended: gives what is left, with a newline added. The splitter is as new. */
void line_splitter_finish(struct line_splitter *splitter, line_visit *visit, void *context);

/* How many bytes of input were taken that no line has been given for yet. */
uint64_t line_splitter_held(const struct line_splitter *splitter);

/* Whether any of the needles occurs in the line, its newline included; the empty needle is in every
 * line. */
bool line_matches(struct slice line, const struct text_list *needles);

#endif
