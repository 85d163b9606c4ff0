/* SPDX-License-Identifier: BSD-3-Clause */
/* Countdown timers for programs under `muster run` (or torchrun): "if I have not finished this
 * by then, I hang". The agent ends a process whose timer expires; the restart policy then decides
 * how the job goes on. The timers are those of torch.distributed.elastic.timer.FileTimerClient and
 * are served by the same FIFO.
 *
 *     struct muster_timer timer;
 *     if (muster_timer_open(&timer, NULL) == 0) {
 *         MUSTER_TIMER_SCOPE(&timer, "load a batch", 30);   released at the end of this block
 *         …
 *     }
 *
 * A process has one timer per scope. Acquiring a scope again sets a new deadline. A request applies
 * to the process that makes it: after fork() a child may use the same struct, and its timers are
 * its own. No threads are started, no memory is allocated and nothing is printed: how much the
 * server says is up to its LOGLEVEL (muster-timer(1)). Several threads may use one struct once it
 * is open. Functions return 0, or -1 with errno set; on failure no request was made. EINVAL
 * when NULL was given where it may not be, or a pid below 1; ENOENT for a struct that was zeroed
 * and not opened. muster_timer_close accepts NULL and such a struct. After it the struct can still
 * be used.
 *
 * Link with -lmuster-timer. */
#ifndef MUSTER_TIMER_H
#define MUSTER_TIMER_H

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum length of a request. The kernel never splits a write of this length. */
#define MUSTER_TIMER_LINE_SIZE 4096
#define MUSTER_TIMER_PATH_SIZE 4096

struct muster_timer {
    int signal; /* the signal that ends the process: SIGKILL after muster_timer_open; 0: no signal
                 */
    double patience; /* the most seconds that a request may take: 5 after muster_timer_open */
    int fd;          /* the fields from here on are private */
    char path[MUSTER_TIMER_PATH_SIZE]; /* where to look for the server again */
};

/* Finds the server at `path`. With NULL the path is $TORCHELASTIC_TIMER_FILE; without that variable
 * the error is ENOENT. A server that is not there yet is waited for, for `patience`; then the error
 * is ENOENT or ENXIO. */
int muster_timer_open(struct muster_timer *timer, const char *path);

/* Keeps the FIFO open between requests, which makes them several times as fast. Use it only with
 * Muster's own server, which `muster run` has. PyTorch's server does nothing else while a writer
 * has its FIFO open. */
int muster_timer_keep_open(struct muster_timer *timer);

/* Closes the FIFO. Timers that are held stay active. */
void muster_timer_close(struct muster_timer *timer);

/* Asks the server to end this process in `seconds` from now, unless `scope` is released or acquired
 * again before. `scope` is UTF-8. When the server is slow, the call waits. Errors: ETIMEDOUT after
 * `patience`; EMSGSIZE when the scope is too long; EINVAL when `seconds` is negative, not a number
 * or too large; EPIPE, ENOENT or ENXIO when the server is gone and does not come back. */
int muster_timer_acquire(struct muster_timer *timer, const char *scope, double seconds);

/* Releases the timer. Releasing a timer that is not held is no error. Errors as for
 * muster_timer_acquire. */
int muster_timer_release(struct muster_timer *timer, const char *scope);

/* The same for another process, such as a child. */
int muster_timer_acquire_for(
    struct muster_timer *timer, long pid, const char *scope, double seconds);
int muster_timer_release_for(struct muster_timer *timer, long pid, const char *scope);

/* For MUSTER_TIMER_SCOPE. */
struct muster_timer_scope {
    struct muster_timer *timer;
    const char *scope;
    int error; /* of the acquire: 0 or an errno; with an errno there is nothing to release */
};
struct muster_timer_scope muster_timer_scope_begin(
    struct muster_timer *timer, const char *scope, double seconds);
void muster_timer_scope_end(struct muster_timer_scope *scope);

#define MUSTER_TIMER_JOIN_(left, right) left##right
#define MUSTER_TIMER_JOIN(left, right) MUSTER_TIMER_JOIN_(left, right)
#define MUSTER_TIMER_TEXT_(value) #value
#define MUSTER_TIMER_TEXT(value) MUSTER_TIMER_TEXT_(value)

/* A scope name for this place in the source: "file.c:123". */
#define MUSTER_TIMER_HERE __FILE__ ":" MUSTER_TIMER_TEXT(__LINE__)

/* Holds a timer from here to the end of the enclosing block, however the block is left (in C++ also
 * by an exception). `name` must live as long as the block. */
#define MUSTER_TIMER_SCOPE(timer, name, seconds)                                                   \
    __attribute__((cleanup(muster_timer_scope_end), unused)) struct muster_timer_scope             \
    MUSTER_TIMER_JOIN(muster_timer_scope_, __LINE__) =                                             \
        muster_timer_scope_begin((timer), (name), (seconds))

#ifdef __cplusplus
}
#endif

#endif
