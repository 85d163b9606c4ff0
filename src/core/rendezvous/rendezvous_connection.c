/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_connection.h"

#include "core/rendezvous/rendezvous_wishing.h"

/* After a new connection the node has a new name. Where no host serves presence, only this node
 * knows that the node of its old name is gone. A host may be told so before it is connected. */
static void rename_node(struct rendezvous_machine *machine) {
    if (!machine->link.has_presence || machine->link.is_host) {
        rendezvous_losses_note(&machine->losses, &machine->view.me, false);
    }
    rendezvous_view_rename(&machine->view, rendezvous_link_draw_local_id(&machine->link));
    rendezvous_place_give_up(&machine->place, RENDEZVOUS_NO_ROUND);
}

/* The store of another host has what is committed. This node is in the same world, as far as it
 * knows. What it has seen since, it holds against a record that is earlier; but what a host has
 * told it is no record. */
static void stay_in_job(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->settings.delegates) {
        rendezvous_view_begin(&machine->view);
        machine->view.is_name_kept = true;
    }
    rendezvous_failure_forget_roll(&machine->failure, step->event->now,
        rendezvous_failure_patience(&machine->settings, machine->link.has_presence));
    if (machine->place.is_in_world) {
        rendezvous_patience_end(&machine->patience);
    }
}

/* The host has found the former connection ended, and takes the node of that one out. */
static void come_again(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART) {
        rendezvous_end_world(step, "this node has lost its connection, and its place with it");
    }
    rendezvous_view_begin(&machine->view);
    rename_node(machine);
}

void rendezvous_connection_take(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_event *event = step->event;
    bool had_connection = machine->link.was_open;
    bool is_other_store =
        machine->has_succession && !(machine->settings.delegates &&
                                       event->connected.is_same_store && !event->connected.is_host);
    if (machine->purpose.goal == RENDEZVOUS_GOAL_OVER ||
        !rendezvous_link_open(&machine->link, event->connected.has_presence,
            event->connected.is_host, event->now, machine->settings.keep_alive_interval)) {
        return;
    }
    if (had_connection && is_other_store) {
        stay_in_job(step);
    } else if (had_connection) {
        come_again(step);
    } else {
        rendezvous_view_begin(&machine->view);
    }
    rendezvous_wishing_begin(step);
    rendezvous_step_present(step);
}

/* A host that was heard while the node tried is not gone, although the node could not connect until
 * the deadline. It is gone if it has refused: then the deadline has not come yet. */
static bool is_host_there(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    struct instant now = step->event->now;
    return step->event->lost.was_heard && machine->link.was_open &&
           !instant_is_before(now, machine->link.given_up_at) &&
           instant_is_before(now, machine->patience.join_deadline.at);
}

static void lose_record(struct rendezvous_step *step, bool was_open) {
    struct rendezvous_machine *machine = step->machine;
    const char *reason = step->event->lost.reason;
    rendezvous_end_world(step, reason);
    rendezvous_patience_begin(&machine->patience, step->event->now, machine->settings.join_timeout);
    bool may_be_there = !machine->link.is_host || step->event->lost.is_own_doing;
    if ((was_open || is_host_there(step)) && may_be_there) {
        rendezvous_connect_again(step);
    } else {
        rendezvous_fail(step, reason);
    }
}

/* Unless its nodes have exchanged what their workers need, the round may never have been committed,
 * and the next host, which knows nothing of it, may begin another one of its number. So no two
 * rounds are taken for one, it is given up. */
static void give_up_begun_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->place.is_placed && machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART) {
        rendezvous_end_world(step, "the host of the job's store was lost when the round began");
    }
}

/* The world goes on. Who was gone is known to the host, and the next one finds out anew. So it does
 * what the others wish: they say it again. */
static void seek_host(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    rendezvous_losses_forget_all(&machine->losses);
    if (!step->event->lost.keeps_hosting) {
        rendezvous_delegates_clear(&machine->delegates);
        give_up_begun_world(step);
    }
    rendezvous_finish_forget_count(&machine->finish);
    if (machine->purpose.goal != RENDEZVOUS_GOAL_NONE &&
        machine->purpose.goal != RENDEZVOUS_GOAL_OVER) {
        rendezvous_patience_begin(
            &machine->patience, step->event->now, machine->settings.join_timeout);
        rendezvous_connect_again(step);
    }
}

void rendezvous_connection_lose(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    bool was_open = rendezvous_link_close(&machine->link);
    if (step->event->lost.is_host_sought) {
        seek_host(step);
        return;
    }
    rendezvous_failure_end(&machine->failure);
    if (!machine->link
             .is_host) { /* a host is told of each loss once, whatever its own connection */
        rendezvous_losses_forget_all(&machine->losses);
    }
    switch (machine->purpose.goal) {
    case RENDEZVOUS_GOAL_TAKE_PART:
        lose_record(step, was_open);
        break;
    case RENDEZVOUS_GOAL_CLOSE:
    case RENDEZVOUS_GOAL_LEAVE:
        rendezvous_settle(step);
        break;
    case RENDEZVOUS_GOAL_NONE:
    case RENDEZVOUS_GOAL_OVER:
    case RENDEZVOUS_GOAL_COUNT:
        break;
    }
}
