/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the host of the job's store is silent to everybody, and not to this node alone: a host
 * that is there renews its term in the register all the time, whoever cannot reach it. So a node
 * that hears nothing of the host looks at its renewal there, by a clock of its own. It begins when
 * it first has reason to doubt, long before the connection is taken for lost (core/store/
 * connection_silence). By then it knows already.
 *
 * This module keeps what was seen. When a look is asked for, and what follows, is decided by
 * succession_machine. TorchElastic has nothing like it. */
#ifndef MUSTER_CORE_SUCCESSION_SUCCESSION_SILENCE_H
#define MUSTER_CORE_SUCCESSION_SUCCESSION_SILENCE_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/rendezvous/moment.h"

/* How often a node that hears nothing of the host looks. Less than that is no silence. */
#define SUCCESSION_LOOK_MILLISECONDS 500

/* A zeroed struct is valid: there is no doubt. */
struct succession_silence {
    bool is_watched;
    bool is_looking; /* a look is not answered yet */
    struct instant asked_at;
    struct moment look_at;
    char *renewal;             /* as it was seen last; NULL: not yet, or the register was away */
    struct instant seen_at;    /* when it was seen first */
    struct duration stood_for; /* from then to the last look that found it unchanged */
};

/* Begins, unless it has begun: the first look is due at once. */
void succession_silence_begin(struct succession_silence *silence, struct instant now);
/* Frees what is kept. */
void succession_silence_end(struct succession_silence *silence);

/* Whether to look now. The look before has to be answered. */
bool succession_silence_is_due(const struct succession_silence *silence, struct instant now);
/* When to look next; not set while nothing is watched, or a look is under way. */
struct moment succession_silence_next(const struct succession_silence *silence);
/* A look is asked for. */
void succession_silence_ask(struct succession_silence *silence, struct instant now);

/* The look is answered. `renewal` NULL: the register is away, so what was seen before shows
 * nothing. `silence_timeout` as below. */
void succession_silence_take(struct succession_silence *silence, const char *renewal,
    struct duration silence_timeout, struct instant now);
/* The host has given another sign of life than a renewal. */
void succession_silence_hear(struct succession_silence *silence);

/* Whether the host has not renewed its term for as long as a host that is there never takes: half a
 * second less than silence_timeout, since the half second before the first look is a silence, too;
 * and two renewals at least. */
bool succession_silence_has_lasted(
    const struct succession_silence *silence, struct duration silence_timeout);

#endif
