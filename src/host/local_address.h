/* SPDX-License-Identifier: BSD-3-Clause */
/* How this machine is called and reached. Asks the system's resolver directly (no thread is
 * started), which may wait for a name server: once, before the first workers start. The choice
 * between the answers is core/address_choice's. */
#ifndef MUSTER_HOST_LOCAL_ADDRESS_H
#define MUSTER_HOST_LOCAL_ADDRESS_H

#include "base/failure.h"
#include "base/text.h"

/* gethostname(). The caller frees the result. */
__attribute__((warn_unused_result)) enum failure_code local_address_host_name(
    char **out_name, struct failure *failure);

/* Python's socket.getfqdn(): what torchrun calls this node. Never fails on a resolver's failure;
 * then it is the host name. The caller frees the result. */
__attribute__((warn_unused_result)) enum failure_code local_address_qualified_name(
    char **out_name, struct failure *failure);

/* MASTER_ADDR of a job on this node alone: a name that this machine's own processes reach it by;
 * see address_choice_for_one_node. The caller frees the result. */
__attribute__((warn_unused_result)) enum failure_code local_address_for_one_node(
    char **out_name, struct failure *failure);

/* MASTER_ADDR of a job of several nodes; see address_choice_for_many_nodes. The caller frees the
 * result. */
__attribute__((warn_unused_result)) enum failure_code local_address_for_many_nodes(
    char **out_name, struct failure *failure);

#endif
