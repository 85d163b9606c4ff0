/* SPDX-License-Identifier: BSD-3-Clause */
/* What a register answers to a request. It is the same for all engines. host/register/register.h
 * says which request has which answers. */
#ifndef MUSTER_CORE_REGISTER_REGISTER_EVENT_H
#define MUSTER_CORE_REGISTER_REGISTER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "core/register/register_entry.h"

enum register_event_kind {
    REGISTER_READ,    /* `entry`, or NULL: there is none yet */
    REGISTER_WON,     /* the appended entry is in the register */
    REGISTER_LOST,    /* another has the number, or a later one: `entry` */
    REGISTER_UNKNOWN, /* the append may have taken effect, or may do so later: `failure` */
    REGISTER_RENEWED,
    REGISTER_RENEWAL, /* `renewal` */
    REGISTER_NEWS,    /* an entry later than the one that was known: `entry` */
    REGISTER_FAILED,  /* `failure`; an append has not taken effect and will not */
};

struct register_event {
    enum register_event_kind kind;
    uint64_t request; /* the number that the request was given */
    const struct register_entry *entry;
    const char *renewal;
    const struct failure *failure;
    /* Of a failure: it will be the same until the user has done something. */
    bool is_final;
    /* Of REGISTER_READ: one sentence about the register, for a node that waits for others in vain;
     * or NULL. */
    const char *note;
};

#endif
