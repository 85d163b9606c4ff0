/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of seeded jobs of whole nodes that come and go. What must hold at every moment, and
 * that a job gets together and ends when it is left in peace, is checked by the cluster; here is
 * what becomes of jobs of one kind. */
#include "node_storm.h"
#include "whole_seeds.h"

static void a_storm_over_a_job_whose_host_sees_who_goes(void **state) {
    (void)state;
    whole_play_share(node_storm_hosted, 2000, NULL);
}

static void a_storm_over_a_job_with_heartbeats_only(void **state) {
    (void)state;
    whole_play_share(node_storm, 800, NULL);
}

/* Nobody waits for somebody's next poll: with messages that take 40 ms at most, all is known within
 * a few of them. */
static struct whole_settings failing_and_dying(uint64_t seed) {
    struct whole_settings settings = node_storm_hosted(seed);
    settings.fault_count = 30;
    settings.weather = (struct whole_weather){
        .faults = {
            .worker_fails = 30, .agent_is_killed = 10, .is_signalled = 10, .another_comes = 20}};
    return settings;
}

static const char *check_promptness(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->longest_restart > 0.5 ? "a failure has long been without consequences"
           : outcome->longest_loss > 0.5  ? "a death has long been without consequences"
           : outcome->longest_news > 0.5  ? "somebody was told late that its round is over"
                                          : NULL;
}

static void failures_and_deaths_are_known_everywhere_at_once(void **state) {
    (void)state;
    whole_play_share(failing_and_dying, 400, check_promptness);
}

/* What a lost node leaves behind. With heartbeats only, nobody who saw a restart charged may be
 * left when the loss is known. */
static struct whole_settings leaving_failures_behind(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.losses_spread = true;
    settings.max_restarts = seed % 3 == 0 ? 0 : 1000;
    settings.is_hosted = settings.max_restarts > 0 || seed % 4 != 0;
    settings.finishes_in_storm = false;
    settings.weather = (struct whole_weather){.faults = {.agent_is_killed = 20,
                                                  .machine_goes_off = 20,
                                                  .is_signalled = 10,
                                                  .another_comes = 20}};
    return settings;
}

static const char *check_nothing_was_charged(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->restarts > 0 ? "what a lost node left behind was charged" : NULL;
}

static void what_a_lost_node_leaves_behind_costs_nothing(void **state) {
    (void)state;
    whole_play_share(leaving_failures_behind, 500, check_nothing_was_charged);
}

static struct whole_settings giving_up(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 4 != 0;
    settings.max_restarts = (int)(seed % 2);
    settings.weather = (struct whole_weather){.faults = {.worker_fails = 1}};
    return settings;
}

static const char *check_the_doubt_was_short(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->longest_doubt > 0.5 ? "a failure was doubted though everybody was there" : NULL;
}

static void a_last_failure_stands_soon_when_everybody_is_there(void **state) {
    (void)state;
    whole_play_share(giving_up, 300, check_the_doubt_was_short);
}

static struct whole_settings falling_silent(uint64_t seed) {
    struct whole_settings settings = failing_and_dying(seed);
    settings.weather.faults.machine_goes_off = 30;
    return settings;
}

static const char *check_silence(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->longest_loss > 5 ? "a silent machine was in the record for long" : NULL;
}

static void silent_machines_are_out_soon_after_the_silence_timeout(void **state) {
    (void)state;
    whole_play_share(falling_silent, 300, check_silence);
}

/* Nobody is lost here: where all are gone who have seen the record, nobody can write it again. */
static struct whole_settings forgetting(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.weather.faults = (struct whole_faults){.worker_fails = 30,
        .agent_is_stopped = 12,
        .link_breaks = 12,
        .connection_resets = 5,
        .reads_slowly = 5,
        .another_comes = 15,
        .clock_jumps = 10,
        .record_is_lost = 25,
        .store_begins_anew = 25};
    return settings;
}

static void a_storm_over_a_job_whose_store_forgets(void **state) {
    (void)state;
    whole_play_share(forgetting, 600, NULL);
}

/* Bad networks: nobody who is there gives up, and everybody gets together again. */

static const char *check_nobody_gave_up(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    for (int i = 0; i < outcome->node_count; i++) {
        const struct whole_ending *ending = &outcome->endings[i];
        if (!ending->was_killed && ending->user_signals == 0 && ending->status != 0) {
            return "somebody gave up for good because of the network";
        }
    }
    return NULL;
}

/* Links lose up to half of the packets for up to 20 s, are cut in one direction or both, and
 * connections are reset. */
static struct whole_settings losing_packets(uint64_t seed) {
    struct whole_settings settings = node_storm_hosted(seed);
    settings.nodes = 2 + (int)(seed % 8);
    settings.rendezvous.minimum_nodes = 1;
    settings.rendezvous.maximum_nodes = settings.nodes;
    settings.finishes_in_storm = false;
    settings.weather = (struct whole_weather){
        .faults = {.link_loses = 20, .link_breaks = 3, .connection_resets = 3, .reads_slowly = 1}};
    return settings;
}

static void nobody_gives_up_because_of_a_bad_network(void **state) {
    (void)state;
    whole_play_share(losing_packets, 600, check_nobody_gave_up);
}

/* All links lose so much at the same time, from the start on; then they are clean. */
static struct whole_settings losing_everywhere(uint64_t seed) {
    struct whole_settings settings = losing_packets(seed);
    settings.storm_seconds = 15;
    settings.fault_count = 0;
    settings.weather = (struct whole_weather){.loss = 50 * (1 + (int)(seed % 10))};
    return settings;
}

static void nobody_gives_up_though_every_link_is_bad(void **state) {
    (void)state;
    whole_play_share(losing_everywhere, 200, check_nobody_gave_up);
}

/* Policies. */

static struct whole_settings waiting_for_replacements(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    return settings;
}

static void a_storm_over_a_job_that_waits_for_replacements(void **state) {
    (void)state;
    whole_play_share(waiting_for_replacements, 400, NULL);
}

static struct whole_settings heeding_failures_only(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    return settings;
}

static void a_storm_over_a_job_that_heeds_only_failures(void **state) {
    (void)state;
    whole_play_share(heeding_failures_only, 300, NULL);
}

static struct whole_settings never_growing(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.rendezvous.scale_up = RENDEZVOUS_SCALE_UP_NEVER;
    return settings;
}

static void a_storm_over_a_job_that_never_grows(void **state) {
    (void)state;
    whole_play_share(never_growing, 300, NULL);
}

static struct whole_settings growing_slowly(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.rendezvous.scale_up_interval = duration_from_seconds(20);
    return settings;
}

static void a_storm_over_a_job_that_grows_slowly(void **state) {
    (void)state;
    whole_play_share(growing_slowly, 300, NULL);
}

/* Beside torchrun's nodes. */

static const struct whole_faults rough_for_torchrun = {
    .worker_fails = 30,
    .agent_is_killed = 10,
    .machine_goes_off = 5,
    .agent_is_stopped = 8,
    .link_breaks = 8,
    .is_signalled = 5,
    .another_comes = 12,
};

static struct whole_settings mixed(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.torch_nodes = 1 + (int)(seed / 2 % 3);
    settings.nodes += settings.torch_nodes;
    settings.fault_count /= 2;
    settings.finishes_in_storm = false;
    settings.weather = (struct whole_weather){.faults = rough_for_torchrun};
    return settings;
}

static void a_storm_over_a_job_with_torchruns_nodes_in_it(void **state) {
    (void)state;
    whole_play_share(mixed, 600, NULL);
}

/* torchrun's nodes are silent in their exit barrier. Others of their kind take them for dead there,
 * so there is only one. */
static struct whole_settings finishing_slowly(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.torch_nodes = 1;
    settings.rendezvous.minimum_nodes = 2;
    settings.rendezvous.maximum_nodes = settings.nodes;
    settings.fault_count = 0;
    settings.finishes_in_storm = false;
    settings.finish_seconds = 50;
    return settings;
}

static void a_silent_node_in_the_exit_barrier_is_waited_for(void **state) {
    (void)state;
    whole_play_share(finishing_slowly, 150, NULL);
}

/* What must not happen at all. */

static struct whole_settings jumping_clocks(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.rendezvous.minimum_nodes = settings.nodes;
    settings.rendezvous.maximum_nodes = settings.nodes;
    settings.finishes_in_storm = false;
    settings.fault_count = 40;
    settings.storm_seconds = 100;
    settings.weather = (struct whole_weather){.faults = {.clock_jumps = 1}};
    return settings;
}

static const char *check_nobody_was_evicted(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->rounds == 0 && outcome->worlds == 1 ? NULL : "somebody was evicted";
}

static void wall_clocks_that_jump_evict_nobody(void **state) {
    (void)state;
    whole_play_share(jumping_clocks, 150, check_nobody_was_evicted);
}

static struct whole_settings too_many(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 2 == 0;
    settings.nodes = settings.rendezvous.maximum_nodes + 1 + (int)(seed % 4);
    settings.finishes_in_storm = false;
    settings.fault_count = 0;
    settings.storm_seconds = 100; /* longer than anybody would wait to join */
    settings.weather = (struct whole_weather){0};
    settings.demands.success_everywhere = true;
    return settings;
}

static const char *check_the_others_were_spares(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    int spares = 0;
    for (int i = 0; i < outcome->node_count; i++) {
        spares += outcome->endings[i].starts == 0 ? 1 : 0;
    }
    return spares == settings->nodes - settings->rendezvous.maximum_nodes
               ? NULL
               : "not all nodes beyond the maximum left as spares";
}

static void nodes_beyond_the_maximum_wait_and_leave_with_the_job(void **state) {
    (void)state;
    whole_play_share(too_many, 200, check_the_others_were_spares);
}

static struct whole_settings dying_host(uint64_t seed) {
    struct whole_settings settings = node_storm_hosted(seed);
    settings.host_dies = true;
    settings.host_falls_silent = seed % 3 == 0;
    settings.finishes_in_storm = false;
    settings.weather.faults.worker_hangs = 0;
    settings.weather.faults.agent_is_stopped = 0;
    settings.weather.faults.link_breaks = 0;
    if (settings.host_falls_silent && seed % 2 == 1) {
        settings.weather.faults.connection_resets = 0;
    }
    return settings;
}

/* A dead agent's machine refuses connections, and is believed after 5 s. A machine that is silent
 * is missed after the silence timeout, and waited for until the host timeout. A node that was
 * already looking for it, after a reset, and has heard it on a new connection, waits once more as
 * long. Workers may have to be killed meanwhile. */
static const char *check_the_end(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    double silent = settings->weather.faults.connection_resets > 0 ? 71 : 41;
    double longest = settings->host_falls_silent ? silent : 16;
    return outcome->longest_end < longest ? NULL : "somebody waited long for a dead host";
}

static void everybody_ends_soon_after_the_host(void **state) {
    (void)state;
    whole_play_share(dying_host, 300, check_the_end);
}

/* Size. */

static struct whole_settings fifty_nodes(uint64_t seed) {
    struct whole_settings settings = node_storm(seed);
    settings.is_hosted = seed % 4 != 0;
    settings.nodes = 50;
    settings.rendezvous.minimum_nodes = 20;
    settings.rendezvous.maximum_nodes = 44 + (int)(seed % 7);
    settings.fault_count = 40;
    return settings;
}

static void a_storm_over_fifty_nodes(void **state) {
    (void)state;
    whole_play_seeds(fifty_nodes, 8, NULL);
}

static struct whole_settings starting_together(uint64_t seed, int nodes) {
    struct whole_settings settings = node_storm_hosted(seed);
    settings.nodes = nodes;
    settings.workers = 1;
    settings.rendezvous.minimum_nodes = nodes;
    settings.rendezvous.maximum_nodes = nodes;
    settings.start_spread = 0;
    settings.fault_count = 0;
    settings.storm_seconds = 0.2;
    settings.finishes_in_storm = false;
    settings.weather = (struct whole_weather){0};
    settings.demands.success_everywhere = true;
    return settings;
}

static struct whole_settings sixty_four(uint64_t seed) {
    return starting_together(seed, 64);
}

static const char *check_the_start(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->first_world > 1 ? "the first world was long in coming" : NULL;
}

static void sixty_four_nodes_that_start_together_are_a_world_in_a_second(void **state) {
    (void)state;
    whole_play_seeds(sixty_four, 4, check_the_start);
}

static struct whole_settings six_hundred_delegating(uint64_t seed) {
    struct whole_settings settings = starting_together(seed, 600);
    settings.rendezvous.delegates = true;
    return settings;
}

static void six_hundred_nodes_that_delegate_are_a_world_in_a_second(void **state) {
    (void)state;
    whole_play_seeds(six_hundred_delegating, 1, check_the_start);
}

/* Instrumented code would take minutes for so many. */
static struct whole_settings a_thousand(uint64_t seed) {
    int nodes = whole_is_played_whole() ? 1000 : 300;
    struct whole_settings settings = starting_together(seed, nodes);
    settings.start_spread = 10;
    settings.comes_evenly = true;
    settings.rendezvous.minimum_nodes = nodes - 10;
    settings.rendezvous.last_call_timeout = duration_from_seconds(5);
    settings.fault_count = 4;
    settings.storm_seconds = 30;
    settings.weather.faults =
        (struct whole_faults){.worker_fails = 1, .agent_is_killed = 1, .machine_goes_off = 1};
    settings.demands.success_everywhere = false;
    return settings;
}

static void a_storm_over_a_thousand_nodes(void **state) {
    (void)state;
    whole_play_seeds(a_thousand, 1, NULL);
}

static void a_seed_is_played_the_same_again(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct whole_settings settings = mixed(seed);
        struct whole_outcome first = whole_cluster_play(&settings);
        struct whole_outcome second = whole_cluster_play(&settings);
        assert_true(first.events == second.events && first.seconds == second.seconds);
        whole_outcome_clear(&first);
        whole_outcome_clear(&second);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_seed_is_played_the_same_again),
    cmocka_unit_test(a_storm_over_a_job_whose_host_sees_who_goes),
    cmocka_unit_test(a_storm_over_a_job_with_heartbeats_only),
    cmocka_unit_test(failures_and_deaths_are_known_everywhere_at_once),
    cmocka_unit_test(what_a_lost_node_leaves_behind_costs_nothing),
    cmocka_unit_test(a_last_failure_stands_soon_when_everybody_is_there),
    cmocka_unit_test(a_storm_over_a_job_whose_store_forgets),
    cmocka_unit_test(silent_machines_are_out_soon_after_the_silence_timeout),
    cmocka_unit_test(nobody_gives_up_because_of_a_bad_network),
    cmocka_unit_test(nobody_gives_up_though_every_link_is_bad),
    cmocka_unit_test(a_storm_over_a_job_that_waits_for_replacements),
    cmocka_unit_test(a_storm_over_a_job_that_heeds_only_failures),
    cmocka_unit_test(a_storm_over_a_job_that_never_grows),
    cmocka_unit_test(a_storm_over_a_job_that_grows_slowly),
    cmocka_unit_test(a_storm_over_a_job_with_torchruns_nodes_in_it),
    cmocka_unit_test(a_silent_node_in_the_exit_barrier_is_waited_for),
    cmocka_unit_test(wall_clocks_that_jump_evict_nobody),
    cmocka_unit_test(nodes_beyond_the_maximum_wait_and_leave_with_the_job),
    cmocka_unit_test(everybody_ends_soon_after_the_host),
    cmocka_unit_test(a_storm_over_fifty_nodes),
    cmocka_unit_test(sixty_four_nodes_that_start_together_are_a_world_in_a_second),
    cmocka_unit_test(six_hundred_nodes_that_delegate_are_a_world_in_a_second),
    cmocka_unit_test(a_storm_over_a_thousand_nodes),
};

int main(int argument_count, char **arguments) {
    whole_take_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
