/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/launch/rendezvous_settings.h"

#define SECOND INT64_C(1000000000)
/* Of all nodes that delegate. */
#define BEATS_A_SECOND 32

/* The part of the time until a node is taken for lost in which workers are ended; at most … */
#define ENDING_PART 20
#define ENDING_MAXIMUM SECOND

void rendezvous_settings_init(struct rendezvous_settings *settings) {
    *settings = (struct rendezvous_settings){
        .minimum_nodes = 1,
        .maximum_nodes = 1,
        .join_timeout = {600 * SECOND},
        .last_call_timeout = {30 * SECOND},
        .close_timeout = {30 * SECOND},
        .heartbeat_timeout = {5 * SECOND},
        .keep_alive_interval = {5 * SECOND},
        .keep_alive_max_attempt = 3,
        .silence_timeout = {3 * SECOND},
        .calm_after = {600 * SECOND},
        .host_timeout = {30 * SECOND},
        .fence_timeout = {5 * SECOND},
        .exit_barrier_timeout = {300 * SECOND},
        .on_node_loss = RENDEZVOUS_ON_NODE_LOSS_RESTART,
        .scale_up = RENDEZVOUS_SCALE_UP_ALLOWED,
        .scale_up_interval = {0},
    };
}

bool rendezvous_settings_heed_losses(const struct rendezvous_settings *settings) {
    return settings->on_node_loss != RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
}

struct duration rendezvous_settings_beat(const struct rendezvous_settings *settings) {
    int64_t interval = settings->keep_alive_interval.nanoseconds;
    int64_t shared = settings->maximum_nodes * (SECOND / BEATS_A_SECOND);
    return (struct duration){settings->delegates && shared > interval ? shared : interval};
}

struct duration rendezvous_settings_standstill(const struct rendezvous_settings *settings) {
    int64_t interval = settings->keep_alive_interval.nanoseconds;
    int64_t until_lost = interval * settings->keep_alive_max_attempt;
    int64_t ending = until_lost / ENDING_PART;
    int64_t left = until_lost - interval - (ending < ENDING_MAXIMUM ? ending : ENDING_MAXIMUM);
    return (struct duration){left > 0 ? left : 0};
}
