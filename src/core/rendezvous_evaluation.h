/* SPDX-License-Identifier: BSD-3-Clause */
/* The heart of a rendezvous machine: looks at the record as it is now known and does the one thing
 * that is next, a write or something to tell. A part of rendezvous_machine; not for others. */
#ifndef MUSTER_CORE_RENDEZVOUS_EVALUATION_H
#define MUSTER_CORE_RENDEZVOUS_EVALUATION_H

#include "core/rendezvous_step.h"

/* Called after every event while the link is ready and a record was seen. */
void rendezvous_evaluate(struct rendezvous_step *step);

#endif
