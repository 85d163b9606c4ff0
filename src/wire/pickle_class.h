/* SPDX-License-Identifier: BSD-3-Clause */
/* The classes a pickle may name, for reading and writing. Whatever is not in this list is refused:
 * naming a function is how a pickle runs commands. */
#ifndef MUSTER_WIRE_PICKLE_CLASS_H
#define MUSTER_WIRE_PICKLE_CLASS_H

#include <stdbool.h>

#include "base/bytes.h"

enum pickle_class {
    PICKLE_CLASS_RENDEZVOUS_STATE, /* _RendezvousState of PyTorch's dynamic_rendezvous.py */
    PICKLE_CLASS_NODE,             /* its _NodeDesc */
    PICKLE_CLASS_DATETIME,
    PICKLE_CLASS_TIMEZONE,
    PICKLE_CLASS_TIMEDELTA,
    PICKLE_CLASS_SET,    /* as protocols 2 and 3 spell sets: an object with a list as argument */
    PICKLE_CLASS_ENCODE, /* _codecs.encode: as protocol 2 spells bytes */
};

/* False for any class or function that is not in the list. */
bool pickle_class_find(struct slice module, struct slice name, enum pickle_class *out_class);
/* What Python 3 calls it. */
const char *pickle_class_module(enum pickle_class of_class);
const char *pickle_class_name(enum pickle_class of_class);

#endif
