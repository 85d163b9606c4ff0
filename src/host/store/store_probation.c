/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_probation.h"

#define USUAL_MAXIMUM 128
#define LEAST_MAXIMUM 8

/* Whether it is munge that is waited for, which has its own patience. */
static bool is_being_checked(const struct store_peer *peer) {
    return peer->reader.proof.stage == STORE_PROOF_STAGE_CHECKING;
}

static struct instant deadline_of(const struct store_peer *peer) {
    return instant_after(peer->came_at, duration_from_seconds(STORE_PROBATION_SECONDS));
}

/* The oldest has the first deadline. */
static void set_timer(struct store_peers *peers) {
    struct store_peer *peer = peers->unproven.oldest;
    while (peer != NULL && is_being_checked(peer)) {
        peer = peer->unproven_next;
    }
    if (peer != NULL) {
        event_timer_set(peers->unproven.timer, deadline_of(peer));
    } else {
        event_timer_stop(peers->unproven.timer);
    }
}

static void dismiss_late(void *context) {
    struct store_peers *peers = context;
    struct instant now = event_loop_now(peers->loop);
    struct store_peer *next;
    for (struct store_peer *peer = peers->unproven.oldest; peer != NULL; peer = next) {
        next = peer->unproven_next;
        if (instant_is_before(now, deadline_of(peer))) {
            break;
        }
        if (!is_being_checked(peer)) {
            store_peer_dismiss(peer, "turned away: it has not proved itself within 10 s");
        }
    }
    set_timer(peers);
}

void store_probation_init(struct store_peers *peers, size_t maximum) {
    peers->unproven.maximum = maximum == 0              ? USUAL_MAXIMUM
                              : maximum < LEAST_MAXIMUM ? LEAST_MAXIMUM
                                                        : maximum;
    peers->unproven.timer = event_timer_new(peers->loop, dismiss_late, peers);
}

void store_probation_clear(struct store_peers *peers) {
    event_timer_free(peers->unproven.timer);
    peers->unproven.timer = NULL;
}

/* Closes the oldest of this address where it has its part of the room, or the oldest of all where
 * there is none. */
static void make_way_for(const struct store_peer *newcomer) {
    struct store_peers *peers = newcomer->peers;
    struct store_peer *oldest_of_address = NULL;
    size_t count_of_address = 0;
    for (struct store_peer *peer = peers->unproven.oldest; peer != NULL;
         peer = peer->unproven_next) {
        if (tcp_address_is_same_host(&peer->address, &newcomer->address)) {
            oldest_of_address = oldest_of_address == NULL ? peer : oldest_of_address;
            count_of_address++;
        }
    }
    struct store_peer *given_up = NULL;
    if (count_of_address >= peers->unproven.maximum / 2) {
        given_up = oldest_of_address;
    } else if (peers->unproven.count >= peers->unproven.maximum) {
        given_up = peers->unproven.oldest;
    }
    if (given_up != NULL) {
        store_peer_dismiss(
            given_up, "turned away: many have come since that have not proved themselves either");
    }
}

void store_probation_begin(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (peers->unproven.timer == NULL) {
        return;
    }
    make_way_for(peer);
    peer->is_on_probation = true;
    peer->came_at = event_loop_now(peers->loop);
    peer->unproven_before = peers->unproven.newest;
    peer->unproven_next = NULL;
    *(peer->unproven_before != NULL ? &peer->unproven_before->unproven_next
                                    : &peers->unproven.oldest) = peer;
    peers->unproven.newest = peer;
    peers->unproven.count++;
    if (peers->unproven.oldest == peer) {
        set_timer(peers);
    }
}

void store_probation_note(struct store_peer *peer) {
    if (peer->is_on_probation && peer->reader.proof.stage == STORE_PROOF_STAGE_PROVEN) {
        store_probation_end(peer);
        store_peers_report_connections(peer->peers);
    }
}

void store_probation_end(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (!peer->is_on_probation) {
        return;
    }
    peer->is_on_probation = false;
    *(peer->unproven_before != NULL ? &peer->unproven_before->unproven_next
                                    : &peers->unproven.oldest) = peer->unproven_next;
    *(peer->unproven_next != NULL ? &peer->unproven_next->unproven_before
                                  : &peers->unproven.newest) = peer->unproven_before;
    peers->unproven.count--;
}
