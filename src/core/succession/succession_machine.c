/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_machine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/succession/succession_handover.h"
#include "core/succession/succession_hosting.h"
#include "core/succession/succession_step.h"

struct succession_machine *succession_machine_new(const struct succession_settings *settings) {
    struct succession_machine *machine = memory_allocate(sizeof *machine);
    machine->settings = *settings;
    return machine;
}

void succession_machine_free(struct succession_machine *machine) {
    if (machine != NULL) {
        rendezvous_state_clear(&machine->record);
        rendezvous_state_clear(&machine->seen);
        rendezvous_state_clear(&machine->appended);
        succession_silence_end(&machine->silence);
        succession_majority_clear(&machine->majority);
        free(machine);
    }
}

enum succession_state succession_machine_state(const struct succession_machine *machine) {
    return machine->state;
}

/* Suspicion. */

/* Who is the first to claim asks the register before, unless it has done so since it sought the
 * host. */
static void suspect_ended(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct succession_suspicion *suspicion = &machine->suspicion;
    bool knows_register = machine->has_read && suspicion->kind == SUCCESSION_SUSPICION_NONE;
    if (suspicion->kind != SUCCESSION_SUSPICION_REFUSED) {
        succession_forget_suspicion(machine);
        suspicion->kind = SUCCESSION_SUSPICION_REFUSED;
    }
    machine->state = SUCCESSION_SUSPECT;
    moment_clear(&machine->retry_at);
    if (machine->is_unresolved || (!knows_register && succession_turn(machine) == 0)) {
        succession_read(step);
    } else if (machine->request == SUCCESSION_REQUEST_NONE) {
        succession_claim_in_turn(step);
    }
}

static bool look_in_time(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    bool is_due = succession_silence_is_due(&machine->silence, step->event->now);
    if (is_due) {
        succession_silence_ask(&machine->silence, step->event->now);
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_LOOK, .term = machine->entry.term});
    }
    return is_due;
}

/* What is seen of the renewal counts from the first doubt on. */
static void judge_silence(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->suspicion.kind == SUCCESSION_SUSPICION_SILENT) {
        machine->suspicion.is_turn =
            succession_silence_has_lasted(&machine->silence, machine->settings.silence_timeout);
        if (machine->suspicion.is_turn) {
            succession_read(step);
        }
    }
}

static void suspect_silent(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->state = SUCCESSION_SUSPECT;
    if (machine->suspicion.kind != SUCCESSION_SUSPICION_SILENT) {
        machine->suspicion = (struct succession_suspicion){.kind = SUCCESSION_SUSPICION_SILENT};
        succession_silence_begin(&machine->silence, step->event->now);
        judge_silence(step);
        (void)look_in_time(step);
    }
}

static void take_doubt(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!machine->is_connected || machine->state == SUCCESSION_HOST) {
        return;
    }
    if (step->event->is_doubted) {
        succession_silence_begin(&machine->silence, step->event->now);
        (void)look_in_time(step);
        succession_read(step); /* what it has committed by now is no sign of life later */
    } else {
        succession_silence_end(&machine->silence);
    }
}

/* Its term is over, and has committed nothing. When more of them follow each other than there is
 * room for, the first ones are missed by their silence. */
static void note_former(struct succession_machine *machine) {
    const struct node_identity *host = &machine->entry.host;
    if (machine->entry.number > 0 && machine->former_count < SUCCESSION_FORMERS_MAXIMUM &&
        !node_identity_is_same_process(host, &machine->settings.identity)) {
        machine->formers[machine->former_count++] = *host;
    }
}

static void take_win(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->is_unresolved = false;
    if (machine->is_claim) {
        note_former(machine);
    }
    machine->entry.number++;
    if (machine->is_claim) {
        machine->entry.term++;
        machine->entry.host = machine->settings.identity;
        succession_host(step);
    } else {
        succession_take_commit_won(step);
    }
}

/* What the register says. */

/* Whether an append of this node was won while nobody knew: nobody else writes its name. It need
 * not be the last one, since an earlier one may have been given up before it took effect. */
static bool is_own_win(
    const struct succession_machine *machine, const struct succession_entry *entry) {
    return machine->is_unresolved && entry->number == machine->entry.number + 1 &&
           node_identity_is_same_process(&entry->host, &machine->settings.identity);
}

/* Where it is not connected, this node learns here that a round goes on without it. */
static void leave_world_of_others(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->record.is_complete && succession_find_self(machine, &machine->record) == NULL) {
        succession_fence(
            step, "the others have gone on without this node, which cannot reach them");
    }
}

/* The host of the term that this node knows has committed something. */
static void take_commit(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state == SUCCESSION_HOST) {
        succession_commit(step);
        return;
    }
    if (machine->state == SUCCESSION_CLAIM) {
        machine->state = SUCCESSION_SUSPECT;
    }
    if (machine->suspicion.kind == SUCCESSION_SUSPICION_SILENT) { /* to this node alone */
        machine->suspicion.is_turn = false;
        succession_silence_hear(&machine->silence);
    }
    leave_world_of_others(step);
    succession_claim_in_turn(step);
}

/* Of a job that is over nobody needs to host the store, and its last host may be gone without a
 * word. */
static bool comes_too_late(const struct succession_machine *machine) {
    return machine->record.is_closed && machine->is_seeking && !machine->was_connected;
}

static void begin_term(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (comes_too_late(machine)) {
        snprintf(machine->reason, sizeof machine->reason,
            "the job is over: its record is closed; a new job needs another --rdzv-id");
        succession_give_up(step);
        return;
    }
    succession_forget_suspicion(machine);
    if (machine->state == SUCCESSION_HOST) {
        succession_end_hosting(step);
    }
    succession_leave_connection(step);
    leave_world_of_others(step);
    if (node_identity_is_same_process(&machine->entry.host, &machine->settings.identity)) {
        succession_host(step);
    } else {
        machine->state = SUCCESSION_FOLLOW;
        succession_dial(step);
    }
}

static void follow(struct succession_step *step, const struct succession_entry *entry) {
    struct succession_machine *machine = step->machine;
    bool is_same_term = machine->entry.number > 0 && entry->term == machine->entry.term;
    machine->is_unresolved = false;
    if (is_same_term || succession_is_news(step->event->record, &machine->record)) {
        machine->former_count = 0;
    }
    if (!is_same_term) {
        note_former(machine);
    }
    machine->entry = *entry;
    rendezvous_state_copy(step->event->record, &machine->record);
    if (is_same_term) {
        take_commit(step);
    } else {
        begin_term(step);
    }
}

static void take_entry(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    const struct succession_entry *entry = &step->event->entry;
    if (is_own_win(machine, entry)) {
        rendezvous_state_copy(step->event->record, &machine->appended);
        take_win(step);
    } else if (entry->number > machine->entry.number) {
        follow(step, entry);
    } else if (machine->is_unresolved) {
        succession_append(
            step, machine->is_claim, machine->is_claim ? &machine->record : &machine->appended);
    } else if (machine->state == SUCCESSION_HOST) {
        succession_commit(step);
    } else {
        succession_claim_in_turn(step);
    }
}

static void hear(struct succession_step *step) {
    step->machine->heard_at = step->event->now;
}

/* An answer may be late: what was committed after it was asked for, it need not tell. */
static void hear_of_asking(struct succession_machine *machine) {
    if (instant_is_before(machine->heard_at, machine->asked_at)) {
        machine->heard_at = machine->asked_at;
    }
}

static void take_read(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->request != SUCCESSION_REQUEST_READ) {
        return;
    }
    machine->request = SUCCESSION_REQUEST_NONE;
    machine->has_read = true;
    hear_of_asking(machine);
    if (step->event->is_there) {
        take_entry(step);
    } else if (machine->entry.number == 0) {
        succession_claim(step);
    } else { /* the register has forgotten what it had: perhaps its file system is not there */
        succession_retry_later(step);
    }
}

static void take_won(struct succession_step *step) {
    if (step->machine->request == SUCCESSION_REQUEST_APPEND) {
        step->machine->request = SUCCESSION_REQUEST_NONE;
        hear_of_asking(step->machine);
        take_win(step);
    }
}

static void take_lost_append(struct succession_step *step) {
    if (step->machine->request == SUCCESSION_REQUEST_APPEND) {
        step->machine->request = SUCCESSION_REQUEST_NONE;
        hear_of_asking(step->machine);
        follow(step, &step->event->entry);
    }
}

/* What is asked at the moment tells it, too. */
static void take_news(struct succession_step *step) {
    const struct succession_machine *machine = step->machine;
    if (machine->request == SUCCESSION_REQUEST_NONE && !machine->is_unresolved &&
        machine->state != SUCCESSION_HOST && step->event->entry.number > machine->entry.number) {
        follow(step, &step->event->entry);
    }
}

static void take_unknown(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->request == SUCCESSION_REQUEST_APPEND) {
        machine->request = SUCCESSION_REQUEST_NONE;
        machine->is_unresolved = true;
        succession_retry_later(step);
    }
}

static void take_renewed(struct succession_step *step) {
    if (step->machine->state != SUCCESSION_HOST) {
        return; /* any more */
    }
    succession_tell_register(step, step->event->is_refused);
    if (step->event->is_refused) {
        return;
    }
    step->machine->is_renewing = false;
    hear(step);
}

static void take_renewal(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    succession_silence_take(&machine->silence, step->event->renewal,
        machine->settings.silence_timeout, step->event->now);
    judge_silence(step);
}

static void take_register_failure(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->request = SUCCESSION_REQUEST_NONE;
    snprintf(machine->reason, sizeof machine->reason, "%s", step->event->failed.reason);
    if (step->event->failed.is_final && machine->entry.number == 0) {
        succession_give_up(step);
    } else {
        succession_retry_later(step);
    }
}

/* What the rendezvous machine asks, and what the store says. */

/* Another node may be host by now. Who does not claim first has time to learn it: the host of the
 * entry known says before whether it is there. */
static void read_in_time(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state == SUCCESSION_FOLLOW && machine->is_dialing &&
        succession_turn(machine) > 0) {
        moment_set_after(&machine->retry_at, step->event->now,
            duration_from_milliseconds(SUCCESSION_TURN_MILLISECONDS));
    } else if (machine->state == SUCCESSION_FOLLOW || machine->state == SUCCESSION_SUSPECT) {
        succession_read(step);
    }
}

static void seek(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->is_seeking = true;
    machine->has_read = false;
    machine->deadline = step->event->deadline;
    if (machine->entry.number > 0 && machine->state != SUCCESSION_CLAIM) {
        succession_dial(step);
    }
    read_in_time(step);
}

static void take_connected(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!machine->is_seeking) {
        return;
    }
    succession_forget_suspicion(machine);
    machine->is_seeking = false;
    machine->is_dialing = false;
    machine->is_connected = true;
    machine->was_connected = true;
    machine->is_fenced = false;
    hear(step);
    succession_push(
        step, (struct succession_effect){.kind = SUCCESSION_EFFECT_TELL_CONNECTED,
                  .connected = {.is_same_term = machine->connected_term == machine->entry.term,
                      .offers_delegation = step->event->offers_delegation}});
    machine->connected_term = machine->entry.term;
    if (machine->state == SUCCESSION_HOST) {
        succession_tell_committed(step);
    }
}

/* A machine that has fallen silent was heard so long ago at least, and the others may have gone on
 * since. */
static void hear_until_loss(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct instant heard = step->event->now;
    if (step->event->loss == SUCCESSION_LOSS_SILENT) {
        heard.nanoseconds -= machine->settings.silence_timeout.nanoseconds +
                             duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS).nanoseconds;
    }
    if (instant_is_before(machine->heard_at, heard)) {
        machine->heard_at = heard;
    }
}

static void take_connection_loss(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    enum succession_loss loss = step->event->loss;
    bool was_connected = machine->is_connected;
    machine->is_dialing = false;
    if (was_connected) {
        hear_until_loss(step);
        succession_leave_connection(step);
    }
    if (machine->state == SUCCESSION_CLAIM || (was_connected && loss != SUCCESSION_LOSS_SILENT)) {
        return; /* SEEK follows */
    }
    if (machine->state == SUCCESSION_HOST) {
        succession_retry_later(step);
    } else if (loss == SUCCESSION_LOSS_REFUSED) {
        suspect_ended(step);
    } else if (loss == SUCCESSION_LOSS_SILENT) {
        suspect_silent(step);
        succession_dial(step);
    } else { /* somebody listens there who does not host: it may come to, or be another process */
        suspect_silent(step);
        succession_retry_later(step);
    }
}

/* Time. */

/* What has waited for the register, or for a store that is not served yet. */
static void try_again(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    moment_clear(&machine->retry_at);
    if (machine->state == SUCCESSION_CLAIM && machine->request == SUCCESSION_REQUEST_NONE) {
        machine->state = SUCCESSION_SUSPECT;
    }
    if (machine->state == SUCCESSION_HOST && !machine->is_unresolved) {
        succession_commit(step);
        succession_dial(step);
    } else if (machine->is_seeking || machine->is_unresolved || machine->is_named) {
        succession_read(step);
    }
}

static void claim_in_time(struct succession_step *step) {
    struct succession_suspicion *suspicion = &step->machine->suspicion;
    if (moment_has_come(&suspicion->turn_at, step->event->now)) {
        moment_clear(&suspicion->turn_at);
        succession_read(step);
    }
}

static void give_up_in_time(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->is_seeking && !machine->is_connected &&
        !instant_is_before(step->event->now, machine->deadline)) {
        succession_give_up(step);
    }
}

static void take_timer(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct instant now = step->event->now;
    if (moment_has_come(&machine->retry_at, now)) {
        try_again(step);
    }
    claim_in_time(step);
    if (look_in_time(step) && !machine->is_connected) {
        succession_read(step); /* the others may have gone on without this node */
    }
    succession_count_missing(step);
    succession_renew(step);
    succession_commit(step); /* for which it may have been patient */
    if (!instant_is_before(now, succession_fence_time(machine))) {
        succession_fence(step,
            "neither the host of the job's store nor its register was heard of for "
            "fence_timeout");
    }
    give_up_in_time(step);
}

static void (*const handlers[SUCCESSION_EVENT_KIND_COUNT])(struct succession_step *step) = {
    [SUCCESSION_EVENT_SEEK] = seek,
    [SUCCESSION_EVENT_SEEN] = succession_take_seen,
    [SUCCESSION_EVENT_READ] = take_read,
    [SUCCESSION_EVENT_WON] = take_won,
    [SUCCESSION_EVENT_LOST] = take_lost_append,
    [SUCCESSION_EVENT_UNKNOWN] = take_unknown,
    [SUCCESSION_EVENT_RENEWED] = take_renewed,
    [SUCCESSION_EVENT_RENEWAL] = take_renewal,
    [SUCCESSION_EVENT_NEWS] = take_news,
    [SUCCESSION_EVENT_FAILED] = take_register_failure,
    [SUCCESSION_EVENT_CONNECTED] = take_connected,
    [SUCCESSION_EVENT_CONNECTION_LOST] = take_connection_loss,
    [SUCCESSION_EVENT_NODE_SILENT] = succession_take_silent_node,
    [SUCCESSION_EVENT_NODE_GONE] = succession_take_gone_node,
    [SUCCESSION_EVENT_DOUBTED] = take_doubt,
    [SUCCESSION_EVENT_NAMED] = succession_take_named,
    [SUCCESSION_EVENT_MOVED] = succession_take_moved,
    [SUCCESSION_EVENT_LEAVE] = succession_take_leave,
    [SUCCESSION_EVENT_TIMER_FIRED] = take_timer,
};

void succession_machine_step(struct succession_machine *machine,
    const struct succession_event *event, struct succession_effects *effects) {
    effects->count = 0;
    struct succession_step step = {.machine = machine, .event = event, .effects = effects};
    handlers[event->kind](&step);
    succession_hand_over(&step);
    succession_arm_timer(&step);
}
