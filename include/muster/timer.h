/* SPDX-License-Identifier: BSD-3-Clause */
/* Countdown timers for programs under `muster run` (or torchrun): "if I am not through with this by
 * then, I hang". The agent ends a process whose timer expires, and the job goes on from its restart
 * policy. The timers are those of torch.distributed.elastic.timer.FileTimerClient and are served by
 * the same FIFO.
 *
 *     struct muster_timer timer;
 *     if (muster_timer_open(&timer, NULL) == 0) {
 *         MUSTER_TIMER_SCOPE(&timer, "load a batch", 30);   released at the end of this block
 *         …
 *     }
 *
 * A process has one timer per scope; acquiring it again sets it anew. What a request says is for
 * the process that makes it: after fork() a child may go on with the same struct, its timers are
 * its own. No threads are started and no memory is allocated; one struct may be used by several
 * threads, once it is open. Functions return 0, or -1 with errno set; then nothing was asked for.
 *
 * Link with -lmuster-timer. */
#ifndef MUSTER_TIMER_H
#define MUSTER_TIMER_H

#ifdef __cplusplus
extern "C" {
#endif

/* The longest request; the kernel never tears apart what is no longer. */
#define MUSTER_TIMER_LINE_SIZE 4096
#define MUSTER_TIMER_PATH_SIZE 4096

struct muster_timer {
    int signal;      /* what ends the process: SIGKILL after muster_timer_open; 0: nothing does */
    double patience; /* seconds a request may take: 5 after muster_timer_open */
    int fd;          /* the rest is for these functions alone */
    char path[MUSTER_TIMER_PATH_SIZE]; /* where the server may be found again */
};

/* Finds the server at `path`; NULL: at $TORCHELASTIC_TIMER_FILE, or ENOENT without it. A server
 * that is not there yet is waited for, for `patience`; the error is ENOENT or ENXIO then. */
int muster_timer_open(struct muster_timer *timer, const char *path);

/* Keeps the FIFO open between requests, which makes them several times as fast. Only for Muster's
 * own server, which is where `muster run` is: PyTorch's attends to nothing else while a writer has
 * its FIFO open. */
int muster_timer_keep_open(struct muster_timer *timer);

/* Timers that are held stay so. */
void muster_timer_close(struct muster_timer *timer);

/* Asks for this process to be ended in `seconds` from now, unless `scope` is released or acquired
 * again before. `scope` is UTF-8. When the server does not keep up, this waits for it; ETIMEDOUT
 * after `patience`. EMSGSIZE when the scope is too long, EINVAL when `seconds` is no number of
 * seconds that can be, EPIPE, ENOENT or ENXIO when the server is gone and does not come back. */
int muster_timer_acquire(struct muster_timer *timer, const char *scope, double seconds);

/* Gives the timer back; one that is not held is fine. Fails as muster_timer_acquire does. */
int muster_timer_release(struct muster_timer *timer, const char *scope);

/* The same about another process than this one: a child, say. */
int muster_timer_acquire_for(
    struct muster_timer *timer, long pid, const char *scope, double seconds);
int muster_timer_release_for(struct muster_timer *timer, long pid, const char *scope);

/* For MUSTER_TIMER_SCOPE. */
struct muster_timer_scope {
    struct muster_timer *timer;
    const char *scope;
    int error; /* of the acquire: 0 or an errno; then there is nothing to release */
};
struct muster_timer_scope muster_timer_scope_begin(
    struct muster_timer *timer, const char *scope, double seconds);
void muster_timer_scope_end(struct muster_timer_scope *scope);

#define MUSTER_TIMER_JOIN_(left, right) left##right
#define MUSTER_TIMER_JOIN(left, right) MUSTER_TIMER_JOIN_(left, right)
#define MUSTER_TIMER_TEXT_(value) #value
#define MUSTER_TIMER_TEXT(value) MUSTER_TIMER_TEXT_(value)

/* A name for a scope: this place, "file.c:123". */
#define MUSTER_TIMER_HERE __FILE__ ":" MUSTER_TIMER_TEXT(__LINE__)

/* Holds a timer from here to the end of the enclosing block, however it is left (in C++ also by an
 * exception); `name` has to live as long. */
#define MUSTER_TIMER_SCOPE(timer, name, seconds)                                                   \
    __attribute__((cleanup(muster_timer_scope_end), unused)) struct muster_timer_scope             \
    MUSTER_TIMER_JOIN(muster_timer_scope_, __LINE__) =                                             \
        muster_timer_scope_begin((timer), (name), (seconds))

#ifdef __cplusplus
}
#endif

#endif
