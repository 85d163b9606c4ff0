/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/console_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

/* The bytes that are read again at once; larger than the longest line with its newline. */
#define CHUNK_SIZE ((size_t)2 * LINE_SPLITTER_CEILING)
/* Chunks per turn. With more, a fast console that is far behind would delay the workers' pipes. */
#define CHUNKS_PER_TURN 8

/* An item that waits for the console: a record, or whole lines of a log file. */
struct console_feed_item {
    struct console_feed_item *next;
    char *record; /* NULL: the item is lines of a file */
    char *path;
    char *header;
    uint64_t from;
    uint64_t to;
    struct console_feed_source *source; /* NULL: the source has ended */
};

struct console_feed {
    struct event_loop *loop;
    struct console *console;
    struct console_feed_events events;
    struct console_feed_item *first;
    struct console_feed_item **last; /* where the next item is linked */
    struct event_timer *again; /* fires when there is more to read again and the console is ready */
    size_t settled_count;      /* number of waiting records and ended streams */
    size_t text_length;        /* bytes of the waiting records */
    struct console_feed_loss loss;
};

/* -- the items -------------------------------------------------------------------------------- */

static void append_item(struct console_feed *feed, struct console_feed_item *item) {
    item->next = NULL;
    *feed->last = item;
    feed->last = &item->next;
}

static struct console_feed_item *take_first(struct console_feed *feed) {
    struct console_feed_item *item = feed->first;
    feed->first = item->next;
    if (feed->first == NULL) {
        feed->last = &feed->first;
    }
    return item;
}

static void unlink_item(struct console_feed *feed, struct console_feed_item *item) {
    struct console_feed_item **link = &feed->first;
    while (*link != item) {
        link = &(*link)->next;
    }
    *link = item->next;
    if (*link == NULL) {
        feed->last = link;
    }
}

static void free_item(struct console_feed *feed, struct console_feed_item *item) {
    if (item->source != NULL) {
        item->source->behind = NULL;
    } else {
        feed->settled_count--;
    }
    if (item->record != NULL) {
        feed->text_length -= strlen(item->record);
    }
    free(item->record);
    free(item->path);
    free(item->header);
    free(item);
}

static void count_loss(struct console_feed *feed, const struct console_feed_item *item) {
    if (item->record != NULL) {
        feed->loss.records++;
    } else {
        feed->loss.bytes += item->to - item->from;
    }
}

/* -- reading again ---------------------------------------------------------------------------- */

/* One chunk of a file that is being passed to the console. */
struct replay {
    struct console_feed *feed;
    struct console_feed_item *item;
    bool is_refused;
};

static void replay_line(void *context, const struct line *line) {
    struct replay *replay = context;
    if (replay->is_refused) {
        return;
    }
    if (console_add_line(
            replay->feed->console, slice_from_string(replay->item->header), line->text)) {
        replay->item->from += line->raw_length;
    } else {
        replay->is_refused = true;
    }
}

static ssize_t read_chunk(const struct console_feed_item *item, uint8_t *out_data, size_t size) {
    uint64_t left = item->to - item->from;
    int fd = open(item->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return -1;
    }
    ssize_t length = pread(fd, out_data, left < size ? (size_t)left : size, (off_t)item->from);
    close(fd);
    return length;
}

/* Gives up the rest of the item's file, because the file was shortened or removed meanwhile. */
static void skip_rest(struct console_feed *feed, struct console_feed_item *item) {
    feed->loss.bytes += item->to - item->from;
    item->from = item->to;
}

/* Passes lines of the item's file to the console; false when the console accepts no more. */
static bool replay_chunk(struct console_feed *feed, struct console_feed_item *item) {
    uint8_t *data = memory_allocate(CHUNK_SIZE);
    ssize_t length = read_chunk(item, data, CHUNK_SIZE);
    if (length <= 0) {
        skip_rest(feed, item);
        free(data);
        return true;
    }
    struct replay replay = {.feed = feed, .item = item};
    struct line_splitter splitter = {0};
    uint64_t start = item->from;
    uint64_t end = start + (uint64_t)length;
    line_splitter_feed(&splitter, (struct slice){data, (size_t)length}, replay_line, &replay);
    if (end == item->to && !replay.is_refused) {
        line_splitter_finish(&splitter, replay_line, &replay);
    }
    line_splitter_clear(&splitter);
    free(data);
    if (item->from == start && !replay.is_refused) {
        skip_rest(feed, item);
    }
    return !replay.is_refused;
}

/* Passes the first item, or a part of it, to the console; false when the console accepts no
 * more. */
static bool give_first(struct console_feed *feed) {
    struct console_feed_item *item = feed->first;
    if (item->record != NULL) {
        if (!console_add_record(feed->console, slice_from_string(item->record))) {
            return false;
        }
        free_item(feed, take_first(feed));
        return true;
    }
    bool takes_more = item->from >= item->to || replay_chunk(feed, item);
    if (item->from >= item->to) {
        free_item(feed, take_first(feed));
    } else if (item->source != NULL) {
        append_item(feed,
            take_first(
                feed)); /* a live source may never end, so now the other items get their turn */
    }
    return takes_more;
}

static void give_items(struct console_feed *feed) {
    int chunks = 0;
    while (feed->first != NULL && !console_is_stalled(feed->console)) {
        if (chunks++ == CHUNKS_PER_TURN) {
            event_timer_set(feed->again, event_loop_now(feed->loop));
            return;
        }
        if (!give_first(feed)) {
            return; /* the console is stalled; console_moved continues */
        }
        console_flush(feed->console);
    }
}

/* -- the console's events --------------------------------------------------------------------- */

/* Discards everything that waits, because the console has closed or the feed ends. */
static void drop_items(struct console_feed *feed) {
    while (feed->first != NULL) {
        free_item(feed, take_first(feed));
    }
}

static void console_moved(void *context) {
    struct console_feed *feed = context;
    if (console_is_closed(feed->console)) {
        drop_items(feed);
    }
    give_items(feed);
    feed->events.moved(feed->events.context);
}

static void console_failed(void *context, int system_error, bool is_closed) {
    struct console_feed *feed = context;
    /* console_moved may never be called again, so the timer continues with the items. */
    event_timer_set(feed->again, event_loop_now(feed->loop));
    feed->events.failed(feed->events.context, system_error, is_closed);
}

enum failure_code console_feed_new(struct event_loop *loop, int fd,
    const struct console_feed_events *events, struct console_feed **out_feed,
    struct failure *failure) {
    struct console_feed *feed = memory_allocate(sizeof *feed);
    feed->loop = loop;
    feed->events = *events;
    feed->last = &feed->first;
    const struct console_events own = {console_moved, console_failed, feed};
    enum failure_code code = console_new(loop, fd, &own, &feed->console, failure);
    if (code != FAILURE_NONE) {
        free(feed);
        return code;
    }
    feed->again = event_timer_new(loop, console_moved, feed);
    *out_feed = feed;
    return FAILURE_NONE;
}

void console_feed_free(struct console_feed *feed) {
    if (feed == NULL) {
        return;
    }
    drop_items(feed);
    event_timer_free(feed->again);
    console_free(feed->console);
    free(feed);
}

bool console_feed_is_same(const struct console_feed *feed, int fd) {
    return console_is_same(feed->console, fd);
}

/* -- what comes in ---------------------------------------------------------------------------- */

void console_feed_line(struct console_feed *feed, struct console_feed_source *source,
    const struct line *line, uint64_t from) {
    if (source->behind != NULL ||
        console_add_line(feed->console, slice_from_string(source->header), line->text)) {
        return;
    }
    if (from == CONSOLE_FEED_NOWHERE) {
        feed->loss.lines++;
        return;
    }
    struct console_feed_item *item = memory_allocate(sizeof *item);
    *item = (struct console_feed_item){
        .path = memory_duplicate_string(source->path),
        .header = memory_duplicate_string(source->header),
        .from = from,
        .to = from + line->raw_length,
        .source = source,
    };
    source->behind = item;
    append_item(feed, item);
}

void console_feed_extend(struct console_feed_source *source, uint64_t to) {
    if (source->behind != NULL && to > source->behind->to) {
        source->behind->to = to;
    }
}

void console_feed_end(struct console_feed *feed, struct console_feed_source *source) {
    if (source->behind == NULL) {
        return;
    }
    struct console_feed_item *item = source->behind;
    source->behind = NULL;
    item->source = NULL;
    feed->settled_count++;
    if (feed->settled_count > CONSOLE_FEED_ITEM_CEILING) {
        count_loss(feed, item);
        unlink_item(feed, item);
        free_item(feed, item);
    }
}

static bool has_room_for_record(const struct console_feed *feed, const char *text) {
    return feed->settled_count < CONSOLE_FEED_ITEM_CEILING &&
           feed->text_length + strlen(text) <= CONSOLE_FEED_TEXT_CEILING;
}

void console_feed_record(struct console_feed *feed, const char *text) {
    if (feed->settled_count == 0) {
        if (!console_add_record(feed->console, slice_from_string(text))) {
            feed->loss.records++;
        }
        return;
    }
    if (!has_room_for_record(feed, text)) {
        feed->loss.records++;
        return;
    }
    struct console_feed_item *item = memory_allocate(sizeof *item);
    item->record = memory_duplicate_string(text);
    feed->text_length += strlen(text);
    feed->settled_count++;
    append_item(feed, item);
}

void console_feed_flush(struct console_feed *feed) {
    console_flush(feed->console);
}

bool console_feed_is_drained(const struct console_feed *feed) {
    return feed->first == NULL && console_queued(feed->console) == 0;
}

uint64_t console_feed_taken(const struct console_feed *feed) {
    return console_taken(feed->console);
}

void console_feed_drop(struct console_feed *feed) {
    for (const struct console_feed_item *item = feed->first; item != NULL; item = item->next) {
        count_loss(feed, item);
    }
    drop_items(feed);
    feed->loss.bytes += console_queued(feed->console);
    console_drop(feed->console);
}

struct console_feed_loss console_feed_take_loss(struct console_feed *feed) {
    struct console_feed_loss loss = feed->loss;
    feed->loss = (struct console_feed_loss){0};
    return loss;
}
