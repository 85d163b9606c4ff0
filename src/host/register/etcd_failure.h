/* SPDX-License-Identifier: BSD-3-Clause */
/* What a refusal of an etcd member, or its silence, means for who asks: whether asking on is of
 * use, and what the user can do about it. */
#ifndef MUSTER_HOST_REGISTER_ETCD_FAILURE_H
#define MUSTER_HOST_REGISTER_ETCD_FAILURE_H

#include <stdbool.h>

#include "host/register/grpc_client.h"

/* Whether it will be the same at every member, until the user has done something. */
bool etcd_failure_is_final(const struct grpc_result *result);
/* What the user can do about the member's words, to be appended to them; or "". etcd has one status
 * for several mistakes. */
const char *etcd_failure_advice(const struct grpc_result *result);

#endif
