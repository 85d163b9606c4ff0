/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to the jobs of succession_simulation, and what is complained of. Each story plays
 * one job, whose chances come from its seed. */
#ifndef MUSTER_TESTS_SUCCESSION_STORIES_H
#define MUSTER_TESTS_SUCCESSION_STORIES_H

#include "virtual_succession.h"

extern uint64_t story_host_count; /* that are killed, or leave, in one job */

void story_storm(struct simulation *simulation);
void story_storm_of_leavers(struct simulation *simulation);
void story_hosts_killed(struct simulation *simulation);
void story_hosts_leave(struct simulation *simulation);
void story_named_dies(struct simulation *simulation);
void story_successor_dies(struct simulation *simulation);
void story_host_stands_still(struct simulation *simulation);
void story_machines_vanish(struct simulation *simulation);
void story_lonely_node(struct simulation *simulation);
void story_outnumbered_host(struct simulation *simulation);
void story_job_is_over(struct simulation *simulation);
void story_idle_job(struct simulation *simulation);
void story_register_away(struct simulation *simulation);

#endif
