/* SPDX-License-Identifier: BSD-3-Clause */
/* A key-value store that other processes use: what torch.distributed's TCPStore is with
 * is_master=True (torch/csrc/distributed/c10d/TCPStore.hpp, TCPServer). Its clients are
 * muster/store.h, PyTorch's TCPStore and `muster store`.
 *
 *     struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
 *     settings.port = 29500;
 *     struct muster_store_server *server;
 *     if (muster_store_server_new(&settings, &server, &failure) == MUSTER_OK) {
 *         printf("port %d\n", muster_store_server_port(server));
 *         …
 *     }
 *     muster_store_server_free(server);
 *
 * THIS STARTS A THREAD: as in PyTorch the server works on one of its own ("muster-store"), to which
 * no signal is delivered. With `is_polled` there is none: then poll muster_store_server_fd for
 * reading, and call muster_store_server_process. A function of muster/store.h that waits for such a
 * server must not be called by the thread that processes it.
 *
 * The differences from PyTorch's server: it has limits for all clients together, a client whose
 * machine is gone is noticed, and it can ask for a token. It does not wait for its workers, and
 * makes no client of its own. What muster/error.h says holds here. */
#ifndef MUSTER_STORE_SERVER_H
#define MUSTER_STORE_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_store_server;

/* Begin with MUSTER_STORE_SERVER_SETTINGS; zero and NULL stand for the default. */
struct muster_store_server_settings {
    size_t size;      /* of this struct */
    const char *host; /* the address to listen on; NULL: all of this machine */
    int port;         /* 0: a free one */
    int has_fd;       /* serves `fd`, a bound TCP socket, instead: master_listen_fd. It is the
                         server's, unless the function fails */
    int fd;
    int is_polled;          /* starts no thread */
    const char *token_file; /* clients have to prove that they have this token; PyTorch's cannot */
    double silence_timeout; /* seconds that a client's machine may not answer; 2 or more, default
                               180 */
    size_t memory;          /* the most bytes for all clients; default a quarter of what the cgroup
                               or the machine has, but not more than 4 GiB */
    int memory_percent;     /* the same as a part of what there is, where `memory` is 0; to 100 */
    size_t key_maximum;     /* the longest key, with the '/' that TCPStore puts before it; default
                               8192, at most 1 GiB */
    size_t value_maximum;   /* the largest value of one request; default 8 MiB, as PyTorch's, at
                               most 1 GiB */
    size_t request_keys;    /* the most keys of one request about several; default 131072, at most
                               134217728 */
    size_t request_maximum; /* the bytes of such a request; default 256 MiB, less where the memory
                               for all is less than 1 GiB; at most 1 TiB */
    size_t reply_maximum;   /* the longest reply, with those before it that the client has not read;
                               default as request_maximum, at most 1 TiB */
    size_t connection_maximum; /* default 131072, or what the limit of open files allows; at most
                                  1073741824 */
    /* What is worth a line in a log, as in muster/timer_server.h. It is called by the server's own
     * thread if there is one. May be NULL. */
    void (*log)(void *context, int level, const char *origin, const char *message);
    void *context;
};
#define MUSTER_STORE_SERVER_SETTINGS                                                               \
    {                                                                                              \
        sizeof(struct muster_store_server_settings), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
            0, 0                                                                                   \
    }

/* Clients can connect when this returns. MUSTER_ERROR_INVALID for a host or a port that is none, a
 * descriptor that is no bound TCP socket, a part of the memory that is none, and a token file that
 * others may read; MUSTER_ERROR_LIMIT for a text or a number that is too large (1024 bytes of a
 * host, 4095 of a path); MUSTER_ERROR_SYSTEM. */
enum muster_error muster_store_server_new(const struct muster_store_server_settings *settings,
    struct muster_store_server **out_server, struct muster_failure *failure);

/* Closes the port and every connection, and ends the thread. Not from inside the log callback.
 * Accepts NULL. */
void muster_store_server_free(struct muster_store_server *server);

/* The port that clients connect to. -1 for NULL, and in a child. */
int muster_store_server_port(const struct muster_store_server *server);

/* To be polled for reading. -1 where the server has a thread, for NULL, and in a child. */
int muster_store_server_fd(const struct muster_store_server *server);

/* Does what there is to do, and does not wait. MUSTER_ERROR_STATE where the server has a thread. */
enum muster_error muster_store_server_process(
    struct muster_store_server *server, struct muster_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
