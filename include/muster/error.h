/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a function of libmuster has failed. There is one closed list of codes for the whole library.
 * TorchElastic's exceptions have their code here (torch/distributed/elastic, c10d): DistStoreError
 * is MUSTER_ERROR_SYSTEM or MUSTER_ERROR_PROTOCOL, DistTimeoutError is MUSTER_ERROR_TIMEOUT,
 * DistNetworkError is MUSTER_ERROR_DISCONNECTED, ValueError is MUSTER_ERROR_INVALID. Those of a
 * rendezvous are in muster/rendezvous.h.
 *
 *     struct muster_failure failure;
 *     enum muster_error error = muster_store_get(store, "key", &value, &failure);
 *     if (error == MUSTER_ERROR_TIMEOUT) {
 *         … the store is usable, and the key may be there later
 *     } else if (error != MUSTER_OK) {
 *         fprintf(stderr, "%s: %s\n", muster_error_text(error), failure.message);
 *     }
 *
 * What holds for every function of libmuster:
 * - A function that can fail returns an enum muster_error, and takes a struct muster_failure as its
 *   last parameter, which may be NULL. It is filled in when the function fails, else left alone.
 * - A function that fails has changed nothing that its results point to.
 * - NULL where something has to be given, a text or a number out of its bounds, and a call in the
 *   wrong order are errors, and nothing else happens.
 * - An object is used by one thread at a time. Different objects may be used by different threads.
 * - An object belongs to the process that has made it. In a child that was forked each function
 *   returns MUSTER_ERROR_FORKED, and functions that free do nothing: what the child has inherited
 *   goes when it ends or executes a program. All descriptors are closed when a program is executed.
 * - Signals, SIGCHLD, the environment, the standard streams and the locale are left alone. No
 *   thread is started unless the header says so.
 * - Where there is not enough memory the error is MUSTER_ERROR_MEMORY, and the call may be made
 *   again. Each function that does something asks first: for what is handed in, and for 1 MiB for
 *   small things, which the library then keeps, without using it, until there is nothing else. What
 *   another process has sent is asked for by its length: a connection whose data finds no memory
 *   ends. Functions that free ask for nothing.
 * - A list that grows with what others do is asked for, too: where a store's server has no memory
 *   for it, it refuses the request or turns the client away, and a timer server refuses the timer.
 *   An agent without memory ends; see muster/agent.h.
 * - What was asked for can be gone again before it is taken, where other threads of the program
 *   take all memory meanwhile, the 1 MiB as well. Then, and only then, the process is ended by
 *   abort(3), by the library or by libuv.
 *
 * Link with -lmuster. */
#ifndef MUSTER_ERROR_H
#define MUSTER_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_FAILURE_MESSAGE_SIZE 1024

enum muster_error {
    MUSTER_OK = 0,
    MUSTER_ERROR_INVALID = 1,      /* a value that was given is not usable */
    MUSTER_ERROR_LIMIT = 2,        /* something is larger than it may be */
    MUSTER_ERROR_STATE = 3,        /* not now: from inside a callback, or in the wrong order */
    MUSTER_ERROR_FORKED = 4,       /* the object belongs to another process */
    MUSTER_ERROR_MEMORY = 5,       /* there is not enough memory for it now */
    MUSTER_ERROR_MISSING = 6,      /* the named thing does not exist */
    MUSTER_ERROR_UNSUPPORTED = 7,  /* this kind of object cannot do that */
    MUSTER_ERROR_TIMEOUT = 8,      /* the time was up */
    MUSTER_ERROR_DISCONNECTED = 9, /* the other side is gone */
    MUSTER_ERROR_PROTOCOL = 10,    /* the other side has said what makes no sense */
    MUSTER_ERROR_CANCELLED = 11,   /* the object was freed before it was done */
    MUSTER_ERROR_SYSTEM = 12,      /* the operating system has refused; the message has its words */
    MUSTER_ERROR_CLOSED = 13,      /* a rendezvous is closed: no round follows */
    MUSTER_ERROR_GRACEFUL_EXIT = 14, /* the job has ended well without this node */
};

/* What went wrong, for people. */
struct muster_failure {
    enum muster_error error;
    int system_error;                          /* errno, or 0 */
    char message[MUSTER_FAILURE_MESSAGE_SIZE]; /* one printable line of UTF-8 */
};

/* A short fixed phrase for a code, never NULL: "timed out". "unknown" for what is no code. */
const char *muster_error_text(enum muster_error error);

/* The version of the library that runs: "0.3.0". */
const char *muster_version(void);

#ifdef __cplusplus
}
#endif

#endif
