/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `etcd` (and `etcd-v3`) of a job's register: keys in etcd, asked over gRPC.
 *
 *     muster/RUN_ID/entry/000000000001      one entry each; the last few are kept
 *     muster/RUN_ID/renewal/000000000001    of a term
 *
 * An append is one transaction: it puts an entry if there is none of that number and the one before
 * it is there. So a number whose entry was removed as old cannot be won again. A member that does
 * not answer is left for the next one at once. There is no lease: a term ends by an append, and not
 * by a time that passes. */
#ifndef MUSTER_HOST_REGISTER_ETCD_REGISTER_H
#define MUSTER_HOST_REGISTER_ETCD_REGISTER_H

#include "host/register/register_engine.h"

extern const struct register_engine etcd_register_engine;

#endif
