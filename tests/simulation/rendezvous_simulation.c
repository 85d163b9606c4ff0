/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of seeded jobs whose nodes come and go. What must hold at every moment, and that a job
 * gets together and ends when it is left in peace, is checked by the cluster.
 *
 * A seed that fails is played again with its transcript. By hand:
 *     SIMULATION_SEED=17 rendezvous_simulation 'a_storm_*'     that seed, with its transcript
 *     SIMULATION_SEEDS=20000 rendezvous_simulation             so many seeds of each kind */
#include "unit.h"

#include <stdio.h>

#include "base/memory.h"
#include "rendezvous_cluster.h"

/* What is wrong with the outcome, or NULL. */
typedef const char *checker(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome);

static const struct rendezvous_weather rough = {
    .worker_fails = 30,
    .is_killed = 15,
    .is_powered_off = 8,
    .is_stalled = 12,
    .link_breaks = 12,
    .leaves = 8,
    .another_comes = 15,
    .one_flaps = 2,
    .clock_jumps = 10,
    .job_gives_up = 1,
};

static struct rendezvous_cluster_settings small_job(uint64_t seed) {
    struct rendezvous_cluster_settings settings = {
        .seed = seed,
        .nodes = 2 + (int)(seed % 6),
        .faults = 4 + (int)(seed % 17),
        .storm_seconds = 40,
        .gather_seconds = 150,
        .finish_seconds = 1,
        .lost_changes = seed % 3 == 0 ? 5 : 0,
        .finishes_in_storm = seed % 10 == 9,
        .weather = rough,
    };
    rendezvous_settings_init(&settings.rendezvous);
    settings.rendezvous.minimum_nodes = 1 + (int)(seed / 6 % 3);
    settings.rendezvous.maximum_nodes = settings.rendezvous.minimum_nodes + (int)(seed / 18 % 5);
    settings.rendezvous.join_timeout = duration_from_seconds(60);
    settings.rendezvous.exit_barrier_timeout = duration_from_seconds(60);
    settings.rendezvous.last_call_timeout = duration_from_seconds(seed % 2 == 0 ? 1 : 3);
    return settings;
}

static uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* To be freed; NULL: all went as it should. */
static char *complaint_about(const struct rendezvous_cluster_settings *settings, checker *check) {
    struct rendezvous_cluster_outcome outcome = rendezvous_cluster_play(settings);
    if (outcome.complaint == NULL && check != NULL) {
        outcome.complaint = memory_duplicate_string(check(settings, &outcome));
    }
    return outcome.complaint;
}

static void play_one(struct rendezvous_cluster_settings settings, checker *check) {
    char *complaint = complaint_about(&settings, check);
    if (complaint == NULL) {
        return;
    }
    if (!settings.is_printed) {
        free(complaint);
        settings.is_printed = true;
        complaint = complaint_about(&settings, check);
    }
    fflush(stdout);
    print_error("seed %llu, %s\n", (unsigned long long)settings.seed, complaint);
    free(complaint);
    fail();
}

static void play(
    struct rendezvous_cluster_settings (*job)(uint64_t seed), uint64_t seeds, checker *check) {
    uint64_t first = number_of("SIMULATION_SEED", UINT64_MAX);
    if (first != UINT64_MAX) {
        struct rendezvous_cluster_settings settings = job(first);
        settings.is_printed = true;
        play_one(settings, check);
        return;
    }
    seeds = number_of("SIMULATION_SEEDS", seeds);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        play_one(job(seed), check);
    }
}

static struct rendezvous_cluster_settings with_presence(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = true;
    return settings;
}

static void a_storm_over_a_job_whose_host_sees_who_goes(void **state) {
    (void)state;
    play(with_presence, 1500, NULL);
}

static void a_storm_over_a_job_with_heartbeats_only(void **state) {
    (void)state;
    play(small_job, 1000, NULL);
}

/* Nobody waits for somebody's next poll: with messages that take 40 ms at most, all is known within
 * a few of them. */
static struct rendezvous_cluster_settings failing_and_dying(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = true;
    settings.lost_changes = 0;
    settings.faults = 30;
    settings.weather = (struct rendezvous_weather){
        .worker_fails = 30, .is_killed = 10, .leaves = 10, .another_comes = 20};
    return settings;
}

static const char *check_promptness(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    (void)settings;
    return outcome->longest_restart > 0.5 ? "a failure has long been without consequences"
           : outcome->longest_loss > 0.5  ? "a death has long been without consequences"
           : outcome->longest_news > 0.5  ? "somebody was told late that its round is over"
                                          : NULL;
}

static void failures_and_deaths_are_known_everywhere_at_once(void **state) {
    (void)state;
    play(failing_and_dying, 500, check_promptness);
}

/* What a lost node leaves behind. With heartbeats only, nobody who saw a restart charged may be
 * left when the loss is known. */
static struct rendezvous_cluster_settings leaving_failures_behind(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.lost_changes = 0;
    settings.losses_spread = true;
    settings.has_no_restarts = seed % 3 == 0;
    settings.has_presence = !settings.has_no_restarts || seed % 4 != 0;
    settings.finishes_in_storm = false;
    settings.weather = (struct rendezvous_weather){
        .is_killed = 20, .is_powered_off = 20, .leaves = 10, .another_comes = 20};
    return settings;
}

static const char *check_nothing_was_charged(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    (void)settings;
    return outcome->restarts > 0 ? "what a lost node left behind was charged" : NULL;
}

static void what_a_lost_node_leaves_behind_costs_nothing(void **state) {
    (void)state;
    play(leaving_failures_behind, 500, check_nothing_was_charged);
}

static struct rendezvous_cluster_settings giving_up(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 4 != 0;
    settings.lost_changes = 0;
    settings.weather = (struct rendezvous_weather){.job_gives_up = 1};
    return settings;
}

static const char *check_the_doubt_was_short(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    (void)settings;
    return outcome->longest_doubt > 0.5 ? "a failure was doubted though everybody was there" : NULL;
}

static void a_last_failure_stands_soon_when_everybody_is_there(void **state) {
    (void)state;
    play(giving_up, 300, check_the_doubt_was_short);
}

static struct rendezvous_cluster_settings falling_silent(uint64_t seed) {
    struct rendezvous_cluster_settings settings = failing_and_dying(seed);
    settings.weather.is_powered_off = 30;
    return settings;
}

static const char *check_silence(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    (void)settings;
    return outcome->longest_loss > 4.5 ? "a silent host was in the record for long" : NULL;
}

static void silent_hosts_are_out_soon_after_the_silence_timeout(void **state) {
    (void)state;
    play(falling_silent, 300, check_silence);
}

/* Policies. */

static struct rendezvous_cluster_settings waiting_for_replacements(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    return settings;
}

static void a_storm_over_a_job_that_waits_for_replacements(void **state) {
    (void)state;
    play(waiting_for_replacements, 400, NULL);
}

static struct rendezvous_cluster_settings heeding_failures_only(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    return settings;
}

static void a_storm_over_a_job_that_heeds_only_failures(void **state) {
    (void)state;
    play(heeding_failures_only, 400, NULL);
}

static struct rendezvous_cluster_settings never_growing(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.rendezvous.scale_up = RENDEZVOUS_SCALE_UP_NEVER;
    return settings;
}

static void a_storm_over_a_job_that_never_grows(void **state) {
    (void)state;
    play(never_growing, 400, NULL);
}

static struct rendezvous_cluster_settings growing_slowly(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.rendezvous.scale_up_interval = duration_from_seconds(20);
    return settings;
}

static void a_storm_over_a_job_that_grows_slowly(void **state) {
    (void)state;
    play(growing_slowly, 400, NULL);
}

/* Beside torchrun's nodes. */

static const struct rendezvous_weather rough_for_torchrun = {
    .worker_fails = 30,
    .is_killed = 10,
    .is_powered_off = 5,
    .is_stalled = 8,
    .link_breaks = 8,
    .leaves = 5,
    .another_comes = 12,
};

static struct rendezvous_cluster_settings mixed(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.torch_nodes = 1 + (int)(seed / 2 % 3);
    settings.nodes += settings.torch_nodes;
    settings.faults /= 2;
    settings.finishes_in_storm = false;
    settings.weather = rough_for_torchrun;
    return settings;
}

static void a_storm_over_a_job_with_torchruns_nodes_in_it(void **state) {
    (void)state;
    play(mixed, 600, NULL);
}

/* torchrun's nodes are silent in their exit barrier. Others of their kind take them for dead there,
 * so there is only one. */
static struct rendezvous_cluster_settings finishing_slowly(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.torch_nodes = 1;
    settings.rendezvous.minimum_nodes = 2;
    settings.rendezvous.maximum_nodes = settings.nodes;
    settings.faults = 0;
    settings.finishes_in_storm = false;
    settings.finish_seconds = 50;
    return settings;
}

static void a_silent_node_in_the_exit_barrier_is_waited_for(void **state) {
    (void)state;
    play(finishing_slowly, 200, NULL);
}

/* Size. */

static struct rendezvous_cluster_settings fifty_nodes(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 4 != 0;
    settings.nodes = 50;
    settings.rendezvous.minimum_nodes = 20;
    settings.rendezvous.maximum_nodes = 44 + (int)(seed % 7);
    settings.faults = 40;
    return settings;
}

static void a_storm_over_fifty_nodes(void **state) {
    (void)state;
    play(fifty_nodes, 16, NULL);
}

static struct rendezvous_cluster_settings starting_together(uint64_t seed) {
    struct rendezvous_cluster_settings settings = fifty_nodes(seed);
    settings.nodes = 64;
    settings.rendezvous.minimum_nodes = 64;
    settings.rendezvous.maximum_nodes = 64;
    settings.faults = 0;
    settings.storm_seconds = 0.2;
    settings.finishes_in_storm = false;
    return settings;
}

static const char *check_the_start(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    (void)settings;
    return outcome->first_world > 1 ? "the first world was long in coming" : NULL;
}

static void sixty_four_nodes_that_start_together_are_a_world_in_a_second(void **state) {
    (void)state;
    play(starting_together, 10, check_the_start);
}

/* What must not happen at all. */

static struct rendezvous_cluster_settings jumping_clocks(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.rendezvous.minimum_nodes = settings.nodes;
    settings.rendezvous.maximum_nodes = settings.nodes;
    settings.finishes_in_storm = false;
    settings.faults = 40;
    settings.storm_seconds = 100;
    settings.weather = (struct rendezvous_weather){.clock_jumps = 1};
    return settings;
}

static const char *check_nobody_was_evicted(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    bool is_right = outcome->rounds == 0 && outcome->worlds_told == settings->nodes;
    return is_right ? NULL : "somebody was evicted";
}

static void wall_clocks_that_jump_evict_nobody(void **state) {
    (void)state;
    play(jumping_clocks, 200, check_nobody_was_evicted);
}

static struct rendezvous_cluster_settings too_many(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = seed % 2 == 0;
    settings.nodes = settings.rendezvous.maximum_nodes + 1 + (int)(seed % 4);
    settings.finishes_in_storm = false;
    settings.faults = 0;
    settings.storm_seconds = 100; /* longer than anybody would wait to join */
    return settings;
}

static const char *check_the_others_were_spares(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    int spares = settings->nodes - settings->rendezvous.maximum_nodes;
    int newcomer = 1; /* who came when the workers were done, perhaps all */
    bool is_right = outcome->ended_failed == 0 && outcome->ended_as_spares >= spares &&
                    outcome->ended_as_spares <= spares + newcomer;
    return is_right ? NULL : "not all nodes beyond the maximum left as spares";
}

static void nodes_beyond_the_maximum_wait_and_leave_with_the_job(void **state) {
    (void)state;
    play(too_many, 200, check_the_others_were_spares);
}

static struct rendezvous_cluster_settings dying_host(uint64_t seed) {
    struct rendezvous_cluster_settings settings = small_job(seed);
    settings.has_presence = true;
    settings.host_dies = true;
    settings.host_falls_silent = seed % 3 == 0;
    settings.finishes_in_storm = false;
    settings.weather.job_gives_up = 0;
    settings.weather.is_stalled = 0;
    settings.weather.link_breaks = 0;
    return settings;
}

/* Who is dead says so, and is believed after 5 s; for who is silent there is the join timeout. */
static const char *check_the_end(const struct rendezvous_cluster_settings *settings,
    const struct rendezvous_cluster_outcome *outcome) {
    bool is_right = settings->host_falls_silent || outcome->longest_end < 8;
    return is_right ? NULL : "somebody waited long for a dead host";
}

static void everybody_ends_soon_after_the_host(void **state) {
    (void)state;
    play(dying_host, 300, check_the_end);
}

static void a_seed_is_played_the_same_again(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rendezvous_cluster_settings settings = mixed(seed);
        struct rendezvous_cluster_outcome first = rendezvous_cluster_play(&settings);
        struct rendezvous_cluster_outcome second = rendezvous_cluster_play(&settings);
        assert_true(first.events == second.events && first.seconds == second.seconds);
        free(first.complaint);
        free(second.complaint);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_seed_is_played_the_same_again),
    cmocka_unit_test(a_storm_over_a_job_whose_host_sees_who_goes),
    cmocka_unit_test(a_storm_over_a_job_with_heartbeats_only),
    cmocka_unit_test(failures_and_deaths_are_known_everywhere_at_once),
    cmocka_unit_test(what_a_lost_node_leaves_behind_costs_nothing),
    cmocka_unit_test(a_last_failure_stands_soon_when_everybody_is_there),
    cmocka_unit_test(silent_hosts_are_out_soon_after_the_silence_timeout),
    cmocka_unit_test(a_storm_over_a_job_that_waits_for_replacements),
    cmocka_unit_test(a_storm_over_a_job_that_heeds_only_failures),
    cmocka_unit_test(a_storm_over_a_job_that_never_grows),
    cmocka_unit_test(a_storm_over_a_job_that_grows_slowly),
    cmocka_unit_test(a_storm_over_a_job_with_torchruns_nodes_in_it),
    cmocka_unit_test(a_silent_node_in_the_exit_barrier_is_waited_for),
    cmocka_unit_test(a_storm_over_fifty_nodes),
    cmocka_unit_test(sixty_four_nodes_that_start_together_are_a_world_in_a_second),
    cmocka_unit_test(wall_clocks_that_jump_evict_nobody),
    cmocka_unit_test(nodes_beyond_the_maximum_wait_and_leave_with_the_job),
    cmocka_unit_test(everybody_ends_soon_after_the_host),
};

TEST_MAIN(tests)
