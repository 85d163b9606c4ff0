/* SPDX-License-Identifier: BSD-3-Clause */
/* What is under way between a node and a store. */
#include "moving_job.h"

bool moving_is_apart(const struct moving_job *job, int one, int other) {
    return one != other && (job->is_cut[one][other] || job->is_cut[other][one] ||
                               job->nodes[one].is_off || job->nodes[other].is_off);
}

double moving_delay(struct moving_job *job, bool is_own) {
    if (is_own) {
        return moving_between(job, 0.00002, 0.0003);
    }
    return moving_chance(job, 3) ? moving_between(job, 0.005, 0.04)
                                 : moving_between(job, 0.0001, 0.001);
}

/* Messages of one way stay in order. */
static struct instant after_last(struct moving_job *job, struct instant *last, bool is_own) {
    struct instant at = moving_later(job, moving_delay(job, is_own));
    if (!instant_is_before(*last, at)) {
        at = (struct instant){last->nanoseconds + 1};
    }
    *last = at;
    return at;
}

static bool is_own(const struct moving_connection *connection) {
    return connection->node == connection->store->host;
}

/* For the process of the node. */
struct moving_event *moving_add_here(struct moving_job *job, struct moving_connection *connection,
    void (*happen)(struct moving_job *, struct moving_event *)) {
    struct moving_event *event =
        moving_add(job, after_last(job, &connection->last_here, is_own(connection)),
            &job->nodes[connection->node], happen);
    event->life = connection->life;
    event->subject = connection;
    event->number = ++connection->sent_here;
    return event;
}

struct moving_event *moving_add_there(struct moving_job *job, struct moving_connection *connection,
    void (*happen)(struct moving_job *, struct moving_event *)) {
    struct moving_event *event =
        moving_add(job, after_last(job, &connection->last_there, is_own(connection)),
            &job->nodes[connection->store->host], happen);
    event->life = connection->store->life;
    event->subject = connection;
    event->number = ++connection->sent_there;
    return event;
}

/* What cannot pass is sent again, until an end gives up. Nothing overtakes what was sent before. */
bool moving_holds_up(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    bool is_there = event->happen == moving_arrives_there || event->happen == moving_ends_there;
    int64_t *passed = is_there ? &connection->passed_there : &connection->passed_here;
    if (!moving_is_apart(job, connection->node, connection->store->host) &&
        event->number == *passed + 1) {
        ++*passed;
        return false;
    }
    struct moving_event *again = moving_add(job, moving_later(job, 0.2), NULL, event->happen);
    again->node = event->node;
    again->life = event->life;
    again->subject = event->subject;
    again->number = event->number;
    again->bytes = event->bytes;
    event->bytes = (struct bytes){0};
    return true;
}
