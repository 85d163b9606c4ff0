/* SPDX-License-Identifier: BSD-3-Clause */
/* A storm over a job of nodes that come and go, made from a seed: what the simulations change for
 * what they are about. */
#ifndef MUSTER_TESTS_NODE_STORM_H
#define MUSTER_TESTS_NODE_STORM_H

#include "whole_cluster.h"

/* At a server without presence. */
struct whole_settings node_storm(uint64_t seed);
/* At a store that a node hosts. */
struct whole_settings node_storm_hosted(uint64_t seed);

#endif
