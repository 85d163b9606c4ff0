/* SPDX-License-Identifier: BSD-3-Clause */
/* The classes that a pickle may name, for reading and writing. Every other class or function is
 * refused, because a pickle runs commands by naming functions. */
#ifndef MUSTER_WIRE_PICKLE_PICKLE_CLASS_H
#define MUSTER_WIRE_PICKLE_PICKLE_CLASS_H

#include <stdbool.h>

#include "base/bytes.h"

enum pickle_class {
    PICKLE_CLASS_RENDEZVOUS_STATE, /* _RendezvousState of PyTorch's dynamic_rendezvous.py */
    PICKLE_CLASS_NODE,             /* its _NodeDesc class */
    PICKLE_CLASS_DATETIME,
    PICKLE_CLASS_TIMEZONE,
    PICKLE_CLASS_TIMEDELTA,
    PICKLE_CLASS_SET,    /* protocols 2 and 3 spell a set as an object with a list as argument */
    PICKLE_CLASS_ENCODE, /* _codecs.encode: protocol 2 spells bytes with it */
};

/* False for any class or function that is not in the list. */
bool pickle_class_find(struct slice module, struct slice name, enum pickle_class *out_class);
/* The module of the class in Python 3. */
const char *pickle_class_module(enum pickle_class of_class);
const char *pickle_class_name(enum pickle_class of_class);

#endif
