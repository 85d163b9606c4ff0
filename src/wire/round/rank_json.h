/* SPDX-License-Identifier: BSD-3-Clause */
/* How agents spell nodes and ranks in the rendezvous store: role_info and assigned_ranks. Matches
 * _RoleInstanceInfo and SimpleElasticAgent._assign_worker_ranks in
 * torch/distributed/elastic/agent/server/api.py. TorchElastic's reader accepts further members, so
 * Muster adds `"muster": 1`, by which Muster's nodes recognise each other, and on demand the
 * addresses of the node's machine, as in `"addresses": "10.0.0.7 fd00::7"`. */
#ifndef MUSTER_WIRE_ROUND_RANK_JSON_H
#define MUSTER_WIRE_ROUND_RANK_JSON_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/workers/rank_assignment.h"

#define RANK_JSON_MAXIMUM_SIZE 65536u

/* Of one node: so many addresses are more than any machine has. */
#define RANK_JSON_ADDRESSES_MAXIMUM_SIZE 4096u

/* Appends `{"role": "default", "rank": 0, "local_world_size": 2}`, with ", \"muster\": N" unless
 * the version is 0, and with the addresses unless they are NULL. */
void rank_json_write_role_info(const struct node_role *node, const char *addresses, int group_rank,
    int muster_version, struct text *out);
/* FAILURE_MALFORMED or FAILURE_LIMIT for input that cannot be used. The caller clears the result
 * with role_info_clear. */
__attribute__((warn_unused_result)) enum failure_code rank_json_read_role_info(
    struct slice input, struct role_info *out_info);

/* Appends `[0, 2, 0, 2]`. */
void rank_json_write_assignment(const struct rank_assignment *assignment, struct text *out);
__attribute__((warn_unused_result)) enum failure_code rank_json_read_assignment(
    struct slice input, struct rank_assignment *out_assignment);

#endif
