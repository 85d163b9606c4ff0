/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/node_succession.h"

bool node_succession_event(const struct succession_machine *succession,
    const struct succession_effect *effect, struct rendezvous_event *out_event) {
    switch (effect->kind) {
    case SUCCESSION_EFFECT_TELL_CONNECTED:
        *out_event = (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
            .connected = {.has_presence = true,
                .is_host = succession_machine_state(succession) == SUCCESSION_HOST,
                .is_same_store = effect->connected.is_same_term,
                .offers_delegation = effect->connected.offers_delegation}};
        return true;
    case SUCCESSION_EFFECT_TELL_LOST:
        *out_event = (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
            .lost = {.reason = "the host of the job's store is sought",
                .is_host_sought = true,
                .keeps_hosting = effect->keeps_hosting}};
        return true;
    case SUCCESSION_EFFECT_FENCED:
        *out_event =
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FENCED, .reason = effect->reason};
        return true;
    case SUCCESSION_EFFECT_TELL_REGISTER:
        *out_event = (struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_REGISTER, .is_register_stuck = effect->is_stuck};
        return true;
    case SUCCESSION_EFFECT_GAVE_UP:
        *out_event = (struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_CONNECTION_LOST, .lost = {.reason = effect->reason}};
        return true;
    case SUCCESSION_EFFECT_READ:
    case SUCCESSION_EFFECT_APPEND:
    case SUCCESSION_EFFECT_RENEW:
    case SUCCESSION_EFFECT_LOOK:
    case SUCCESSION_EFFECT_WATCH:
    case SUCCESSION_EFFECT_DIAL:
    case SUCCESSION_EFFECT_HOST:
    case SUCCESSION_EFFECT_END_HOSTING:
    case SUCCESSION_EFFECT_TELL_COMMITTED:
    case SUCCESSION_EFFECT_NAME:
    case SUCCESSION_EFFECT_DISMISS:
    case SUCCESSION_EFFECT_ARM_TIMER:
    case SUCCESSION_EFFECT_KIND_COUNT:
        break;
    }
    return false;
}

void node_succession_step(struct succession_machine *succession,
    const struct rendezvous_machine *rendezvous, const struct succession_event *event,
    struct succession_effects *effects) {
    struct succession_event taken = *event;
    if (event->kind == SUCCESSION_EVENT_LEAVE) {
        taken.record = rendezvous_machine_state(rendezvous);
    }
    succession_machine_step(succession, &taken, effects);
}
