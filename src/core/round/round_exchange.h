/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of the nodes of one complete round through the store: until each of them can start
 * its workers, and in the exit barrier. The machine decides which store operations to make, and
 * what the answers mean. Keys, values and order are those of torchrun's agents, so that nodes of
 * both kinds can be in one round; see RendezvousStoreInfo in
 * torch/distributed/elastic/rendezvous/api.py, next_rendezvous in
 * …/rendezvous/dynamic_rendezvous.py, and SimpleElasticAgent's _assign_worker_ranks and
 * _exit_barrier in …/elastic/agent/server/api.py. core/rendezvous_machine has decided before which
 * nodes are in the round. wire/round_exchange_store spells the operations.
 *
 * When all nodes are Muster's: rank 0 opens a new store for the workers and publishes its address.
 * Each node writes its role info. Rank 0 waits for all role infos and writes the ranks of all
 * nodes. The other nodes wait for the address and their ranks in one request. Each node makes two
 * round trips (WAIT, MULTI_GET). From the role info of the last node to its JOINED there are four
 * one-way messages and two round trips. A round of one node makes no round trip.
 *
 * Where the host of the store tells each node its ranks (core/rendezvous/rendezvous_serving), it
 * tells the address that rank 0 has opened as well, and no node waits for the role infos of the
 * others. If nodes of the round may still end their old workers, it holds the round: it tells both
 * when all are ready.
 *
 * When torchrun's nodes take part, all rounds must have the same address, because these nodes cache
 * it; and the address must be published again in each round for nodes that are new. One that comes
 * late may miss a round, so rank 0 keeps its address in a round without them, too. A node of
 * torchrun publishes only in the first round in which it is rank 0. With any other rank it reads
 * the address only in the first round in which it takes part.
 *
 * When rank 0 is torchrun's: if it publishes in this round, it publishes before it writes its role
 * info. So Muster's nodes wait for that role info. If there is no address then, they look in
 * earlier rounds for the address that this node has published, and write it again. All of them may
 * write it, since all write the same address. New nodes of torchrun find it too; without it they
 * would wait a minute and fail. (Muster's nodes write it by SET: PyTorch's server wakes no client
 * that waits for a key which a COMPARE_SET creates.)
 *
 * When rank 0 is Muster's: it looks for the newest address of earlier rounds. The owner of an
 * address is the node whose store it is. If the owner is not in this round, rank 0 opens its own
 * store. If the owner is Muster's, rank 0 names it PUBLISHER of this round; the owner wipes its
 * store, which keeps its port, and publishes the address, whatever its rank. If the owner is
 * torchrun's and uses its cached address, it writes its role info before any node has published,
 * and rank 0 publishes that address again. If no role info comes for ROUND_EXCHANGE_GRACE_SECONDS,
 * the owner shares no store and waits for an address, so rank 0 opens its own store.
 *
 * Muster cannot mend what torchrun breaks without it. A node of torchrun whose cached address
 * differs from the address of the round has a world of its own. This happens when (a) a node of
 * torchrun becomes rank 0 for the first time while another node of torchrun has cached an address
 * before, or (b) the owner of the address is gone and a node of torchrun stays. With
 * TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in torchrun's environment its nodes cache nothing, and all
 * these cases work. (Where ranks are not exchanged there is no role info to wait for. Muster then
 * assumes that torchrun's node shares its store.)
 *
 * The ranks and the store of fixed nodes are known beforehand. They have one round for the whole
 * run, and no record. Each node claims its rank (core/round/round_step), counts itself in `init/`
 * and writes its role info, and every node but rank 0 waits only for its ranks. BEGIN comes again
 * for every attempt. When all nodes are Muster's, they also coordinate: a restart on one node
 * restarts all nodes. See core/round/round_step, docs/static-rendezvous.md, and
 * torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py.
 *
 * The contract with the performer:
 * - The performer has two connections. One is for operations that the store answers at once; they
 *   are carried out in the order of the effects. The other one is for WAITs, of which at most one
 *   is under way. CANCEL_WAIT cancels it: it is not answered any more, and another WAIT may follow
 *   in the same step.
 * - Every answer carries the round of its effect. The machine ignores answers of other rounds than
 *   the present one.
 * - A node that loses a connection is no longer in the round: it gets ABANDON. A fixed node gets
 *   CONNECTION_LOST instead.
 * - The performer answers OPEN_WORKER_STORE by STORE_OPENED or STORE_FAILED. For fixed nodes it
 *   deletes every key of the store but the agents'.
 * - The agent should not end before the store has answered every DECIDE, because the other nodes
 *   learn of its end only from these.
 * - The machine has one timer. ARM_TIMER replaces it.
 *
 * One machine serves all rounds of a run. A round that was abandoned does not begin again. */
#ifndef MUSTER_CORE_ROUND_ROUND_EXCHANGE_H
#define MUSTER_CORE_ROUND_ROUND_EXCHANGE_H

#include "base/text.h"
#include "core/round/round_key.h"
#include "core/round/round_step.h"

/* What the host of the store may know of this node to tell it its ranks. The role is NULL where a
 * node needs no ranks from others, or the exchange for something else. */
struct node_role round_settings_role(const struct round_settings *settings);

struct round_exchange;

/* The caller frees the machine with round_exchange_free, which accepts NULL. */
struct round_exchange *round_exchange_new(const struct round_settings *settings);
void round_exchange_free(struct round_exchange *exchange);

/* Takes one event. It empties `effects` first, and then fills it with what the performer is to do,
 * in order. */
void round_exchange_step(struct round_exchange *exchange, const struct round_event *event,
    struct round_effects *effects);

/* One line for each event and each effect of the round exchange, as core/agent_machine has them
 * for the agent. */

/* Appends one line without a newline, for example "publish 3/publication node0:29400 of
 * node0_7_1073741824". */
void round_event_describe(const struct round_event *event, struct text *out);
void round_effect_describe(const struct round_effect *effect, struct text *out);

#endif
