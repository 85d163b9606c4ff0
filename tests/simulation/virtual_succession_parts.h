/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of virtual_succession share: time, connections and stores (virtual_succession.c),
 * and what becomes of events and of nodes (virtual_succession_life.c). */
#ifndef MUSTER_TESTS_VIRTUAL_SUCCESSION_PARTS_H
#define MUSTER_TESTS_VIRTUAL_SUCCESSION_PARTS_H

#include "virtual_succession.h"

#define SIM_SILENCE_SECONDS 3.0
#define SIM_FENCE_SECONDS 5.0
/* For so long an answer of a stale register may leave out an entry; and so late a fence may come.
 */
#define SIM_STALE_SECONDS 5.0

struct instant simulation_later(const struct simulation *simulation, double seconds);
double simulation_between(struct simulation *simulation, double low, double high);
struct sim_event *simulation_add(
    struct simulation *simulation, enum sim_kind kind, int node, struct instant at);
bool simulation_is_cut(const struct simulation *simulation, int one, int other);
/* The node learns after the delay that its connection has ended. */
void simulation_lose(
    struct simulation *simulation, int node, enum succession_loss loss, double delay);
void simulation_regroup_soon(struct simulation *simulation, int host, double delay);
/* The node's part is over; its store is handed over. */
void simulation_dismiss(struct simulation *simulation, int host, bool has_successor);
void simulation_tell(
    struct simulation *simulation, int host, int node, enum succession_event_kind told);
void simulation_take_told(struct simulation *simulation, const struct sim_event *event);
void simulation_take_gone(struct simulation *simulation, const struct sim_event *event);
/* Of those who watch the register, some are told of the last entry. */
void simulation_tell_news(struct simulation *simulation);
void simulation_leave_store(struct simulation *simulation, int node);
void simulation_end_store(struct simulation *simulation, int host, enum succession_loss loss);
/* Those who are connected see the record of the host's store. */
void simulation_show(struct simulation *simulation, int host);
/* The machine takes an event, and its effects are performed. */
void simulation_step(struct simulation *simulation, int node, struct succession_event event);

/* Complains of workers that run on beside others, or without a sign of life, for too long. */
void simulation_check_fences(struct simulation *simulation);

#endif
