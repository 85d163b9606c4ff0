/* SPDX-License-Identifier: BSD-3-Clause */
/* How nodes tell each other that their job's record has changed, over any TCPStore server: a
 * counter of changes, and a key for each number, which appears when that change has been told. Who
 * watches waits for the number after the one it knows. A part of rendezvous_backend; not for
 * others. */
#ifndef MUSTER_HOST_RENDEZVOUS_CHANGES_H
#define MUSTER_HOST_RENDEZVOUS_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "host/rendezvous_lanes.h"

struct rendezvous_changes {
    struct rendezvous_lanes *lanes;
    const char *run_id;
    int64_t known;   /* the count as read last */
    int64_t awaited; /* the change waited for; 0: none */
    int64_t own;     /* the last change that was this node's own doing */
    /* Whether the answer can be used; else the connection has been given up. */
    bool (*is_answer)(void *context, const struct store_client_result *result);
    void (*changed)(void *context); /* by another node */
    void (*told)(void *context);    /* see rendezvous_changes_tell_of_write */
    void *context;
};

/* What was known of an earlier connection, or is waited for on it, means nothing any more. */
void rendezvous_changes_forget(struct rendezvous_changes *changes);

/* Reads the count, and waits for the next change from then on. */
void rendezvous_changes_read(struct rendezvous_changes *changes);

/* Tells watchers of a change; `told` is not called. */
void rendezvous_changes_tell(struct rendezvous_changes *changes);
/* The same, and `told` is called when it is done. */
void rendezvous_changes_tell_of_write(struct rendezvous_changes *changes);

#endif
