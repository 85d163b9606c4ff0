/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of whole nodes whose store's host moves, with delegation and without: hosts are killed,
 * signalled, cut off and stopped, alone and with their successors, while rounds begin, workers
 * fail, and nodes come and leave. At every moment: one chain of entries; no worker in a world that
 * is no entry, and no two worlds in one round. In the end those who are left are one world, and end
 * well.
 *
 *     moving_simulation 5000                so many seeds of each kind
 *     SIMULATION_SEED=17 moving_simulation 1 'a_storm*'     one seed, with its transcript */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "moving_job.h"

static uint64_t seed_count = 200;
static uint64_t only_seed;
static bool is_one_seed;

static uint64_t below(struct moving_job *job, uint64_t bound) {
    return random_below(&job->random, bound);
}

static int host_or_anybody(struct moving_job *job) {
    int host = moving_host(job);
    return host != MOVING_NOBODY && below(job, 2) == 0 ? host
                                                       : (int)below(job, (uint64_t)job->node_count);
}

static void start_all(struct moving_job *job) {
    for (int i = 0; i < job->node_count; i++) {
        if (!job->nodes[i].is_alive) {
            moving_start(job, i);
        }
    }
}

static void await_world(struct moving_job *job, double seconds, const char *what) {
    for (double waited = 0; waited < seconds && job->complaint[0] == '\0'; waited += 0.05) {
        if (moving_is_whole(job)) {
            return;
        }
        moving_play(job, 0.05);
    }
    if (!moving_is_whole(job)) {
        moving_complain(job, "%s are not one world after %g s", what, seconds);
    }
}

static void expect_all_to_finish(struct moving_job *job) {
    moving_finish_workers(job);
    for (int i = 0; i < 600 && moving_count_alive(job) > 0 && job->complaint[0] == '\0'; i++) {
        moving_play(job, 0.1);
    }
    if (moving_count_alive(job) > 0) {
        moving_complain(job, "all workers are done, and the job does not end");
    }
}

/* Everything comes right at last. */
static void expect_good_end(struct moving_job *job) {
    moving_heal(job);
    job->is_treacherous = false;
    moving_play(job, 9); /* who stands still goes on */
    while (moving_count_alive(job) < job->minimum || moving_count_alive(job) == 0) {
        int i = 0;
        while (job->nodes[i].is_alive) {
            i++;
        }
        moving_start(job, i);
    }
    await_world(job, 60, "those who are left");
    expect_all_to_finish(job);
}

/* Also where the host is outnumbered just then, and so appends nothing else for a while. */
static void expect_last_entry(struct moving_job *job) {
    const struct virtual_entry *last = virtual_register_last(&job->reg);
    if (last == NULL || !last->record.is_closed) {
        moving_complain(job, "the job has ended, and its last entry does not say so");
    }
}

static void do_anything(struct moving_job *job) {
    int node = host_or_anybody(job);
    switch (below(job, 14)) {
    case 0:
    case 1:
    case 2:
        moving_kill(job, node);
        break;
    case 3:
        moving_power_off(job, node);
        break;
    case 4:
    case 5:
    case 6:
        moving_start(job, node);
        break;
    case 7:
        moving_stop(job, node, moving_between(job, 0.1, 8));
        break;
    case 8:
        moving_heal(job);
        break;
    case 9:
        moving_cut(job, node);
        break;
    case 10:
        job->is_register_down = true;
        break;
    case 11:
        moving_signal(job, node);
        break;
    case 12:
        moving_fail_worker(job, node);
        break;
    case 13:
        moving_reset_connection(job, node);
        break;
    }
}

static void storm(struct moving_job *job) {
    job->minimum = 1 + (int)below(job, 2);
    job->is_treacherous = below(job, 2) == 0;
    start_all(job);
    moving_play(job, 2);
    for (uint64_t left = 5 + below(job, 20); left > 0 && job->complaint[0] == '\0'; left--) {
        do_anything(job);
        moving_play(job, (double)below(job, below(job, 3) == 0 ? 5000 : 200) / 1000);
        if (below(job, 4) == 0) {
            moving_heal(job);
        }
    }
    expect_good_end(job);
}

/* Without those who were told to end, and may still hand over what they host. */
static int count_staying(const struct moving_job *job) {
    int count = 0;
    for (int i = 0; i < job->node_count; i++) {
        count += job->nodes[i].is_alive && !job->nodes[i].is_signalled ? 1 : 0;
    }
    return count;
}

/* One host after the other goes, and sometimes the next one while it takes over. */
static void succession(struct moving_job *job, void (*end)(struct moving_job *job, int node)) {
    start_all(job);
    await_world(job, 5, "all");
    for (int left = 6; left > 0 && job->complaint[0] == '\0'; left--) {
        int host = moving_host(job);
        if (host == MOVING_NOBODY) {
            moving_complain(job, "nobody hosts");
            break;
        }
        if (below(job, 2) == 0) { /* a round is about to begin, or has just begun */
            moving_fail_worker(job, (int)below(job, (uint64_t)job->node_count));
            moving_play(job, moving_between(job, 0, 0.08));
        }
        end(job, host);
        if (below(job, 3) == 0) {
            moving_play(job, moving_between(job, 0, 0.3));
            host = moving_host(job);
            if (host != MOVING_NOBODY && count_staying(job) > 1) {
                moving_kill(job, host);
            }
        }
        await_world(job, 8, "the survivors");
        start_all(job);
        await_world(job, 80, "all"); /* who comes and goes has to wait */
    }
    expect_good_end(job);
    expect_last_entry(job);
}

static void kill_in_turn(struct moving_job *job) {
    succession(job, moving_kill);
}

static void signal_in_turn(struct moving_job *job) {
    succession(job, moving_signal);
}

/* One host after the other is told to end, while nothing else happens. Whom it names follows it.
 * The workers of those who stay begin once more, since a node has left, and run on through the
 * rest. */
static void hand_over(struct moving_job *job) {
    job->has_prompt_workers = true;
    start_all(job);
    await_world(job, 5, "all");
    for (int left = job->node_count; left > 1 && job->complaint[0] == '\0'; left--) {
        uint64_t handovers = job->handovers;
        uint64_t starts = job->starts;
        int host = moving_host(job);
        if (host == MOVING_NOBODY) {
            moving_complain(job, "nobody hosts");
            return;
        }
        moving_signal(job, host);
        for (int i = 0; i < 300 && job->nodes[host].is_alive; i++) {
            moving_play(job, 0.1);
        }
        if (job->handovers != handovers + 1 || job->nodes[host].is_alive) {
            moving_complain(job, "the place of a host that leaves was not handed over");
        }
        await_world(job, 1, "those who stay");
        if (job->starts != starts + (uint64_t)(left - 1)) {
            moving_complain(job, "the workers of those who stay have begun more than once");
        }
    }
    expect_good_end(job);
}

/* A node that is done goes, too, and only the host knows that it was. */
static void let_another_go(struct moving_job *job, int host) {
    int other = (host + 1) % job->node_count;
    while (!job->nodes[other].is_alive) {
        other = (other + 1) % job->node_count;
    }
    moving_finish_worker(job, other);
    moving_play(job, moving_between(job, 0.3, 2));
    moving_kill(job, other);
    moving_play(job, moving_between(job, 0.3, 2));
}

/* One host after the other goes, when its own worker is done: nobody misses it. */
static void done_hosts_go(struct moving_job *job) {
    start_all(job);
    await_world(job, 5, "all");
    uint64_t starts = job->starts;
    for (int left = job->node_count; left > 1 && job->complaint[0] == '\0'; left--) {
        int host = moving_host(job);
        if (host == MOVING_NOBODY) {
            moving_complain(job, "nobody hosts");
            break;
        }
        if (left > 2 && below(job, 2) == 0) {
            let_another_go(job, host);
            left--;
        }
        moving_finish_worker(job, host);
        moving_play(job, moving_between(job, 0.3, 2));
        if (below(job, 2) == 0) {
            moving_kill(job, host);
        } else {
            moving_power_off(job, host);
        }
        moving_play(job, moving_between(job, 15, 30));
        if (job->starts != starts) {
            moving_complain(job, "a host whose worker was done is missed");
        }
    }
    expect_all_to_finish(job);
    expect_last_entry(job);
}

/* The host is cut off for a moment, about as long as nobody is missed yet, while the others'
 * workers end: who comes to it again under another name is told how it stands, too. */
static void cut_at_the_end(struct moving_job *job) {
    start_all(job);
    await_world(job, 5, "all");
    int host = moving_host(job);
    if (host == MOVING_NOBODY) {
        moving_complain(job, "nobody hosts");
        return;
    }
    job->may_be_over = true;
    moving_cut(job, host);
    bool ends_meanwhile = below(job, 2) == 0;
    moving_play(job, moving_between(job, 1, 3));
    if (ends_meanwhile) {
        moving_finish_workers(job);
    }
    moving_play(job, moving_between(job, 0, 3));
    moving_heal(job);
    moving_play(job, moving_between(job, 0, 0.5));
    expect_all_to_finish(job);
    expect_last_entry(job);
}

/* A signal comes to all nodes, within a moment. */
static void signal_all(struct moving_job *job) {
    start_all(job);
    await_world(job, 5, "all");
    int first = (int)below(job, (uint64_t)job->node_count);
    uint64_t terms = job->terms;
    for (int i = 0; i < job->node_count; i++) {
        moving_signal(job, (first + i) % job->node_count);
        moving_play(job, moving_between(job, 0, 0.003));
    }
    for (int i = 0; i < 100 && moving_count_alive(job) > 0 && job->complaint[0] == '\0'; i++) {
        moving_play(job, 0.1);
    }
    if (moving_count_alive(job) > 0) {
        moving_complain(job, "all were told to end, and somebody does not");
    }
    if (job->delegation == MOVING_ALL_DELEGATE && job->terms > terms + 1) {
        moving_complain(job, "one host after the other was needed for the end of all");
    }
}

struct outcome {
    uint64_t told;
    uint64_t cut_off;
    uint64_t terms;
    uint64_t starts;
    uint64_t read;
};

static bool play_seed(uint64_t seed, enum moving_delegation delegation,
    void (*scenario)(struct moving_job *job), bool is_told, struct outcome *outcome) {
    struct moving_job job;
    moving_job_init(&job, seed, 2 + (int)(seed % 6), delegation);
    job.is_told = is_told;
    scenario(&job);
    bool is_well = job.complaint[0] == '\0';
    if (!is_well && (is_told || is_one_seed)) {
        print_error("seed %llu: %s\n", (unsigned long long)seed, job.complaint);
    }
    outcome->told += job.told;
    outcome->cut_off += job.cut_off;
    outcome->terms += job.terms;
    outcome->starts += job.starts;
    outcome->read += job.records_read;
    moving_job_clear(&job);
    return is_well;
}

static struct outcome play_seeds(
    uint64_t seeds, enum moving_delegation delegation, void (*scenario)(struct moving_job *job)) {
    struct outcome outcome = {0};
    uint64_t first = is_one_seed ? only_seed : 0;
    for (uint64_t seed = first; seed < first + (is_one_seed ? 1 : seeds); seed++) {
        if (!play_seed(seed, delegation, scenario, is_one_seed, &outcome)) {
            if (!is_one_seed) {
                (void)play_seed(seed, delegation, scenario, true, &outcome);
            }
            fail();
        }
    }
    return outcome;
}

static void a_storm_over_nodes_that_delegate(void **state) {
    (void)state;
    struct outcome outcome = play_seeds(seed_count, MOVING_ALL_DELEGATE, storm);
    assert_true(outcome.told > 0 && outcome.terms > 0);
}

static void a_storm_over_nodes_that_do_not(void **state) {
    (void)state;
    struct outcome outcome = play_seeds((seed_count + 1) / 2, MOVING_NONE_DELEGATES, storm);
    assert_int_equal(outcome.told, 0);
}

static void a_storm_over_nodes_of_which_some_delegate(void **state) {
    (void)state;
    struct outcome outcome = play_seeds((seed_count + 1) / 2, MOVING_SOME_DELEGATE, storm);
    assert_true(outcome.told > 0);
}

static void hosts_that_others_delegate_to_are_killed_in_turn(void **state) {
    (void)state;
    struct outcome outcome = play_seeds((seed_count + 1) / 2, MOVING_ALL_DELEGATE, kill_in_turn);
    assert_true(outcome.told > 0);
}

static void hosts_that_others_delegate_to_are_told_to_end_in_turn(void **state) {
    (void)state;
    struct outcome outcome = play_seeds((seed_count + 1) / 2, MOVING_ALL_DELEGATE, signal_in_turn);
    assert_true(outcome.told > 0);
}

static void a_host_that_is_told_to_end_is_followed_by_whom_it_names(void **state) {
    (void)state;
    (void)play_seeds((seed_count + 1) / 2, MOVING_ALL_DELEGATE, hand_over);
    (void)play_seeds((seed_count + 1) / 2, MOVING_NONE_DELEGATES, hand_over);
    (void)play_seeds((seed_count + 1) / 2, MOVING_SOME_DELEGATE, hand_over);
}

static void hosts_whose_workers_are_done_are_not_missed(void **state) {
    (void)state;
    (void)play_seeds((seed_count + 1) / 2, MOVING_ALL_DELEGATE, done_hosts_go);
    (void)play_seeds((seed_count + 1) / 2, MOVING_NONE_DELEGATES, done_hosts_go);
    (void)play_seeds((seed_count + 1) / 2, MOVING_SOME_DELEGATE, done_hosts_go);
}

static void a_job_ends_whose_host_is_cut_off_just_then(void **state) {
    (void)state;
    struct outcome outcome = play_seeds((seed_count + 1) / 2, MOVING_ALL_DELEGATE, cut_at_the_end);
    assert_true(outcome.told > 0);
    (void)play_seeds((seed_count + 1) / 2, MOVING_NONE_DELEGATES, cut_at_the_end);
    (void)play_seeds((seed_count + 1) / 2, MOVING_SOME_DELEGATE, cut_at_the_end);
}

static void all_leave_with_one_host(void **state) {
    (void)state;
    struct outcome outcome = play_seeds((seed_count + 1) / 2, MOVING_ALL_DELEGATE, signal_all);
    assert_true(outcome.told > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_storm_over_nodes_that_delegate),
    cmocka_unit_test(a_storm_over_nodes_that_do_not),
    cmocka_unit_test(a_storm_over_nodes_of_which_some_delegate),
    cmocka_unit_test(hosts_that_others_delegate_to_are_killed_in_turn),
    cmocka_unit_test(hosts_that_others_delegate_to_are_told_to_end_in_turn),
    cmocka_unit_test(a_host_that_is_told_to_end_is_followed_by_whom_it_names),
    cmocka_unit_test(hosts_whose_workers_are_done_are_not_missed),
    cmocka_unit_test(a_job_ends_whose_host_is_cut_off_just_then),
    cmocka_unit_test(all_leave_with_one_host),
};

int main(int argument_count, char **arguments) {
    const char *seed = getenv("SIMULATION_SEED");
    if (seed != NULL) {
        is_one_seed = true;
        only_seed = strtoull(seed, NULL, 10);
    }
    if (argument_count > 1) {
        seed_count = strtoull(arguments[1], NULL, 10);
    }
    if (argument_count > 2) {
        cmocka_set_test_filter(arguments[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
