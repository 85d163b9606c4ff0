/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define CONSOLE_RECORD_CEILING ((size_t)1024 * 1024)

/* The most bytes per write. A pipe accepts that many in one piece, and has room for them when it is
 * writable. */
#define CHUNK_SIZE PIPE_BUF
/* Lines are gathered until this many bytes wait, or until the turn ends. */
#define GATHERED_SIZE ((size_t)64 * 1024)

struct console_events {
    /* A console that was stalled has accepted bytes, or is found closed. */
    void (*moved)(void *context);
    /* Called once. If `is_closed`, the console is closed and everything from now on is discarded.
     * If not, a write failed and the bytes that waited are lost. */
    void (*failed)(void *context, int system_error, bool is_closed);
    void *context;
};

struct console {
    struct event_loop *loop;
    struct console_events events;
    struct console_outlet outlet;
    int epoll_fd; /* watches the descriptor while it is stalled; libuv itself would set O_NONBLOCK
                       on it */
    struct event_descriptor *writable;
    struct bytes queue;
    size_t start; /* bytes of the queue before this one are already written */
    uint64_t taken;
    bool is_stalled;
    bool is_closed;
    bool has_failed;
};

static enum console_kind kind_of(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return CONSOLE_STREAM; /* the descriptor is not open; the first write will fail */
    }
    if (S_ISSOCK(status.st_mode)) {
        return CONSOLE_SOCKET;
    }
    bool is_stream = S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && isatty(fd) == 1);
    return is_stream ? CONSOLE_STREAM : CONSOLE_FILE;
}

static int reopen(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

struct console_outlet console_outlet_open(int fd) {
    enum console_kind kind = kind_of(fd);
    return (struct console_outlet){kind, fd, kind == CONSOLE_STREAM ? reopen(fd) : -1};
}

void console_outlet_close(struct console_outlet *outlet) {
    if (outlet->private_fd >= 0) {
        close(outlet->private_fd);
    }
    outlet->private_fd = -1;
}

int console_outlet_watched(const struct console_outlet *outlet) {
    return outlet->private_fd >= 0 ? outlet->private_fd : outlet->fd;
}

ssize_t console_outlet_write(const struct console_outlet *outlet, const void *data, size_t length) {
    switch (outlet->kind) {
    case CONSOLE_FILE:
        return write(outlet->fd, data, length);
    case CONSOLE_SOCKET:
        return send(outlet->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    case CONSOLE_STREAM:
        break;
    }
    if (outlet->private_fd >= 0) {
        return write(outlet->private_fd, data, length);
    }
    struct pollfd poller = {.fd = outlet->fd, .events = POLLOUT};
    if (poll(&poller, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(outlet->fd, data, length);
}

static void become_writable(void *context);

/* `fd` stays the caller's and must be open as long as the console exists. SIGPIPE must be ignored
 * or blocked. */
static enum failure_code console_new(struct event_loop *loop, int fd,
    const struct console_events *events, struct console **out_console, struct failure *failure) {
    struct console *console = memory_allocate(sizeof *console);
    *console =
        (struct console){.loop = loop, .events = *events, .outlet = {.fd = fd, .private_fd = -1}};
    console->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (console->epoll_fd < 0) {
        int error = errno;
        free(console);
        return failure_set_system(failure, error, "cannot watch the console");
    }
    enum failure_code code = event_descriptor_new(
        loop, console->epoll_fd, become_writable, console, &console->writable, failure);
    if (code != FAILURE_NONE) {
        close(console->epoll_fd);
        free(console);
        return code;
    }
    console->outlet = console_outlet_open(fd);
    *out_console = console;
    return FAILURE_NONE;
}

/* Discards the bytes that are still queued. Accepts NULL. */
static void console_free(struct console *console) {
    if (console == NULL) {
        return;
    }
    event_descriptor_free(console->writable);
    close(console->epoll_fd);
    console_outlet_close(&console->outlet);
    bytes_clear(&console->queue);
    free(console);
}

/* Whether `fd` leads to the same place, so that both need one queue. */
static bool console_is_same(const struct console *console, int fd) {
    struct stat mine;
    struct stat other;
    return console->outlet.fd == fd ||
           (fstat(console->outlet.fd, &mine) == 0 && fstat(fd, &other) == 0 &&
               mine.st_dev == other.st_dev && mine.st_ino == other.st_ino);
}

/* console_queued is the number of bytes in the queue. console_taken is the total of bytes written
 * or discarded; it grows as long as the console makes progress. */
static size_t console_queued(const struct console *console) {
    return console->queue.length - console->start;
}

static uint64_t console_taken(const struct console *console) {
    return console->taken;
}

static bool console_is_stalled(const struct console *console) {
    return console->is_stalled;
}

static bool console_is_closed(const struct console *console) {
    return console->is_closed;
}

/* Discards the queue. */
static void console_drop(struct console *console) {
    console->taken += console_queued(console);
    bytes_clear(&console->queue);
    console->start = 0;
}

/* EIO of a terminal says that it has hung up, that of a file that its disk has failed once. */
static bool is_closed_error(const struct console *console, int error) {
    return error == EPIPE || (error == EIO && console->outlet.kind == CONSOLE_STREAM) ||
           error == EBADF || error == ENXIO || error == ECONNRESET || error == ENOTCONN;
}

static void fail(struct console *console, int error) {
    console->is_closed = is_closed_error(console, error);
    console_drop(console);
    bool is_news = !console->has_failed || console->is_closed;
    console->has_failed = true;
    if (is_news) {
        console->events.failed(console->events.context, error, console->is_closed);
    }
}

/* Asks the loop for one call when the descriptor accepts more. */
static void wait_for_room(struct console *console) {
    struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT};
    int fd = console_outlet_watched(&console->outlet);
    int status = epoll_ctl(console->epoll_fd, EPOLL_CTL_MOD, fd, &event);
    if (status != 0 && errno == ENOENT) {
        status = epoll_ctl(console->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
    if (status != 0) {
        fail(console, errno);
        return;
    }
    console->is_stalled = true;
}

/* The size of the next write: whole lines up to CHUNK_SIZE, or a part of a longer line. */
static size_t next_chunk(const struct console *console) {
    size_t queued = console_queued(console);
    if (console->outlet.kind == CONSOLE_FILE || queued <= CHUNK_SIZE) {
        return queued;
    }
    const uint8_t *from = console->queue.data + console->start;
    const uint8_t *newline = memrchr(from, '\n', CHUNK_SIZE);
    return newline == NULL ? CHUNK_SIZE : (size_t)(newline - from) + 1;
}

static void forget_written(struct console *console) {
    if (console_queued(console) == 0) {
        if (console->queue.capacity > GATHERED_SIZE) {
            bytes_clear(&console->queue);
        }
        console->queue.length = 0;
        console->start = 0;
    } else if (console->start > console->queue.length / 2) {
        bytes_consume(&console->queue, console->start);
        console->start = 0;
    }
}

/* Writes as much as the descriptor accepts now. The rest follows when it accepts more. */
static void console_flush(struct console *console) {
    while (!console->is_stalled && console_queued(console) > 0) {
        ssize_t written = console_outlet_write(
            &console->outlet, console->queue.data + console->start, next_chunk(console));
        if (written >= 0) {
            console->start += (size_t)written;
            console->taken += (uint64_t)written;
        } else if (errno == EAGAIN) {
            wait_for_room(console);
        } else if (errno != EINTR) {
            fail(console, errno);
        }
    }
    forget_written(console);
}

static void become_writable(void *context) {
    struct console *console = context;
    struct epoll_event event;
    if (epoll_wait(console->epoll_fd, &event, 1, 0) <= 0) {
        return;
    }
    console->is_stalled = false;
    console_flush(console);
    console->events.moved(console->events.context);
}

static bool add(struct console *console, struct slice first, struct slice second, size_t ceiling) {
    size_t length = first.length + second.length;
    if (console_queued(console) + length > GATHERED_SIZE) {
        console_flush(console);
    }
    if (console->is_closed) {
        return true;
    }
    if (console_queued(console) + length > ceiling) {
        return false;
    }
    return bytes_append(&console->queue, first.data, first.length) == FAILURE_NONE &&
           bytes_append(&console->queue, second.data, second.length) == FAILURE_NONE;
}

/* The bytes of workers' lines that may wait; these can be read again from their file. */
#define CONSOLE_LINE_CEILING ((size_t)256 * 1024)

/* Queues header and line as one. Returns false and takes nothing when the console is stalled and
 * its queue is full. A closed console accepts and discards everything. */
static bool console_add_line(struct console *console, struct slice header, struct slice line) {
    return add(console, header, line, CONSOLE_LINE_CEILING);
}

/* As console_add_line, for a record of the agent, which cannot be read again, and so
 * has more room. */
static bool console_add_record(struct console *console, struct slice record) {
    return add(console, record, (struct slice){0}, CONSOLE_RECORD_CEILING);
}

/* Console feed. */

/* The bytes of records that may wait for ended streams. */
#define CONSOLE_FEED_TEXT_CEILING ((size_t)256 * 1024)

/* The bytes that are read again at once; larger than the longest line with its newline. */
#define CONSOLE_FEED_CHUNK_SIZE ((size_t)2 * LINE_SPLITTER_CEILING)
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
    uint8_t *data = memory_allocate(CONSOLE_FEED_CHUNK_SIZE);
    ssize_t length = read_chunk(item, data, CONSOLE_FEED_CHUNK_SIZE);
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
