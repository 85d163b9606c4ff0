/* SPDX-License-Identifier: BSD-3-Clause */
/* What one node's dynamic rendezvous consists of: shared by agent_dynamic_rendezvous.c, which makes
 * it and takes the agent's wishes, and agent_dynamic_events.c, which runs it. Nobody else looks
 * inside. */
#ifndef MUSTER_AGENT_AGENT_DYNAMIC_STATE_H
#define MUSTER_AGENT_AGENT_DYNAMIC_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_rendezvous.h"
#include "agent/agent_root_cause.h"
#include "agent/agent_round.h"
#include "agent/agent_store_host.h"
#include "core/rendezvous_diary.h"
#include "core/rendezvous_machine.h"
#include "host/event_loop.h"
#include "host/rendezvous_backend.h"

/* Where the agent is, as it was told. */
enum dynamic_stage {
    STAGE_IDLE,     /* its workers are being stopped, or it has not begun */
    STAGE_JOINING,  /* it waits for joined or join_failed */
    STAGE_JOINED,   /* its workers run */
    STAGE_BARRIER,  /* it waits for barrier_ended */
    STAGE_GIVEN_UP, /* it was told that there is no way in */
};

/* One event waiting for its turn, with the text it borrows. */
struct dynamic_queued_event {
    struct rendezvous_event event;
    char *reason;
};

struct agent_dynamic_rendezvous {
    struct event_loop *loop;
    const struct agent_rendezvous_settings *settings;
    struct rendezvous_machine *machine;
    struct rendezvous_backend *backend;
    struct agent_store_host *host; /* NULL where another node hosts the store */
    struct agent_round *round;
    struct agent_root_cause *root_cause;
    struct rendezvous_diary diary;
    struct event_timer *timer;
    char *address; /* this node's, as others reach it */
    char *where;   /* the store, for messages */
    enum dynamic_stage stage;
    int64_t ticket;
    int64_t round_number; /* that was told last */
    char *end;            /* why the job failed, until it is told */
    bool was_connected;   /* to the store, at some time */
    bool is_cut_off;      /* the store is what was lost in the step under way */
    bool is_calling_roll; /* and waits for the answers */
    bool has_passed;      /* the exit barrier */
    bool has_failed;      /* the job: its report is not to wait for long */
    bool is_leaving;      /* the others go on, or the record is lost to this node */
    bool is_ending;       /* asked to close or leave */
    bool is_settled;      /* … and done */
    void (*settled)(void *context);
    void *settled_context;
    bool is_stepping;
    struct dynamic_queued_event *queue;
    size_t queue_length;
    size_t queue_capacity;
};

#endif
