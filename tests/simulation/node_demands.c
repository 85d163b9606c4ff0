/* SPDX-License-Identifier: BSD-3-Clause */
/* What is demanded of jobs that go a certain way, whatever the order in which messages arrive. */
#include "whole_seeds.h"

#include "base/random.h"

static struct whole_settings changing(uint64_t seed, int minimum, int nodes) {
    struct whole_settings settings = {
        .seed = seed,
        .kind = MEMBERSHIP_CHANGING,
        .nodes = nodes,
        .workers = 2,
        .shutdown_timeout = 30,
        .is_hosted = seed % 2 == 0,
        .transcript_of = -1,
    };
    rendezvous_settings_init(&settings.rendezvous);
    settings.rendezvous.minimum_nodes = minimum;
    settings.rendezvous.maximum_nodes = nodes;
    settings.rendezvous.last_call_timeout = duration_from_seconds(1);
    return settings;
}

/* A record that is closed from outside, without a failure: whoever works goes on, gives signs of
 * life as before, and is done when it is done. */
static struct whole_settings closed_from_outside(uint64_t seed) {
    static const struct whole_happens story[] = {{.at = 10, .deed = WHOLE_CLOSE_RECORD}};
    struct whole_settings settings = changing(seed, 2 + (int)(seed % 4), 2 + (int)(seed % 4));
    settings.work_seconds = 40;
    settings.work_spread = seed % 3 == 0 ? 400 : 1;
    settings.story = story;
    settings.story_length = 1;
    settings.demands = (struct whole_demands){.success_everywhere = true, .soon_after_work = 1};
    return settings;
}

static void a_record_closed_from_outside_lets_everybody_finish(void **state) {
    (void)state;
    whole_play_seeds(closed_from_outside, 40, NULL);
}

/* A signal to the whole job, which takes its time to reach each node: every worker gets it once,
 * and none is started because another node got it first. Good until the next. */
static struct whole_settings signalled(uint64_t seed) {
    static const double skews[] = {0, 0.005, 0.1, 1, 1.9, 5};
    static struct whole_happens story[6];
    int nodes = 2 + (int)(seed % 5);
    struct whole_settings settings = changing(seed, 1 + (int)(seed % 2), nodes);
    struct random random;
    random_init(&random, seed);
    for (int i = 0; i < nodes; i++) {
        story[i] = (struct whole_happens){.at = 10 + skews[seed % 6] * random_fraction(&random),
            .deed = WHOLE_SIGNAL,
            .node = i,
            .number = seed % 7 == 0 ? 2 : 15};
    }
    if (seed % 4 == 3) {
        settings.kind = MEMBERSHIP_FIXED;
        settings.is_hosted = true;
    }
    settings.max_restarts = 3;
    settings.work_seconds = 100;
    settings.story = story;
    settings.story_length = (size_t)nodes;
    settings.demands.no_start_after_signal = true;
    return settings;
}

static const char *check_signals(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    for (int i = 0; i < outcome->node_count; i++) {
        if (outcome->endings[i].status == 0) {
            return "a node that was told to end succeeds";
        }
        if (outcome->endings[i].ended_at > settings->story[0].at + 60) {
            return "a node has not obeyed";
        }
    }
    return NULL;
}

static void a_signal_to_the_whole_job_starts_nothing_new(void **state) {
    (void)state;
    whole_play_seeds(signalled, 240, check_signals);
}

/* --on-node-loss wait. */
static struct whole_settings left_by_a_node(uint64_t seed) {
    static const struct whole_happens story[] = {
        {.at = 20, .deed = WHOLE_SIGNAL, .node = 2, .number = 15},
        {.at = 30, .deed = WHOLE_NODE_COMES}};
    struct whole_settings settings = changing(seed, 2, 3);
    settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    settings.work_seconds = 40;
    settings.story = story;
    settings.story_length = 2;
    settings.demands.no_smaller_world = true;
    return settings;
}

static const char *check_replacement(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->worlds == 2 ? NULL : "the one that came was no replacement";
}

static void a_job_that_waits_for_replacements_waits_also_for_a_node_that_left(void **state) {
    (void)state;
    whole_play_seeds(left_by_a_node, 40, check_replacement);
}

/* Long after the exit barrier's patience. */
static struct whole_settings done_early(uint64_t seed) {
    static const struct whole_happens story[] = {{.at = 10, .deed = WHOLE_WORKERS_END}};
    struct whole_settings settings = changing(seed, 2 + (int)(seed % 3), 2 + (int)(seed % 3));
    settings.kind = seed % 2 == 0 ? MEMBERSHIP_FIXED : MEMBERSHIP_CHANGING;
    settings.is_hosted = true;
    settings.work_seconds = 1000;
    settings.work_spread = 2000;
    settings.story = story;
    settings.story_length = 1;
    settings.demands.success_everywhere = true;
    return settings;
}

static void a_host_that_is_done_waits_for_the_others_however_long_they_work(void **state) {
    (void)state;
    whole_play_seeds(done_early, 24, NULL);
}

/* The machine of the store's host is cut off from all others for ever. The others end soon, and do
 * not work in a second world. The host goes on alone if it is enough, and else stops its workers
 * and ends. */
static struct whole_settings cutting_off_the_host(uint64_t seed) {
    static struct whole_happens story[3];
    int nodes = 2 + (int)(seed % 3);
    struct whole_settings settings = changing(seed, seed / 3 % 2 == 0 ? 1 : 2, nodes);
    for (int i = 1; i < nodes; i++) {
        story[i - 1] = (struct whole_happens){
            .at = 10, .deed = WHOLE_LINK_BROKEN, .node = i, .number = 1000000};
    }
    settings.is_hosted = true;
    settings.rendezvous.join_timeout = duration_from_seconds(60);
    settings.work_seconds = 200;
    settings.story = story;
    settings.story_length = (size_t)nodes - 1;
    return settings;
}

static const char *check_one_side_goes_on(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    bool goes_on = settings->rendezvous.minimum_nodes == 1;
    const struct whole_ending *host = &outcome->endings[0];
    for (int i = 1; i < outcome->node_count; i++) {
        const struct whole_ending *ending = &outcome->endings[i];
        if (ending->starts != 1 || ending->status != 1) {
            return "a node without a store works";
        }
        if (ending->ended_at > 50) { /* silence, the host timeout, and its workers' end */
            return "a node waits long for a host that is lost";
        }
    }
    if (host->starts != (goes_on ? 2 : 1) || host->status != (goes_on ? 0 : 1)) {
        return "the host does not go on as it may";
    }
    return goes_on || host->ended_at < 80 ? NULL : "the host waits long for the others";
}

static void a_host_that_is_cut_off_from_all_others_is_never_one_of_two_worlds(void **state) {
    (void)state;
    whole_play_seeds(cutting_off_the_host, 48, check_one_side_goes_on);
}

/* Somebody deletes or empties the record of a job that works. Who holds it writes it again, and
 * nobody's workers notice. */
static struct whole_settings losing_its_record(uint64_t seed) {
    static struct whole_happens story[] = {{.at = 10, .deed = WHOLE_RECORD_LOST},
        {.at = 4, .deed = WHOLE_WORKER_ENDS, .number = 1},
        {.at = 6, .deed = WHOLE_WORKER_ENDS, .number = 1},
        {.at = 8, .deed = WHOLE_WORKER_ENDS, .number = 1},
        {.at = 30, .deed = WHOLE_WORKER_ENDS, .number = 1}};
    struct whole_settings settings = changing(seed, 2 + (int)(seed % 3), 2 + (int)(seed % 3));
    story[0].number = (int)(seed / 2 % 4);
    story[0].at = 10 + (double)(seed % 11) / 2;
    settings.max_restarts = 4;
    settings.work_seconds = 40;
    settings.work_spread = 20;
    settings.story = story;
    settings.story_length = 5;
    settings.demands = (struct whole_demands){.success_everywhere = true, .soon_after_work = 1};
    return settings;
}

static const char *check_only_the_failure_is_noticed(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->worlds != 5 || outcome->rounds != 4 ? "the loss was noticed"
           : outcome->longest_news > 0.5                ? "later news were not told"
                                                        : NULL;
}

static void a_record_that_is_lost_is_written_again(void **state) {
    (void)state;
    whole_play_seeds(losing_its_record, 88, check_only_the_failure_is_noticed);
}

/* The store's machine starts its store anew, and empty. All meet again, in a later round. */
static struct whole_settings losing_its_store(uint64_t seed) {
    static const struct whole_happens story[] = {
        {.at = 10, .deed = WHOLE_WORKER_ENDS, .node = 1, .number = 1},
        {.at = 20, .deed = WHOLE_STORE_ANEW}};
    struct whole_settings settings = changing(seed, 2 + (int)(seed % 3), 2 + (int)(seed % 3));
    settings.is_hosted = false;
    settings.max_restarts = 3;
    settings.work_seconds = 40;
    settings.story = story;
    settings.story_length = 2;
    settings.demands.success_everywhere = true;
    return settings;
}

static const char *check_the_next_world(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    (void)settings;
    return outcome->worlds != 3     ? "there were not three worlds"
           : outcome->restarts != 1 ? "the job has forgotten its restart"
           : outcome->rounds != 2   ? "the rounds were not counted on"
                                    : NULL;
}

static void a_store_that_begins_anew_does_not_begin_the_job_anew(void **state) {
    (void)state;
    whole_play_seeds(losing_its_store, 40, check_the_next_world);
}

/* A node stands in the record, and its agent is nowhere. It may stand in the first round, and is
 * missed soon. No world that runs lets it in. */
static struct whole_settings haunted(uint64_t seed) {
    static struct whole_happens story[] = {{.deed = WHOLE_GHOST_WRITTEN}};
    int nodes = 2 + (int)(seed % 3);
    struct whole_settings settings = changing(seed, nodes, nodes);
    settings.rendezvous.maximum_nodes += (int)(seed / 2 % 2);
    settings.rendezvous.delegates = settings.is_hosted && seed / 4 % 2 == 1;
    settings.start_spread = (double)(seed % 5);
    settings.work_seconds = 60;
    story[0].at = seed / 8 % 2 == 0 ? 30 : 0.5 * (double)(seed % 5);
    settings.story = story;
    settings.story_length = 1;
    settings.demands = (struct whole_demands){.success_everywhere = true, .soon_after_work = 1};
    return settings;
}

static const char *check_it_is_missed(
    const struct whole_settings *settings, const struct whole_outcome *outcome) {
    bool comes_late = settings->story[0].at == 30;
    return outcome->restarts != 0              ? "a ghost has cost a restart"
           : comes_late && outcome->worlds > 1 ? "a ghost was let in"
           : outcome->worlds > 2               ? "there were worlds for nothing"
           : outcome->seconds > 120            ? "somebody waited long for nobody"
                                               : NULL;
}

static void a_node_that_is_nowhere_is_waited_for_by_nobody(void **state) {
    (void)state;
    whole_play_seeds(haunted, 80, check_it_is_missed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_that_is_nowhere_is_waited_for_by_nobody),
    cmocka_unit_test(a_record_closed_from_outside_lets_everybody_finish),
    cmocka_unit_test(a_signal_to_the_whole_job_starts_nothing_new),
    cmocka_unit_test(a_job_that_waits_for_replacements_waits_also_for_a_node_that_left),
    cmocka_unit_test(a_host_that_is_cut_off_from_all_others_is_never_one_of_two_worlds),
    cmocka_unit_test(a_record_that_is_lost_is_written_again),
    cmocka_unit_test(a_store_that_begins_anew_does_not_begin_the_job_anew),
    cmocka_unit_test(a_host_that_is_done_waits_for_the_others_however_long_they_work),
};

int main(int argument_count, char **arguments) {
    whole_take_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
