/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's stdout or stderr as an output for whole lines: a queue in front of a descriptor that
 * may be slow, stopped or closed. It never blocks and never changes the flags of the descriptor,
 * which the workers and the shell share. Lines stay whole: a line that fits into PIPE_BUF is
 * written in one piece. Log files are not known here. A caller whose line is refused reads it again
 * later: that is the feed, below. */
#ifndef MUSTER_HOST_LOG_CONSOLE_H
#define MUSTER_HOST_LOG_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/workers/log_plan.h"
#include "host/loop/event_loop.h"

enum console_kind {
    CONSOLE_FILE,   /* a regular file or /dev/null: writing never blocks */
    CONSOLE_SOCKET, /* written to with MSG_DONTWAIT */
    CONSOLE_STREAM, /* a pipe or a terminal */
};

/* A way to the place behind a descriptor on which no write blocks. */
struct console_outlet {
    enum console_kind kind;
    int fd;         /* the caller's */
    int private_fd; /* a non-blocking open file description of our own for the same place; -1 when
                       there is none (a file, or a terminal of another user) */
};

struct console_outlet console_outlet_open(int fd);
void console_outlet_close(struct console_outlet *outlet);
/* The descriptor that tells when there is room. */
int console_outlet_watched(const struct console_outlet *outlet);
/* Like write(), but fails with EAGAIN where write() would block. At most PIPE_BUF bytes, where they
 * are to stay in one piece. */
ssize_t console_outlet_write(const struct console_outlet *outlet, const void *data, size_t length);

struct console;

/* Feeds a console with the lines of several streams and with records of the agent. As long as the
 * console keeps up, everything goes straight into its queue. A stream whose line finds no room has
 * fallen behind: when the console accepts more, its lines are read again from its log file until it
 * has caught up. So a slow console costs neither lines nor memory. The lines of one stream stay in
 * order. A record waits for streams that had ended before it, and for no others. */

/* The maximum number of ended streams and records that may wait for the console. */
#define CONSOLE_FEED_ITEM_CEILING 1024

/* The `from` of a line that is missing in its file and cannot be read again. */
#define CONSOLE_FEED_NOWHERE UINT64_MAX

struct console_feed;
struct console_feed_item;

/* The place of one stream in a feed. `path` and `header` belong to the stream, the other fields to
 * the feed. */
struct console_feed_source {
    const char *path;
    const char *header;
    struct console_feed_item *behind; /* lines that must be read again; NULL: the stream keeps up */
};

struct console_feed_loss {
    uint64_t lines;
    uint64_t records;
    uint64_t bytes; /* bytes of log files whose lines were not shown */
};

/* Called each time the console has accepted bytes, after the feed has used the room. */
struct console_feed_events {
    void (*moved)(void *context);
    void (*failed)(void *context, int system_error, bool is_closed);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code console_feed_new(struct event_loop *loop,
    int fd, const struct console_feed_events *events, struct console_feed **out_feed,
    struct failure *failure);
/* Accepts NULL. All sources must have ended. */
void console_feed_free(struct console_feed *feed);

bool console_feed_is_same(const struct console_feed *feed, int fd);

/* Adds a line whose first byte is at offset `from` in the source's file. */
void console_feed_line(struct console_feed *feed, struct console_feed_source *source,
    const struct line *line, uint64_t from);

/* Says that the source's file holds whole lines up to `to`. For a source that is behind. */
void console_feed_extend(struct console_feed_source *source, uint64_t to);

/* Says that no more lines of this source follow. Lines that it is behind with stay with the
 * feed. */
void console_feed_end(struct console_feed *feed, struct console_feed_source *source);

void console_feed_record(struct console_feed *feed, const char *text);

/* Called at the end of a turn: writes what was gathered. */
void console_feed_flush(struct console_feed *feed);

/* Whether the console has accepted everything. */
bool console_feed_is_drained(const struct console_feed *feed);
/* A count that grows with every byte the console accepts. */
uint64_t console_feed_taken(const struct console_feed *feed);
/* Discards everything that waits, and counts it as lost. */
void console_feed_drop(struct console_feed *feed);
/* What was not shown because the console was too slow. The count then starts again. */
struct console_feed_loss console_feed_take_loss(struct console_feed *feed);

#endif
