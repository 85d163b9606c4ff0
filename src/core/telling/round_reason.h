/* SPDX-License-Identifier: BSD-3-Clause */
/* Why another round follows, in the words that a job's record has for it: a record is read by
 * nodes of other versions, so the words are all that travels. core/rendezvous writes them, and the
 * chronicle knows by them what has happened. */
#ifndef MUSTER_CORE_TELLING_ROUND_REASON_H
#define MUSTER_CORE_TELLING_ROUND_REASON_H

/* What a node has done, behind ROUND_REASON_NODE or "a node ". */
#define ROUND_REASON_JOINED "has joined"
#define ROUND_REASON_LEFT "has left"
#define ROUND_REASON_LEFT_THE_ROUND "has left the round"
#define ROUND_REASON_GONE "is gone"

/* Its workers have failed first too often, and it cannot be done without. */
#define ROUND_REASON_STAYS " stays"

/* A node by its name and process id. */
#define ROUND_REASON_NODE "node "
#define ROUND_REASON_PID " (pid "

/* Of a worker that was ended since the whole job hung. */
#define ROUND_REASON_HANG "no rank has taken a step for "

#endif
