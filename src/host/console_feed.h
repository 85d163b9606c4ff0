/* SPDX-License-Identifier: BSD-3-Clause */
/* What a console is to be given: lines of several streams and records of the agent. As long as the
 * console keeps up, they go straight into its queue. A stream whose line finds no room has fallen
 * behind: from there on its lines are read again from its log file, when the console moves, until
 * it has caught up. So a slow console costs neither lines nor memory. Lines of a stream stay in
 * order; a record waits for streams that had ended before it, and for no others. */
#ifndef MUSTER_HOST_CONSOLE_FEED_H
#define MUSTER_HOST_CONSOLE_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/line_splitter.h"
#include "host/console.h"

/* Ended streams and records that may wait for the console, and the bytes of those records. */
#define CONSOLE_FEED_ITEM_CEILING 1024
#define CONSOLE_FEED_TEXT_CEILING ((size_t)256 * 1024)

/* `from` of a line that cannot be read again, because its file lacks it. */
#define CONSOLE_FEED_NOWHERE UINT64_MAX

struct console_feed;
struct console_feed_item;

/* One stream's place in a feed. `path` and `header` belong to the stream; the rest is the feed's.
 */
struct console_feed_source {
    const char *path;
    const char *header;
    struct console_feed_item *behind; /* what is still to be read again; NULL: keeps up */
};

struct console_feed_loss {
    uint64_t lines;
    uint64_t records;
    uint64_t bytes; /* of log files that would have been lines */
};

/* Called whenever the console has moved, after the feed has done its part. */
struct console_feed_events {
    void (*moved)(void *context);
    void (*failed)(void *context, int system_error, bool is_closed);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code console_feed_new(struct event_loop *loop,
    int fd, const struct console_feed_events *events, struct console_feed **out_feed,
    struct failure *failure);
/* Accepts NULL. All sources have ended. */
void console_feed_free(struct console_feed *feed);

bool console_feed_is_same(const struct console_feed *feed, int fd);

/* Gives a line whose first byte is at `from` in the source's file. */
void console_feed_line(struct console_feed *feed, struct console_feed_source *source,
    const struct line *line, uint64_t from);

/* The source's file holds whole lines up to `to`: for a source that is behind. */
void console_feed_extend(struct console_feed_source *source, uint64_t to);

/* No line of this source will follow; what it is behind with stays with the feed. */
void console_feed_end(struct console_feed *feed, struct console_feed_source *source);

void console_feed_record(struct console_feed *feed, const char *text);

/* At the end of a turn: passes on what was gathered. */
void console_feed_flush(struct console_feed *feed);

/* Whether the console has everything. */
bool console_feed_is_drained(const struct console_feed *feed);
/* Grows with every byte the console takes. */
uint64_t console_feed_taken(const struct console_feed *feed);
/* Gives up what waits, and counts it as lost. */
void console_feed_drop(struct console_feed *feed);
/* What the console was not given because it was too slow; counts anew afterwards. */
struct console_feed_loss console_feed_take_loss(struct console_feed *feed);

#endif
