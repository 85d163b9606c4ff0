/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures that may be what a lost node has left behind. A worker whose peer vanishes ends with a
 * broken connection, often before anybody knows that the peer's node is gone; and what a lost node
 * costs is no restart. So a restart that was charged is given back when a node turns out to be lost
 * soon after it; and a failure that would end the job is doubted first: the roll of the round is
 * called, which takes milliseconds when everybody is there. Who is not there is awaited as long as
 * it takes to know that a node is lost. Only where all participants are Muster's and losses are
 * heeded. A part of rendezvous_machine; not for others. */
#ifndef MUSTER_CORE_RENDEZVOUS_DOUBT_H
#define MUSTER_CORE_RENDEZVOUS_DOUBT_H

#include <stdbool.h>

#include "core/rendezvous_step.h"

/* A failure here would end the job: doubts it, or tells at once that it stands. When the round is
 * over already the agent was told, and nothing is done. */
void rendezvous_doubt_begin(struct rendezvous_step *step, const char *reason);

/* Goes on with it. Whether there is nothing else to do: it has written, or the failure stands. */
bool rendezvous_doubt_pursue(struct rendezvous_step *step);

/* The failure stands: tells the agent, and goes on to close the record. */
void rendezvous_doubt_overcome(struct rendezvous_step *step);

/* This node is there, and stays, if somebody calls the roll of its round. */
void rendezvous_doubt_answer(struct rendezvous_step *step);

/* Notes when a restart is charged. */
void rendezvous_doubt_look(struct rendezvous_step *step);

/* Whether the last restart was charged so shortly before the loss that is known now that the lost
 * node may have been its cause. */
bool rendezvous_doubt_may_be_consequence(const struct rendezvous_step *step);

#endif
