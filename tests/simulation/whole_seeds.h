/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs made from seeds, thousands of each kind, for programs of tests. Their arguments are how many
 * seeds are played in all (10,000 without it), which tests, by a name pattern, and with which seed
 * each begins:
 *
 *     node_simulation 50000 'a_storm_*'
 *     node_simulation 50000 'a_storm_*' 1000000
 *     SIMULATION_SEED=17 node_simulation 1 'a_storm_over_fifty_nodes'
 *
 * The last plays that one seed, with its transcript. A seed that fails is played again with its
 * transcript. */
#ifndef MUSTER_TESTS_WHOLE_SEEDS_H
#define MUSTER_TESTS_WHOLE_SEEDS_H

#include "unit.h"

#include "whole_cluster.h"

typedef struct whole_settings whole_job_maker(uint64_t seed);
/* What is wrong with the outcome, or NULL. */
typedef const char *whole_checker(
    const struct whole_settings *settings, const struct whole_outcome *outcome);

/* `share` in 10,000 of all seeds. Fails the test when something is wrong. */
void whole_play_share(whole_job_maker *job, uint64_t share, whole_checker *check_or_null);
/* So many, whatever is asked for. */
void whole_play_seeds(whole_job_maker *job, uint64_t seeds, whole_checker *check_or_null);

/* Before the tests are run. */
void whole_take_arguments(int argument_count, char **arguments);

/* False where the arguments ask for fewer seeds than usual, because the code is instrumented. */
bool whole_is_played_whole(void);

#endif
