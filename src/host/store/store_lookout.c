/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_lookout.h"

#include <stdlib.h>

#include "base/text.h"
#include "host/network/tcp_silence.h"

/* A client that gives signs of life gives one in each second, unless its connection is calm. */
#define SIGNLESS_SECONDS 3

/* The list. */

static void add(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (peer->is_looked_at) {
        return;
    }
    peer->is_looked_at = true;
    peer->looked_at_before = NULL;
    peer->looked_at_next = peers->looked_at;
    if (peers->looked_at != NULL) {
        peers->looked_at->looked_at_before = peer;
    }
    peers->looked_at = peer;
}

void store_lookout_forget(struct store_peer *peer) {
    if (!peer->is_looked_at) {
        return;
    }
    peer->is_looked_at = false;
    if (peer->looked_at_before != NULL) {
        peer->looked_at_before->looked_at_next = peer->looked_at_next;
    } else {
        peer->peers->looked_at = peer->looked_at_next;
    }
    if (peer->looked_at_next != NULL) {
        peer->looked_at_next->looked_at_before = peer->looked_at_before;
    }
}

/* Signs of life. */

static void end_calm(struct store_peer *peer) {
    if (peer->is_calm) {
        peer->is_calm = false;
        tcp_silence_watch(peer->stream.fd, peer->peers->silence_timeout);
    }
}

void store_lookout_note(struct store_peer *peer, const struct store_request *request) {
    if (request->operation == STORE_PING && request->nonce == STORE_SIGN_OF_LIFE) {
        peer->gives_signs = true;
        peer->sign_given = event_loop_now(peer->peers->loop);
        end_calm(peer);
    }
}

static void leave_signs(struct store_peer *peer, bool leaves) {
    if (leaves != peer->leaves_signs && !peer->stream.is_closed) {
        peer->leaves_signs = leaves;
        tcp_stream_expect(&peer->stream, leaves ? STORE_SIGN_BYTES + 1 : 1);
    }
}

void store_lookout_serve(struct store_peer *peer, bool is_all_served) {
    bool is_present = peer->holder.first != NULL && !peer->stream.is_closed;
    if (is_present && !peer->is_calm) {
        add(peer);
    }
    leave_signs(peer, is_all_served && peer->gives_signs && is_present && !peer->is_calm &&
                          !peer->stream.is_held);
}

/* Looking. */

/* The machine is gone after as long as where it is looked at, or up to half a second later. */
static void begin_calm(struct store_peer *peer) {
    struct duration doubt = duration_from_milliseconds(CONNECTION_SILENCE_DOUBT_MILLISECONDS);
    store_lookout_forget(peer);
    peer->is_calm = true;
    leave_signs(peer, false);
    tcp_silence_leave(peer->stream.fd,
        (struct duration){peer->peers->silence_timeout.nanoseconds + doubt.nanoseconds});
}

static bool gives_no_more_signs(const struct store_peer *peer, struct instant now) {
    return peer->gives_signs &&
           instant_is_before(
               instant_after(peer->sign_given, duration_from_seconds(SIGNLESS_SECONDS)), now);
}

void store_lookout_report_silent(const struct store_peer *peer) {
    const struct store_server_observer *observer = &peer->peers->observer;
    for (const struct store_presence_key *key = peer->holder.first; key != NULL; key = key->next) {
        if (observer->silent != NULL) {
            observer->silent(observer->context, key->name);
        }
    }
}

/* Returns after how long to look at this client again. */
static struct duration judge(struct store_peer *peer, struct instant now) {
    struct duration limit = peer->peers->silence_timeout;
    struct duration silent_for = tcp_silence_measure(peer->stream.fd).silent_for;
    if (connection_silence_look(&peer->silence, silent_for, limit, now)) {
        char *silence = text_format("no answer for %g s", duration_seconds(silent_for));
        store_lookout_report_silent(peer);
        store_peer_dismiss(peer, silence);
        free(silence);
        return DURATION_FOREVER;
    }
    if (gives_no_more_signs(peer, now) && !connection_silence_is_unusual(silent_for)) {
        begin_calm(peer);
        return DURATION_FOREVER;
    }
    return connection_silence_pause(&peer->silence, silent_for, limit, now);
}

static struct duration look_at(struct store_peer *peer, struct instant now) {
    if (peer->leaves_signs) {
        tcp_stream_catch_up(&peer->stream);
    }
    bool is_over = peer->holder.first == NULL || peer->stream.is_closed;
    return is_over || connection_silence_rests(&peer->silence, now) ? DURATION_FOREVER
                                                                    : judge(peer, now);
}

/* A client that is closed meanwhile stays in the list until the loop has let go of it. */
struct duration store_lookout_look(struct store_peers *peers) {
    struct instant now = event_loop_now(peers->loop);
    struct duration pause = duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS);
    struct store_peer *next;
    for (struct store_peer *peer = peers->looked_at; peer != NULL; peer = next) {
        next = peer->looked_at_next;
        struct duration own = look_at(peer, now);
        pause = own.nanoseconds < pause.nanoseconds ? own : pause;
    }
    return pause;
}
