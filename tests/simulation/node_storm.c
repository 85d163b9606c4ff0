/* SPDX-License-Identifier: BSD-3-Clause */
#include "node_storm.h"

static const struct whole_faults rough = {
    .worker_fails = 30,
    .agent_is_killed = 15,
    .machine_goes_off = 8,
    .agent_is_stopped = 12,
    .link_breaks = 12,
    .connection_resets = 5,
    .reads_slowly = 5,
    .is_signalled = 8,
    .another_comes = 15,
    .one_flaps = 2,
    .clock_jumps = 10,
    .worker_hangs = 1,
};

struct whole_settings node_storm(uint64_t seed) {
    struct whole_settings settings = {
        .seed = seed,
        .kind = MEMBERSHIP_CHANGING,
        .nodes = 2 + (int)(seed % 6),
        .max_restarts = 1000,
        .shutdown_timeout = 5,
        .start_spread = 15,
        .is_storm = true,
        .fault_count = 4 + (int)(seed % 17),
        .storm_seconds = 30,
        .gather_seconds = 150,
        .finish_seconds = 1,
        .finishes_in_storm = seed % 10 == 9,
        .weather = {.faults = rough,
            .worker_is_stubborn = 3,
            .leaves_orphan = 3,
            .announces_end = 30,
            .message_is_lost = seed % 3 == 0 ? 1 : 0},
        .transcript_of = -1,
    };
    rendezvous_settings_init(&settings.rendezvous);
    settings.rendezvous.minimum_nodes = 1 + (int)(seed / 6 % 3);
    int most = settings.rendezvous.minimum_nodes + (int)(seed / 18 % 5);
    settings.rendezvous.maximum_nodes = most < 2 ? 2 : most;
    settings.rendezvous.join_timeout = duration_from_seconds(60);
    settings.rendezvous.exit_barrier_timeout = duration_from_seconds(60);
    settings.rendezvous.delegates = seed / 4 % 2 == 1;
    settings.rendezvous.last_call_timeout = duration_from_seconds(seed % 2 == 0 ? 1 : 3);
    return settings;
}

struct whole_settings node_storm_hosted(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = true;
    return settings;
}
