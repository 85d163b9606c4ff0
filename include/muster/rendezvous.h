/* SPDX-License-Identifier: BSD-3-Clause */
/* How the nodes of a job find each other, agree on who takes part in a round, and learn that
 * somebody has come or gone: DynamicRendezvousHandler, create_handler, RendezvousSettings,
 * RendezvousTimeout and RendezvousInfo of torch/distributed/elastic/rendezvous
 * (dynamic_rendezvous.py, api.py). The nodes share one record, which is kept in a store at an
 * endpoint (the backend c10d), or by a backend of the program's own (RendezvousBackend).
 *
 *     struct muster_rendezvous_settings settings = MUSTER_RENDEZVOUS_SETTINGS;
 *     settings.run_id = "job";
 *     settings.endpoint = "node0:29400";
 *     settings.min_nodes = 2;
 *     settings.max_nodes = 4;
 *     struct muster_rendezvous *rendezvous;
 *     const struct muster_rendezvous_info *info;
 *     if (muster_rendezvous_new(&settings, &rendezvous, &failure) == MUSTER_OK &&
 *         muster_rendezvous_next(rendezvous, 0, &info, &failure) == MUSTER_OK) {
 *         printf("%d of %d\n", info->rank, info->world_size);
 *         … poll muster_rendezvous_fd(rendezvous) for reading; then:
 *         muster_rendezvous_process(rendezvous, NULL);
 *     }
 *     muster_rendezvous_free(rendezvous);
 *
 * The exceptions of api.py are these errors: RendezvousClosedError MUSTER_ERROR_CLOSED,
 * RendezvousTimeoutError MUSTER_ERROR_TIMEOUT, RendezvousConnectionError MUSTER_ERROR_DISCONNECTED,
 * RendezvousStateError MUSTER_ERROR_PROTOCOL, RendezvousGracefulExitError
 * MUSTER_ERROR_GRACEFUL_EXIT.
 *
 * The differences from DynamicRendezvousHandler: there is no thread that keeps the node alive, so
 * the program processes the rendezvous whenever its descriptor is readable, as long as it takes
 * part. Where the store is Muster's, or a backend has presence, a node that is gone is known at
 * once, and `round_over` is called. After an error of `next` that is final the rendezvous cannot be
 * used again; a new one can. Nodes of `muster run` and torchrun also tell each other of their
 * workers, which a program that meets them in one job has to do, too: see `is_torchrun`.
 *
 * WHERE THIS NODE HOSTS THE STORE THERE IS A THREAD ("muster-store"), as in muster/store_server.h;
 * another one asks the resolver whether this machine is the endpoint. With is_host below 0 there is
 * neither.
 *
 * Callbacks come from inside muster_rendezvous_process and the functions that wait, never from
 * inside muster_rendezvous_submit_next. From inside one the rendezvous may be freed, and the next
 * round may be asked for; nothing may wait or be processed. Lengths are in bytes, times in seconds.
 * What is handed in is copied. What muster/error.h says holds here. */
#ifndef MUSTER_RENDEZVOUS_H
#define MUSTER_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_RENDEZVOUS_RUN_ID_MAXIMUM 256
#define MUSTER_RENDEZVOUS_NODES_MAXIMUM 65536
#define MUSTER_RENDEZVOUS_STATE_MAXIMUM 67108864
#define MUSTER_RENDEZVOUS_TOKEN_MAXIMUM 4096

struct muster_rendezvous;

/* A backend of the program's own: RendezvousBackend. */

/* What the backend has. Its pointers are borrowed until the backend is called again. */
struct muster_rendezvous_record {
    int exists;        /* else there is no record yet, and nothing but is_set counts */
    const void *state; /* a pickled _RendezvousState, as TorchElastic's backends keep it */
    size_t state_length;
    const void *token; /* of this version of the record: the backend's, at most
                          MUSTER_RENDEZVOUS_TOKEN_MAXIMUM bytes */
    size_t token_length;
    int is_set; /* set_state: whether the state was set; then the record exists. Where it was not
                   set and there is no record, the node goes on with what it wanted to set */
};

/* Begin with MUSTER_RENDEZVOUS_BACKEND. The functions return at once or soon: nothing else of this
 * rendezvous is done meanwhile. They return MUSTER_OK, or an error and fill in `failure`:
 * MUSTER_ERROR_PROTOCOL when the record is damaged, else the backend cannot be reached, which is
 * tried again until the time to join is up. A record whose members cannot be so is damaged, too. */
struct muster_rendezvous_backend {
    size_t size;      /* of this struct */
    const char *name; /* for messages: UTF-8, at most 255 bytes */
    /* Fills in `out_record`, which is zero before. */
    enum muster_error (*get_state)(
        void *context, struct muster_rendezvous_record *out_record, struct muster_failure *failure);
    /* Sets the state if the record still has this token; without a token, if there is none. Then
     * fills in what the record is now. It is one step, whoever else does it at the same time. */
    enum muster_error (*set_state)(void *context, const void *state, size_t length,
        const void *token, size_t token_length, struct muster_rendezvous_record *out_record,
        struct muster_failure *failure);
    void *context;
    /* A descriptor that becomes readable when the record may have changed; `changed` is then called
     * and reads what is there. It stays the program's. Without it the record is looked at about
     * once in a second. */
    int has_watch;
    int watch_fd;
    void (*changed)(void *context);
    /* Presence: the others see at once that this node is gone. Without it they miss its heartbeats,
     * which takes keep_alive_interval * keep_alive_max_attempt. TorchElastic's backends have none.
     * Both functions, or neither.
     *
     * `present` ties a name to this process, so that the others' is_gone can tell when the process
     * has ended, however it did: by a lock, a connection, a lease. It is the name of this node in
     * the record, ADDRESS_PID_NUMBER. A later name takes the place of the earlier one; NULL gives
     * it up, when the rendezvous is freed. An error is logged, and the heartbeats are left. */
    enum muster_error (*present)(void *context, const char *node, struct muster_failure *failure);
    /* 1: the node of this name was present, and is gone for good. 0: it is there, or nothing is
     * known of it, as of TorchElastic's nodes. It is asked for each other node of the record
     * whenever the record was read: so the watch has to tell of nodes that are gone, too. */
    int (*is_gone)(void *context, const char *node);
};
#define MUSTER_RENDEZVOUS_BACKEND                                                                  \
    { sizeof(struct muster_rendezvous_backend), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* NodeState. */
enum muster_rendezvous_node_state {
    MUSTER_RENDEZVOUS_NODE_INIT = 0,
    MUSTER_RENDEZVOUS_NODE_RUNNING = 1,
    MUSTER_RENDEZVOUS_NODE_SUCCEEDED = 2,
    MUSTER_RENDEZVOUS_NODE_FAILED = 3
};

/* A step of this node: RdzvEvent in torch/distributed/elastic/events/api.py, with the names and
 * messages of its handler. Borrowed for the callback; texts are UTF-8, and never NULL. Fields may
 * be added at the end. */
struct muster_rendezvous_event {
    const char *name; /* "dynamic_rendezvous.py:DynamicRendezvousHandler.next_rendezvous" */
    const char *run_id;
    const char *message;
    const char *hostname; /* the address of this node */
    int64_t pid;
    enum muster_rendezvous_node_state node_state;
    const char *master_endpoint; /* "": TorchElastic's nodes never fill it in */
    int rank;                    /* of this node; -1: it has none yet */
    int has_local_id;
    int64_t local_id;        /* of this node */
    const char *error_trace; /* why it has failed, or "" */
};

/* Since 0.3: RendezvousParameters. What an agent was told of its rendezvous; texts are NULL where
 * nothing was said. Borrowed for the call. Fields may be added at the end. */
struct muster_rendezvous_parameters {
    const char *backend; /* the name */
    const char *endpoint;
    const char *run_id;
    int min_nodes;
    int max_nodes;
    const char *local_addr;
    const char *configs; /* "KEY=VALUE,KEY=VALUE" */
};

/* Since 0.3: RendezvousHandlerRegistry.register. An agent of this program (muster/agent.h) whose
 * rdzv_backend is this name keeps the record of its job by the backend that `create` fills in. It
 * is called in the agent's process, and the backend lives as long as that. What it returns is
 * MUSTER_OK, or an error and `failure`, and then the agent ends.
 *
 * The name has 1 to 255 bytes, and is none of the command's. MUSTER_ERROR_INVALID where it has
 * another `create` already. Any thread may register; nothing is forgotten. */
enum muster_error muster_rendezvous_register(const char *name,
    enum muster_error (*create)(void *context,
        const struct muster_rendezvous_parameters *parameters,
        struct muster_rendezvous_backend *out_backend, struct muster_failure *failure),
    void *context, struct muster_failure *failure);

/* Begin with MUSTER_RENDEZVOUS_SETTINGS; zero and NULL stand for the default. */
struct muster_rendezvous_settings {
    size_t size;          /* of this struct */
    const char *run_id;   /* at most MUSTER_RENDEZVOUS_RUN_ID_MAXIMUM bytes; has to be given */
    const char *endpoint; /* HOST[:PORT]; the default port is 29400. This or … */
    const struct muster_rendezvous_backend *backend; /* … that has to be given */
    int min_nodes;              /* 1 to MUSTER_RENDEZVOUS_NODES_MAXIMUM; default 1 */
    int max_nodes;              /* default min_nodes */
    const char *local_addr;     /* how others reach this machine; default its qualified name */
    double join_timeout;        /* default 600 */
    double last_call_timeout;   /* default 30 */
    double close_timeout;       /* default 30 */
    double keep_alive_interval; /* default 5, at most 86400 */
    int keep_alive_max_attempt; /* default 3, at most 100000 */
    int is_host; /* 1: this node hosts the store at the endpoint; negative: it does not; 0: it does
                    if the endpoint is this machine, and nobody else hosts there */
    const char *token_file; /* a file with the job's token; NULL: there is none */
    /* How long the node that hosts the store waits in muster_rendezvous_shutdown until the others
     * have left it; default 30, negative: not at all. */
    double linger_timeout;
    /* The program does after a rendezvous what torchrun's agent does: the nodes of torchrun and of
     * `muster run` in the same job treat this node as one of torchrun's. */
    int is_torchrun;
    /* With an endpoint: where processes of this node serve what `master_addr` and `master_port` of
     * the info say when this node has rank 0. Default: local_addr, and a port that is free. */
    const char *master_addr;
    int master_port;
    /* The round that this node is in has ended, or will: a node has come or gone. The next one is
     * to be asked for. It is not called when the rendezvous is closed: the round goes on, though
     * none follows, and muster_rendezvous_is_closed says so. May be NULL. */
    void (*round_over)(void *context, const char *reason);
    /* What is worth a line in a log, as in muster/timer_server.h. May be NULL. */
    void (*log)(void *context, int level, const char *origin, const char *message);
    void *context;
    /* Since 0.3. With an endpoint, but without is_torchrun: this node serves a store at
     * `master_addr` and `master_port` itself when it has rank 0, on a thread as in
     * muster/store_server.h, until the rendezvous is freed. TorchElastic's handlers do, unless
     * TORCH_DISABLE_SHARE_RDZV_TCP_STORE is 1: use_agent_store. Workers are then to be told
     * TORCHELASTIC_USE_AGENT_STORE=True. */
    int use_agent_store;
    /* Since 0.3: what this node does in the rendezvous, step by step. May be NULL. */
    void (*event)(void *context, const struct muster_rendezvous_event *event);
};
#define MUSTER_RENDEZVOUS_SETTINGS                                                                 \
    {                                                                                              \
        sizeof(struct muster_rendezvous_settings), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0, 0, 0, 0, 0, 0                                                                       \
    }

/* Where this node is in its round: RendezvousInfo. It belongs to the rendezvous, and is good until
 * the next round is asked for. Fields may be added at the end. */
struct muster_rendezvous_info {
    int64_t round;
    int rank;
    int world_size;
    const char *node;         /* the name of this node in the record: ADDRESS_PID_NUMBER */
    const char *store_prefix; /* under which the nodes of the round keep their keys in the store
                                 (muster_store_new_prefix) */
    /* With an endpoint: where this node reaches the store. Else NULL and 0. */
    const char *store_host;
    int store_port;
    /* With an endpoint: what the node of rank 0 has said: RendezvousStoreInfo. Else, and with
     * is_torchrun, where the program says and asks it itself under the prefix, NULL and 0. */
    const char *master_addr;
    int master_port;
};

/* MUSTER_ERROR_INVALID for a setting that makes no sense; MUSTER_ERROR_LIMIT for a text that is too
 * long (512 bytes of an endpoint, 255 of an address, 4095 of a path); MUSTER_ERROR_SYSTEM where
 * this node is told to host the store and cannot. Nothing is agreed on yet. */
enum muster_error muster_rendezvous_new(const struct muster_rendezvous_settings *settings,
    struct muster_rendezvous **out_rendezvous, struct muster_failure *failure);

/* This node is gone, for the others too: at once where the store is Muster's or the backend has
 * presence, else when it is missed. From inside a callback it is done when the function that has
 * called back ends, and nothing of the program's is called meanwhile. Accepts NULL. */
void muster_rendezvous_free(struct muster_rendezvous *rendezvous);

/* next_rendezvous: takes part in the next round, and waits until there is one with this node.
 * `timeout`: 0 waits as long as join_timeout has it, or as a spare until there is room;
 * MUSTER_ERROR_TIMEOUT when it has passed, and then it may be called again. An error that is final
 * is returned by each further call. */
enum muster_error muster_rendezvous_next(struct muster_rendezvous *rendezvous, double timeout,
    const struct muster_rendezvous_info **out_info, struct muster_failure *failure);

/* The same, and does not wait: `done` is called once with MUSTER_OK and the info, or with the error
 * and NULL. MUSTER_ERROR_STATE while an earlier one is not done. */
enum muster_error muster_rendezvous_submit_next(struct muster_rendezvous *rendezvous,
    void (*done)(void *context, enum muster_error error, const char *message,
        const struct muster_rendezvous_info *info),
    void *context, struct muster_failure *failure);

/* Whether the rendezvous is closed: 1 or 0, as far as this node has heard. A node that has not
 * seen the record yet reads it, and waits for that: at an endpoint up to a minute for the
 * connection and for the answer, of a backend once. What is wrong with it is then the error, and
 * the node can join all the same. It may host the store from then on. MUSTER_ERROR_STATE from
 * inside a callback before the record was seen. */
enum muster_error muster_rendezvous_is_closed(
    struct muster_rendezvous *rendezvous, int *out_is_closed, struct muster_failure *failure);

/* Closes the rendezvous for all nodes, and waits until that is done, at most for close_timeout. No
 * round follows. The node need not have taken part. */
enum muster_error muster_rendezvous_set_closed(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure);

/* How many nodes wait for another round; at least 1 when the round of this node is over. It reads
 * the record where is_closed does, with the same errors. */
enum muster_error muster_rendezvous_num_nodes_waiting(
    struct muster_rendezvous *rendezvous, size_t *out_count, struct muster_failure *failure);

/* get_run_id. NULL for NULL, and in a child. */
const char *muster_rendezvous_run_id(const struct muster_rendezvous *rendezvous);

/* shutdown: set_closed, and leaves. The node that hosts the store waits for the others
 * (linger_timeout). What asks for another round or closes is MUSTER_ERROR_STATE from then on; the
 * others say what was heard last. */
enum muster_error muster_rendezvous_shutdown(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure);

/* To be polled for reading. -1 for NULL, and in a child. */
int muster_rendezvous_fd(const struct muster_rendezvous *rendezvous);

/* Does what there is to do, and does not wait. */
enum muster_error muster_rendezvous_process(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
