/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node that delegates and the host of the store write to each other. Both texts have a
 * constant size, however many nodes the job has.
 *
 * A wish is the value of the node's presence key. Its numbers are the sequence, the finished round,
 * the ended round, whether that is charged, the doubted round, the signal, and how many workers the
 * node has, or 0 where it says no role. Else the length of the role and the role follow. Then comes
 * the round for which it is ready: -1: none; -2: any, since it had no world yet. Of any other round
 * it says where the workers meet: the port and the address follow, with the address's length before
 * it; port 0, of a node that has not opened their store, has no address. A reason may follow that:
 *
 *     wish join 1 -1 -1 0 -1 0 8 7 trainer -2
 *     wish join 2 -1 -1 0 -1 0 8 7 trainer 0 29400 8 10.0.0.1
 *     wish join 2 -1 7 1 -1 0 8 7 trainer -2 worker 3 exited with code 1
 *     wish join 3 -1 -1 0 -1 0 8 7 trainer 8 0
 *
 * A standing is an item of the node's queue. Its numbers are the sequence of the wish that was
 * heard last, then those of the record: the round, from which number it and the next one count, the
 * origin, the restarts, those of the next round, the largest size, the signal and the marks (bits);
 * then how many participants, waiting nodes and spares there are; then on which list this node is
 * (0: none, 1: participant, 2: waiting, 3: spare) and its rank. If the marks have that of a ranked
 * round, the ranks of its workers follow: the first global rank, the world size, the first rank
 * within the role, the size of the role. Another mark says that the round is ranked and held: the
 * ranks will be told when all its nodes are ready. Another one says that the round was ranked, but
 * by a host before this one. If the marks have that of a meeting, the port, the length of the
 * address and the address of the workers' store follow the ranks. Where the job counts its restarts
 * within a window, the ages of the last ones may follow in braces; who does not know them takes
 * them for a part of the reason. The reason may follow:
 *
 *     standing 2 8 0 0 1073741825 1 0 4 0 1 4 0 0 1 2 worker 3 exited with code 1
 *     withdrawn 2 */
#ifndef MUSTER_WIRE_RENDEZVOUS_DELEGATION_TEXT_H
#define MUSTER_WIRE_RENDEZVOUS_DELEGATION_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_delegation.h"

/* The longest texts that are read. The second is for a standing. */
#define DELEGATION_WISH_BYTES ((size_t)512)
#define DELEGATION_STANDING_BYTES ((size_t)1024)

void delegation_wish_write(const struct rendezvous_wish *wish, struct text *out);
/* FAILURE_MALFORMED for every other text. */
__attribute__((warn_unused_result)) enum failure_code delegation_wish_read(
    const char *text, struct rendezvous_wish *out_wish);

struct delegation_standing {
    struct rendezvous_state state; /* at most one node is listed in it, without an identity */
    int64_t answers;
    struct rank_assignment ranks;      /* world size 0: they were not told */
    struct rendezvous_meeting meeting; /* of that round; port 0: it was not told */
    bool is_held;                      /* the round is ranked, and its nodes wait for each other */
    bool is_withdrawn;                 /* then the state is empty */
};

void delegation_standing_clear(struct delegation_standing *standing);

/* `crowd`: rendezvous_state_crowd of the record, which is counted once for all who are told. */
void delegation_standing_write(const struct rendezvous_state *record,
    const struct rendezvous_crowd *crowd, const struct rendezvous_telling *telling,
    bool is_withdrawn, struct text *out);
/* FAILURE_MALFORMED for every other text, and for numbers that no record has; FAILURE_LIMIT for one
 * that is too long. The caller clears the standing after success. */
__attribute__((warn_unused_result)) enum failure_code delegation_standing_read(
    struct slice text, struct delegation_standing *out_standing);

#endif
