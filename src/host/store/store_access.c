/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_access.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/store/file_store_contents.h"
#include "host/loop/clock.h"
#include "host/network/network_address.h"
#include "wire/store/store_codec.h"

/* Reports by inotify that a file has been written and closed, removed or replaced. Changes by other
 * hosts on a network file system are not reported, and the kernel may have no watch left. So the
 * file is also looked at from time to time. */

/* Watches closing instead of each write, because FileStore's writers write in pieces and have
 * unlocked when they close. Removing a file that is still open first changes its attributes. */
#define CHANGES (IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define READ_SIZE 4096

struct file_change_watch {
    int fd;
    struct event_descriptor *descriptor;
    void (*changed)(void *context);
    void *context;
};

/* Drops changes that have not been reported yet. Returns whether there were any. Accepts NULL
 * (false). */
static bool file_change_watch_drain(struct file_change_watch *watch) {
    char events[READ_SIZE];
    bool has_changed = false;
    while (watch != NULL && read(watch->fd, events, sizeof events) > 0) {
        has_changed = true;
    }
    return has_changed;
}

static void readable(void *context) {
    struct file_change_watch *watch = context;
    if (file_change_watch_drain(watch)) {
        watch->changed(watch->context);
    }
}

/* May be called from inside its callback. Accepts NULL. */
static void file_change_watch_free(struct file_change_watch *watch) {
    if (watch == NULL) {
        return;
    }
    event_descriptor_free(watch->descriptor);
    if (watch->fd >= 0) {
        close(watch->fd);
    }
    free(watch);
}

/* NULL when the file cannot be watched. Several changes may cause one call. */
static struct file_change_watch *file_change_watch_new(
    struct event_loop *loop, const char *path, void (*changed)(void *context), void *context) {
    struct file_change_watch *watch = memory_allocate(sizeof *watch);
    watch->changed = changed;
    watch->context = context;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0 || inotify_add_watch(watch->fd, path, CHANGES) < 0 ||
        event_descriptor_new(loop, watch->fd, readable, watch, &watch->descriptor, NULL) !=
            FAILURE_NONE) {
        file_change_watch_free(watch);
        return NULL;
    }
    return watch;
}

/* File store file. */

/* The file of a FileStore, used as PyTorch's FileStore uses it (c10d/FileStore.cpp). Each visit
 * opens and locks the file (flock: exclusive to write, shared to read), reads from where the last
 * visit ended, appends, unlocks and closes. Nothing here waits: a visit that is not possible now
 * fails. */

struct file_store_file {
    char *path;
    struct file_store_contents *contents; /* what has been read so far */
    struct file_store_limits limits;
    int fd;            /* descriptor of the visit under way, else -1 */
    uint64_t position; /* end of the last record read */
    bool has_more;     /* the last visit stopped early because there was much to read */
    bool is_known;     /* the file has been visited; `device` and `inode` identify it */
    dev_t device;
    ino_t inode;
    struct bytes unread; /* bytes read that are no whole record yet */
    struct bytes output; /* records to be written to the file */
};

enum file_store_visit {
    FILE_STORE_READ,
    FILE_STORE_WRITE,
    FILE_STORE_CREATE, /* to write; a missing file is created with PyTorch's mode */
};

#define FILE_MODE 0644 /* as PyTorch */
#define CHUNK_SIZE ((size_t)64 << 10)
/* What is kept of a chunk takes no more than so many times its length. */
#define CHUNK_FACTOR 4
/* The most bytes that one visit reads before the loop runs again; they take some milliseconds. */
#define VISIT_SIZE ((size_t)8 << 20)
/* The most memory that each buffer keeps after a visit. */
#define KEPT_SIZE ((size_t)1 << 20)

/* Copies the path. */
static void file_store_file_init(struct file_store_file *file, const char *path) {
    *file = (struct file_store_file){.fd = -1};
    file->limits = FILE_STORE_LIMITS_DEFAULT;
    file->path = memory_duplicate_string(path);
    file->contents = file_store_contents_new(&file->limits);
}

/* Frees a buffer that grew large for a long record. */
static void give_back_room(struct bytes *bytes) {
    if (bytes->capacity > KEPT_SIZE) {
        bytes_clear(bytes);
    }
}

static void file_store_file_leave(struct file_store_file *file) {
    if (file->fd >= 0) {
        /* Unlock before closing: closing wakes the processes that watch the file, and they lock it
         * at once. */
        (void)flock(file->fd, LOCK_UN);
        close(file->fd);
        file->fd = -1;
    }
    give_back_room(&file->unread);
    give_back_room(&file->output);
}

/* Also ends a visit. */
static void file_store_file_clear(struct file_store_file *file) {
    file_store_file_leave(file);
    file_store_contents_free(file->contents);
    bytes_clear(&file->unread);
    bytes_clear(&file->output);
    free(file->path);
    *file = (struct file_store_file){.fd = -1};
}

/* Opens without blocking, even when the path is a FIFO or a device. */
static int open_path(const char *path, enum file_store_visit visit) {
    const int flags[] = {
        [FILE_STORE_READ] = O_RDONLY,
        [FILE_STORE_WRITE] = O_RDWR,
        [FILE_STORE_CREATE] = O_RDWR | O_CREAT,
    };
    return open(path, flags[visit] | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, FILE_MODE);
}

static bool is_same_file(const struct file_store_file *file, const struct stat *status) {
    return status->st_dev == file->device && status->st_ino == file->inode &&
           (uint64_t)status->st_size >= file->position;
}

/* Records the identity of the file, or checks that it is still the same file. */
static enum failure_code recognize(struct file_store_file *file, struct failure *failure) {
    struct stat status;
    if (fstat(file->fd, &status) != 0) {
        return failure_set_system(failure, errno, "cannot look at the FileStore %s", file->path);
    }
    if (!S_ISREG(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID,
            "the FileStore %s cannot be used: it is no regular file", file->path);
    }
    if (file->is_known && !is_same_file(file, &status)) {
        return failure_set(failure, FAILURE_MISSING,
            "the FileStore %s was replaced or cut short while it was in use", file->path);
    }
    file->is_known = true;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return FAILURE_NONE;
}

static enum failure_code open_visit(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure) {
    file->fd = open_path(file->path, visit);
    if (file->fd >= 0) {
        return recognize(file, failure);
    }
    if (errno == ENOENT && file->is_known) {
        return failure_set(failure, FAILURE_MISSING,
            "the FileStore %s was removed while it was in use", file->path);
    }
    return failure_set_system(failure, errno, "cannot open the FileStore %s", file->path);
}

static enum failure_code lock(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure) {
    int operation = visit == FILE_STORE_READ ? LOCK_SH : LOCK_EX;
    while (flock(file->fd, operation | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return failure_set(failure, FAILURE_INCOMPLETE,
                "another process keeps the FileStore %s locked", file->path);
        }
        if (errno != EINTR) {
            return failure_set_system(failure, errno, "cannot lock the FileStore %s", file->path);
        }
    }
    return FAILURE_NONE;
}

static enum failure_code describe_contents_failure(
    const struct file_store_file *file, enum failure_code code, struct failure *failure) {
    if (code == FAILURE_LIMIT) {
        return failure_set(
            failure, code, "the FileStore %s holds more than can be kept in memory", file->path);
    }
    return failure_set(failure, code,
        "%s is no FileStore: there is no valid record at byte %" PRIu64, file->path,
        file->position);
}

/* Takes every complete record out of the bytes that were read. */
static enum failure_code take_records(struct file_store_file *file, struct failure *failure) {
    struct slice rest = bytes_slice(&file->unread);
    enum failure_code code = FAILURE_NONE;
    while (rest.length > 0) {
        struct file_store_record record;
        size_t consumed;
        code = file_store_record_read(rest, &file->limits, &record, &consumed);
        if (code == FAILURE_NONE) {
            code = file_store_contents_take(file->contents, &record);
        }
        if (code != FAILURE_NONE) {
            break;
        }
        file->position += consumed;
        rest.data += consumed;
        rest.length -= consumed;
    }
    if (code != FAILURE_NONE && code != FAILURE_INCOMPLETE) {
        return describe_contents_failure(file, code, failure);
    }
    bytes_consume(&file->unread, file->unread.length - rest.length);
    return FAILURE_NONE;
}

/* Reads the next chunk; `out_length` is 0 at the end of the file. */
static enum failure_code read_chunk(
    struct file_store_file *file, size_t *out_length, struct failure *failure) {
    struct bytes *unread = &file->unread;
    if (!spare_memory_is_enough_for(unread->length + CHUNK_SIZE, CHUNK_FACTOR)) {
        return failure_set_system(
            failure, ENOMEM, "there is no memory for the FileStore %s", file->path);
    }
    (void)!bytes_reserve(unread, CHUNK_SIZE); /* no ceiling: the longest record needs one chunk */
    ssize_t length;
    do {
        length = pread(file->fd, unread->data + unread->length, CHUNK_SIZE,
            (off_t)(file->position + unread->length));
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
        return failure_set_system(failure, errno, "cannot read the FileStore %s", file->path);
    }
    unread->length += (size_t)length;
    *out_length = (size_t)length;
    return FAILURE_NONE;
}

static enum failure_code catch_up(struct file_store_file *file, struct failure *failure) {
    uint64_t start = file->position;
    size_t length = 0;
    file->unread.length = 0; /* the half record of the last visit may have been removed since */
    do {
        enum failure_code code = read_chunk(file, &length, failure);
        if (code == FAILURE_NONE) {
            code = take_records(file, failure);
        }
        if (code != FAILURE_NONE) {
            return code;
        }
        if (length > 0 && file->position - start >= VISIT_SIZE) {
            file->has_more = true;
            return failure_set(failure, FAILURE_INCOMPLETE,
                "the FileStore %s is long and was not yet read", file->path);
        }
    } while (length > 0);
    return FAILURE_NONE;
}

/* Nothing may be written after half a record, because it would become a part of that record. */
static enum failure_code check_end(const struct file_store_file *file, struct failure *failure) {
    if (file->unread.length == 0) {
        return FAILURE_NONE;
    }
    return failure_set(failure, FAILURE_INCOMPLETE,
        "the FileStore %s ends in the middle of a record, at byte %" PRIu64
        ": its writer was killed or the disk is full",
        file->path, file->position);
}

/* Begins a visit. When it succeeds, everything in the file has been read, and the lock is held
 * until file_store_file_leave.
 *
 * FAILURE_INCOMPLETE: not now, try again. The message says why: another process holds the lock;
 * there is so much to read that the loop should run first (`has_more`); or, for a writer, the file
 * ends in the middle of a record. FAILURE_MISSING: the file is gone, or was replaced or truncated
 * since the last visit. FAILURE_INVALID: it is no regular file. FAILURE_MALFORMED: it is no
 * FileStore. FAILURE_LIMIT: it holds too much. FAILURE_SYSTEM. After one of these the file must not
 * be visited again. */
static enum failure_code file_store_file_enter(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure) {
    file->has_more = false;
    enum failure_code code = open_visit(file, visit, failure);
    if (code == FAILURE_NONE) {
        code = lock(file, visit, failure);
    }
    if (code == FAILURE_NONE) {
        code = catch_up(file, failure);
    }
    if (code == FAILURE_NONE && visit != FILE_STORE_READ) {
        code = check_end(file, failure);
    }
    if (code != FAILURE_NONE) {
        file_store_file_leave(file);
    }
    return code;
}

/* Writes everything or nothing. If the disk is full, the file is truncated again before another
 * process can read it. */
static enum failure_code write_output(struct file_store_file *file, struct failure *failure) {
    size_t done = 0;
    while (done < file->output.length) {
        ssize_t length = pwrite(file->fd, file->output.data + done, file->output.length - done,
            (off_t)(file->position + done));
        if (length >= 0) {
            done += (size_t)length;
        } else if (errno != EINTR) {
            int error = errno;
            bool is_restored = done == 0 || ftruncate(file->fd, (off_t)file->position) == 0;
            return failure_set_system(failure, error, "cannot write the FileStore %s%s", file->path,
                is_restored ? "" : ", which now ends in the middle of a record");
        }
    }
    file->position += done;
    return FAILURE_NONE;
}

/* Appends records in one piece during a visit to write, and adds them to the contents. When the
 * disk is full the file stays as it was. FAILURE_INVALID for a key that cannot be written (nothing
 * has happened then), FAILURE_SYSTEM. */
static enum failure_code file_store_file_append(struct file_store_file *file,
    const struct file_store_record *records, size_t count, struct failure *failure) {
    file->output.length = 0;
    for (size_t i = 0; i < count; i++) {
        enum failure_code code = file_store_record_append(&records[i], &file->output);
        if (code != FAILURE_NONE) {
            return failure_set(
                failure, code, "a key of the FileStore %s cannot begin with '-'", file->path);
        }
    }
    enum failure_code code = write_output(file, failure);
    for (size_t i = 0; i < count && code == FAILURE_NONE; i++) {
        code = file_store_contents_take(file->contents, &records[i]);
        if (code != FAILURE_NONE) {
            return describe_contents_failure(file, code, failure);
        }
    }
    return code;
}

/* Whether a visit might find something new. Does not take the lock. */
static bool file_store_file_has_news(const struct file_store_file *file) {
    struct stat status;
    int fd = open_path(file->path, FILE_STORE_READ);
    bool is_unchanged = fd >= 0 && fstat(fd, &status) == 0 && is_same_file(file, &status) &&
                        (uint64_t)status.st_size == file->position;
    if (fd >= 0) {
        close(fd);
    }
    return !is_unchanged;
}

/* File store. */

/* How often a waiting request checks the file by itself: where the watch reports changes, and where
 * it does not. */
#define WATCHED_MILLISECONDS 1000
#define UNWATCHED_MILLISECONDS 50
/* The pause between two attempts to get the lock grows from about 1 ms to 20 ms. */
#define FIRST_RETRY_MILLISECONDS 1
#define LAST_RETRY_MILLISECONDS 20
/* The number of attempts to get the lock when leaving, a millisecond apart. */
#define LEAVING_ATTEMPTS 20
/* Requests answered per turn of the loop. */
#define REQUESTS_PER_TURN 64

/* The keys in which PyTorch's FileStore counts users that came and users that left. */
#define USER_COUNT_KEY "refcount/"
#define LEFT_COUNT_KEY "cleanup/"

enum store_phase {
    PHASE_OPENING,
    PHASE_READY,
    PHASE_OVER, /* `end` holds the reason */
};

struct file_store {
    struct event_loop *loop;
    struct file_store_settings settings;
    struct file_store_file file;
    enum store_phase phase;
    struct failure end; /* the failure of the last visit, or the end of the store */
    struct instant connect_deadline;
    struct event_timer *timer;
    struct random random;

    struct store_call_queue queue; /* calls that have not begun */
    struct store_call *active;
    struct store_request_decoder decoder; /* decodes the active call's bytes */
    struct file_store_answer answer;
    struct instant next_visit; /* while OPENING, or for the active call */
    uint64_t retry_milliseconds;
    bool is_waiting; /* the active call waits for keys */

    struct file_change_watch *watch; /* NULL when the file cannot be watched */
    bool has_reported_change;        /* the watch reported a change that has not been read yet */
    bool watch_misses_changes;       /* the watch missed a change */

    int busy; /* callbacks under way; the store must not be freed before they end */
    bool is_freed;
};

static struct instant after_milliseconds(struct file_store *store, uint64_t milliseconds) {
    return instant_after(
        event_loop_now(store->loop), duration_from_milliseconds((int64_t)milliseconds));
}

static bool has_passed(struct file_store *store, struct instant instant) {
    return !instant_is_before(event_loop_now(store->loop), instant);
}

/* Sets the timer to whatever is due first. */
static void arm(struct file_store *store) {
    struct instant due = store_call_queue_deadline(&store->queue);
    if (store->phase == PHASE_OPENING) {
        due = instant_earlier(due, instant_earlier(store->next_visit, store->connect_deadline));
    } else if (store->active != NULL) {
        due = instant_earlier(due, instant_earlier(store->next_visit, store->active->deadline));
    } else if (store->queue.first != NULL) {
        due = event_loop_now(store->loop);
    }
    event_timer_set(store->timer, due);
}

/* Lets callbacks free the store while its own code is still running. */
static void enter(struct file_store *store) {
    store->busy++;
}

static void leave(struct file_store *store) {
    store->busy--;
    if (!store->is_freed) {
        arm(store);
    } else if (store->busy == 0) {
        file_store_answer_clear(&store->answer);
        store_request_decoder_clear(&store->decoder);
        file_store_file_clear(&store->file);
        free(store);
    }
}

static void finish(struct store_call *call_taken, enum failure_code code, const char *message) {
    store_call_finish(call_taken, &(struct store_client_result){.code = code, .message = message});
}

static struct store_call *take_active(struct file_store *store) {
    struct store_call *call = store->active;
    store->active = NULL;
    return call;
}

/* Fails the calls that are pending now. Calls that the callbacks add fail in the next turn of the
 * loop. */
static void fail_pending(struct file_store *store, enum failure_code code, const char *message) {
    size_t count = 0;
    for (const struct store_call *each = store->queue.first; each != NULL; each = each->next) {
        count++;
    }
    const struct store_client_result result = {
        .code = code, .message = message, .system_error = store->end.system_error};
    if (store->active != NULL) {
        store_call_finish(take_active(store), &result);
    }
    for (; count > 0 && store->queue.first != NULL; count--) {
        store_call_finish(store_call_queue_pop(&store->queue), &result);
    }
}

/* The file cannot be used any more, or never could; `end` holds the reason. */
static void give_up(struct file_store *store) {
    bool was_ready = store->phase == PHASE_READY;
    store->phase = PHASE_OVER;
    file_change_watch_free(store->watch);
    store->watch = NULL;
    fail_pending(store, was_ready ? FAILURE_DISCONNECTED : store->end.code, store->end.message);
    void (*tell)(void *context, const struct failure *failure) =
        was_ready ? store->settings.lost : store->settings.connected;
    if (!store->is_freed && tell != NULL) {
        tell(store->settings.context, &store->end);
    }
}

/* Schedules another visit soon, after a random pause, so that several processes that want the lock
 * do not try at the same moment. */
static void retry_visit(struct file_store *store) {
    uint64_t ceiling = store->file.has_more ? FIRST_RETRY_MILLISECONDS : store->retry_milliseconds;
    store->next_visit = after_milliseconds(store, 1 + random_below(&store->random, ceiling));
    store->retry_milliseconds =
        ceiling * 2 < LAST_RETRY_MILLISECONDS ? ceiling * 2 : LAST_RETRY_MILLISECONDS;
}

static void visit_now(struct file_store *store) {
    store->next_visit = event_loop_now(store->loop);
    store->retry_milliseconds = FIRST_RETRY_MILLISECONDS;
}

/* Adds to one of PyTorch's own counters. Must be called during a visit. */
static enum failure_code count(struct file_store *store, const char *key, int64_t number) {
    enum failure_code code = file_store_answer_find(&store->answer, store->file.contents,
        &(struct store_request){
            .operation = STORE_ADD, .key = slice_from_string(key), .number = number},
        false);
    if (code != FAILURE_NONE) {
        return failure_set(&store->end, FAILURE_MALFORMED, "%s is no FileStore: %s of '%s'",
            store->file.path, store->answer.reason, key);
    }
    return file_store_file_append(
        &store->file, store->answer.records, store->answer.record_count, &store->end);
}

static void file_changed(void *context);

static void become_ready(struct file_store *store) {
    store->phase = PHASE_READY;
    store->watch = file_change_watch_new(store->loop, store->file.path, file_changed, store);
    if (store->settings.connected != NULL) {
        store->settings.connected(store->settings.context, NULL);
    }
}

static void give_up_opening(struct file_store *store) {
    store->end.code = FAILURE_TIMEOUT;
    failure_wrap(
        &store->end, "gave up after %.1f s", duration_seconds(store->settings.connect_timeout));
    give_up(store);
}

static void open_file(struct file_store *store) {
    bool is_visitor = store->settings.is_visitor;
    enum failure_code code = file_store_file_enter(
        &store->file, is_visitor ? FILE_STORE_READ : FILE_STORE_CREATE, &store->end);
    if (code == FAILURE_NONE && !is_visitor) {
        code = count(store, USER_COUNT_KEY, 1);
    }
    file_store_file_leave(&store->file);
    if (code == FAILURE_NONE) {
        become_ready(store);
    } else if (code != FAILURE_INCOMPLETE) {
        give_up(store);
    } else if (has_passed(store, store->connect_deadline)) {
        give_up_opening(store);
    } else {
        retry_visit(store);
    }
}

/* Ends the visit and waits for the next change. */
static void wait_for_change(struct file_store *store) {
    bool is_watched = store->watch != NULL && !store->watch_misses_changes;
    store->is_waiting = true;
    store->next_visit =
        after_milliseconds(store, is_watched ? WATCHED_MILLISECONDS : UNWATCHED_MILLISECONDS);
}

/* Answers the active call, or leaves it waiting. Must be called during a visit. */
static void answer_active(struct file_store *store, const struct store_request *request) {
    struct file_store_answer *answer = &store->answer;
    const char *message = NULL;
    enum failure_code code =
        file_store_answer_find(answer, store->file.contents, request, store->active->waits_first);
    if (code != FAILURE_NONE) {
        message = answer->reason;
    } else if (answer->record_count > 0) {
        code = file_store_file_append(
            &store->file, answer->records, answer->record_count, &store->end);
        message = store->end.message;
    }
    file_store_file_leave(&store->file);
    if (code == FAILURE_SYSTEM) {
        give_up(store);
    } else if (code != FAILURE_NONE) {
        finish(take_active(store), code, message);
    } else if (answer->is_waiting) {
        wait_for_change(store);
    } else {
        store_call_finish(
            take_active(store), &(struct store_client_result){.reply = &answer->reply});
    }
}

static void init_decoder(struct file_store *store) {
    static const struct file_store_limits limits = FILE_STORE_LIMITS_DEFAULT;
    struct store_limits request_limits = STORE_LIMITS_DEFAULT;
    request_limits.key_bytes = limits.key_bytes;
    request_limits.value_bytes = limits.value_bytes;
    store_request_decoder_init(&store->decoder, &request_limits);
    store->decoder.is_validated = true; /* a file has no handshake */
}

static void visit_for_active(struct file_store *store) {
    struct store_decoded_request decoded;
    enum failure_code code =
        store_request_decoder_next(&store->decoder, bytes_slice(&store->active->bytes), &decoded);
    if (code != FAILURE_NONE) {
        store_request_decoder_clear(&store->decoder);
        init_decoder(store);
        finish(take_active(store), code, decoded.reason);
        return;
    }
    bool writes = file_store_request_writes(decoded.request.operation);
    code = file_store_file_enter(
        &store->file, writes ? FILE_STORE_WRITE : FILE_STORE_READ, &store->end);
    if (code == FAILURE_NONE) {
        store->has_reported_change = false;
        answer_active(store, &decoded.request);
    } else if (code == FAILURE_INCOMPLETE) {
        store->is_waiting = false;
        retry_visit(store);
    } else {
        give_up(store);
    }
}

/* Whether a waiting call must visit the file. If the file has news that the watch did not report,
 * the watch is not reliable. */
static bool has_reason_to_visit(struct file_store *store) {
    bool has_reported_change = file_change_watch_drain(store->watch) || store->has_reported_change;
    if (!has_reported_change && !file_store_file_has_news(&store->file)) {
        return false;
    }
    store->has_reported_change = has_reported_change || file_change_watch_drain(store->watch);
    store->watch_misses_changes = store->watch_misses_changes || !store->has_reported_change;
    return true;
}

static bool can_visit(struct file_store *store) {
    if (store->is_freed || store->phase != PHASE_READY) {
        return false;
    }
    return store->active != NULL ? has_passed(store, store->next_visit)
                                 : store->queue.first != NULL;
}

static void pump(struct file_store *store) {
    for (int i = 0; i < REQUESTS_PER_TURN && can_visit(store); i++) {
        if (store->active == NULL) {
            store->active = store_call_queue_pop(&store->queue);
            store->is_waiting = false;
            visit_now(store);
        }
        if (store->is_waiting && !has_reason_to_visit(store)) {
            wait_for_change(store);
        } else {
            visit_for_active(store);
        }
    }
    if (!store->is_freed && store->phase == PHASE_OVER) {
        fail_pending(store, FAILURE_DISCONNECTED, store->end.message);
    }
}

static void file_changed(void *context) {
    struct file_store *store = context;
    enter(store);
    store->has_reported_change = true;
    if (store->active != NULL) {
        visit_now(store);
    }
    pump(store);
    leave(store);
}

/* Fails the calls whose time is up. They have not changed the file, so nothing has to be undone. */
static void expire(struct file_store *store) {
    if (store->active != NULL && has_passed(store, store->active->deadline)) {
        bool was_hindered = !store->is_waiting && store->end.message[0] != '\0';
        finish(
            take_active(store), FAILURE_TIMEOUT, was_hindered ? store->end.message : "timed out");
    }
    struct store_call *expired = NULL;
    while (!store->is_freed && (expired = store_call_queue_pop_expired(
                                    &store->queue, event_loop_now(store->loop))) != NULL) {
        finish(expired, FAILURE_TIMEOUT, "timed out before it was its turn");
    }
}

static void timer_fired(void *context) {
    struct file_store *store = context;
    enter(store);
    if (store->phase == PHASE_OPENING) {
        open_file(store);
    }
    pump(store);
    if (!store->is_freed) {
        expire(store);
    }
    leave(store);
}

/* Copies the settings. Creates the file when it is missing. Requests may be sent at once; they are
 * carried out after the file has been read. Never NULL. */
static struct file_store *file_store_new(
    struct event_loop *loop, const struct file_store_settings *settings) {
    struct file_store *store = memory_allocate(sizeof *store);
    store->loop = loop;
    store->settings = *settings;
    file_store_file_init(&store->file, settings->path);
    store->settings.path = store->file.path;
    init_decoder(store);
    random_init(&store->random, random_seed());
    store->timer = event_timer_new(loop, timer_fired, store);
    visit_now(store);
    store->connect_deadline = instant_after(store->next_visit, settings->connect_timeout);
    arm(store);
    return store;
}

/* If the lock is not free within milliseconds, the count stays as it is. Then PyTorch never removes
 * the file, which does no harm. */
static void count_out(struct file_store *store) {
    enum failure_code code = FAILURE_INCOMPLETE;
    for (int i = 0; i < LEAVING_ATTEMPTS && code == FAILURE_INCOMPLETE; i++) {
        const struct timespec pause = {.tv_nsec = i == 0 ? 0 : 1000000};
        nanosleep(&pause, NULL);
        code = file_store_file_enter(&store->file, FILE_STORE_WRITE, &store->end);
    }
    if (code == FAILURE_NONE && count(store, LEFT_COUNT_KEY, 1) == FAILURE_NONE) {
        (void)count(store, USER_COUNT_KEY, -1);
    }
    file_store_file_leave(&store->file);
}

/* Pending requests are called back with FAILURE_CANCELLED before this returns. Counts this user
 * out, if the lock is free within some milliseconds. May be called from inside a callback. Accepts
 * NULL. */
static void file_store_free(struct file_store *store) {
    if (store == NULL || store->is_freed) {
        return;
    }
    enter(store);
    bool is_counted = store->phase == PHASE_READY && !store->settings.is_visitor;
    store->is_freed = true;
    store->phase = PHASE_OVER;
    file_change_watch_free(store->watch);
    store->watch = NULL;
    event_timer_free(store->timer);
    fail_pending(store, FAILURE_CANCELLED, "given up");
    if (is_counted) {
        count_out(store);
    }
    leave(store);
}

/* As store_client_send. A request whose time is up fails with FAILURE_TIMEOUT and has changed
 * nothing. The store stays usable. */
static void file_store_send(struct file_store *store, const struct store_client_call *call) {
    store_call_queue_push(&store->queue, store_call_new(call, event_loop_now(store->loop)));
    arm(store); /* it is carried out in the next turn of the loop, never in here */
}

/* Access. */

/* Exactly one of the two pointers is not NULL. */
struct store_access {
    struct store_client *client;
    struct file_store *file;
};

struct store_access *store_access_over_tcp(
    struct event_loop *loop, const struct store_client_settings *settings) {
    struct store_access *access = memory_allocate(sizeof *access);
    access->client = store_client_new(loop, settings);
    return access;
}

struct store_access *store_access_over_file(
    struct event_loop *loop, const struct file_store_settings *settings) {
    struct store_access *access = memory_allocate(sizeof *access);
    access->file = file_store_new(loop, settings);
    return access;
}

void store_access_free(struct store_access *access) {
    if (access != NULL) {
        store_client_free(access->client);
        file_store_free(access->file);
        free(access);
    }
}

void store_access_send(struct store_access *access, const struct store_client_call *call) {
    if (access->client != NULL) {
        store_client_send(access->client, call);
    } else {
        file_store_send(access->file, call);
    }
}

struct duration store_access_look(struct store_access *access) {
    return access->client != NULL ? store_client_look(access->client) : DURATION_FOREVER;
}

struct duration store_access_silence(const struct store_access *access) {
    return access->client != NULL ? store_client_silence(access->client) : (struct duration){0};
}

int store_access_descriptor(const struct store_access *access) {
    return access->client != NULL ? store_client_descriptor(access->client) : -1;
}

void store_access_write_server(const struct store_access *access, struct text *out) {
    if (access->client != NULL) {
        store_client_write_server(access->client, out);
    }
}

void store_access_write_own(const struct store_access *access, struct text *out) {
    char text[INET6_ADDRSTRLEN];
    if (tcp_address_write_own(store_access_descriptor(access), text)) {
        text_append(out, text);
    }
}

void store_access_write_address(const struct store_access *access, struct text *out) {
    if (access->client != NULL) {
        store_client_write_address(access->client, out);
    }
}

void store_access_write_obstacle(const struct store_access *access, struct text *out) {
    if (access->client != NULL) {
        store_client_write_obstacle(access->client, out);
    }
}
