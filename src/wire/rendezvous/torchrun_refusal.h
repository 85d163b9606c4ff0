/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node of torchrun's reads in the place of the record of a job that it cannot be in. Its
 * protocol has no word for a refusal. So the value is, in base64, a pickle that names a module
 * which cannot be there, whose name is the sentence: the node ends with ModuleNotFoundError, No
 * module named "this job's nodes have to be ...". See _RendezvousStateHolder.sync in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_WIRE_RENDEZVOUS_TORCHRUN_REFUSAL_H
#define MUSTER_WIRE_RENDEZVOUS_TORCHRUN_REFUSAL_H

#include "base/text.h"

/* Appends the value for a node that has come to a job whose store another node may come to host. */
void torchrun_refusal_write_of_succession(struct text *out);

#endif
