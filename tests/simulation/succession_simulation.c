/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of which each node may come to host the store, through everything that a machine room does
 * to them, and what must hold at every moment: one chain of entries, in which rounds grow by one,
 * restarts never fall, and what is closed stays closed; no workers in a world that is no entry, and
 * no two worlds in one round; a node that is cut off runs its workers no longer than it may; a node
 * that is cut off alone deposes nobody; and in the end those who are left are one world.
 *
 *     succession_simulation 50000           so many seeds of each kind
 *     succession_simulation 50000 'a_storm*'
 *     succession_simulation 1000 'hosts*' 1000   100 seeds, in each of which 1,000 hosts are killed
 *     succession_simulation 50000 '*' 20 70000   seeds from 70,000 on
 *     SIMULATION_SEED=17 succession_simulation 1 'a_storm*'     one seed, with its transcript */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "virtual_succession.h"

#define IDLE_SECONDS 600
/* So many effects a successor has at most until all have followed it, and some more. */
#define SUCCESSOR_STEPS 16

static uint64_t seed_count = 1000;
static uint64_t hosts_killed = 20; /* in one job */
static uint64_t first_seed;
static uint64_t news_told; /* in all jobs */
static uint64_t only_seed;
static bool is_one_seed;

static uint64_t below(struct simulation *simulation, uint64_t bound) {
    return random_below(&simulation->random, bound);
}

static double fraction(struct simulation *simulation) {
    return random_fraction(&simulation->random);
}

static int anybody(struct simulation *simulation) {
    return (int)below(simulation, (uint64_t)simulation->node_count);
}

static int host_or_anybody(struct simulation *simulation) {
    int host = simulation_host(simulation);
    return host != SIM_NOBODY && below(simulation, 2) == 0 ? host : anybody(simulation);
}

static void cut_from_all(struct simulation *simulation, int node, bool is_one_way) {
    for (int i = 0; i < simulation->node_count; i++) {
        if (i != node) {
            simulation_cut(simulation, node, i);
            if (!is_one_way) {
                simulation_cut(simulation, i, node);
            }
        }
    }
}

static void do_anything(struct simulation *simulation) {
    int node = host_or_anybody(simulation);
    switch (below(simulation, simulation->has_leavers ? 14 : 12)) {
    case 0:
    case 1:
        simulation_kill(simulation, node);
        break;
    case 2:
        simulation_power_off(simulation, node);
        break;
    case 3:
    case 4:
        if (!simulation->nodes[node].is_alive) {
            simulation_start(simulation, node);
        }
        break;
    case 5:
        simulation_stop(simulation, node);
        break;
    case 6:
        simulation_heal(simulation);
        break;
    case 7:
        simulation_cut(simulation, node, anybody(simulation));
        break;
    case 8:
        cut_from_all(simulation, node, below(simulation, 2) == 0);
        break;
    case 9:
        simulation->is_register_down = true;
        break;
    case 10:
        simulation->is_register_slow = true;
        break;
    case 11:
        simulation->nodes[node].is_cut_from_register = true;
        break;
    default:
        simulation_leave(simulation, node);
        break;
    }
}

/* Everything comes right at last, and somebody is there. */
static void expect_one_world(struct simulation *simulation, double seconds) {
    simulation_heal(simulation);
    simulation->is_treacherous = false;
    if (!simulation->nodes[0].is_alive) {
        simulation_start(simulation, 0);
    }
    simulation_play(simulation, seconds);
    if (!simulation_is_settled(simulation)) {
        simulation_complain(simulation, "those who are left are not one world after %g s", seconds);
    }
}

static void storm(struct simulation *simulation) {
    simulation->minimum = 1 + (int)below(simulation, 2);
    simulation->is_stale = below(simulation, 2) == 0;
    simulation->is_treacherous = below(simulation, 2) == 0;
    simulation_play(simulation, 2);
    for (uint64_t left = 5 + below(simulation, 25); left > 0; left--) {
        do_anything(simulation);
        simulation_play(simulation, (double)below(simulation, 6000) / 1000);
    }
    if (below(simulation, 8) == 0) {
        simulation_close_job(simulation);
        simulation_play(simulation, 1);
        do_anything(simulation);
    }
    expect_one_world(simulation, 60);
}

static void storm_of_leavers(struct simulation *simulation) {
    simulation->has_leavers = true;
    storm(simulation);
}

static int count_alive(const struct simulation *simulation) {
    int count = 0;
    for (int i = 0; i < simulation->node_count; i++) {
        count += simulation->nodes[i].is_alive ? 1 : 0;
    }
    return count;
}

static bool kill_host(struct simulation *simulation) {
    int host = simulation_host(simulation);
    if (host == SIM_NOBODY || count_alive(simulation) == 1) {
        return false;
    }
    simulation_kill(simulation, host);
    return true;
}

/* One host after the other is killed, and sometimes the next one while it takes over. All come
 * back. A host that dies costs each other node one start of its workers. */
static void succession(struct simulation *simulation) {
    simulation_play(simulation, 3);
    for (uint64_t killed = 0; killed < hosts_killed && simulation->complaint[0] == '\0';) {
        if (!kill_host(simulation)) {
            simulation_complain(simulation, "nobody hosts");
        }
        if (below(simulation, 4) == 0) {
            simulation_play(simulation, (double)below(simulation, 600) / 1000);
            killed += kill_host(simulation) ? 1 : 0;
        }
        killed++;
        simulation_play(simulation, 1.5);
        if (!simulation_is_settled(simulation)) {
            simulation_complain(simulation, "the survivors are not one world after 1.5 s");
        }
        for (int i = 0; i < simulation->node_count; i++) {
            if (!simulation->nodes[i].is_alive) {
                simulation_start(simulation, i);
            }
        }
        simulation_play(simulation, 1.5);
    }
    expect_one_world(simulation, 10);
}

/* One host after the other is told to end. Each time the one that it has named follows, nobody
 * dials in vain, and those who have learnt of it go on soon. */
static void leavers(struct simulation *simulation) {
    simulation_play(simulation, 3);
    for (uint64_t left = 0; left < hosts_killed && simulation->complaint[0] == '\0'; left++) {
        uint64_t handovers = simulation->handovers;
        uint64_t in_vain = simulation->dials_in_vain;
        int host = simulation_host(simulation);
        if (host == SIM_NOBODY) {
            simulation_complain(simulation, "nobody hosts");
            return;
        }
        simulation_leave(simulation, host);
        simulation_play(simulation, 1.2);
        if (simulation->nodes[host].is_alive) {
            simulation_complain(simulation, "a host that was told to end is still there");
        }
        if (simulation->handovers != handovers + 1 || simulation->dials_in_vain != in_vain) {
            simulation_complain(simulation, "the place of a host that leaves was not handed over");
        }
        if (!simulation_is_settled(simulation)) {
            simulation_complain(simulation, "those who stay are not one world after 1.2 s");
        }
        simulation_start(simulation, host);
        simulation_play(simulation, 1.5);
    }
    expect_one_world(simulation, 10);
}

/* The host leaves, and who is named dies at one of its steps. */
static void step_of_named(struct simulation *simulation) {
    if (simulation->node_count < 3) {
        return;
    }
    simulation_play(simulation, 3);
    simulation->successor.is_doomed = true;
    simulation->successor.node = SIM_NOBODY;
    simulation->successor.effects_left = simulation->seed % SUCCESSOR_STEPS;
    int host = simulation_host(simulation);
    if (host == SIM_NOBODY) {
        simulation_complain(simulation, "nobody hosts");
        return;
    }
    simulation_leave(simulation, host);
    for (int i = 0; i < 100 && simulation->successor.is_doomed; i++) {
        simulation_play(simulation, 0.1);
    }
    simulation_play(simulation, 2);
    if (!simulation_is_settled(simulation)) {
        simulation_complain(simulation, "those who stay are not one world after 2 s");
    }
    expect_one_world(simulation, 10);
}

/* The host dies, and who claims its place dies at one of its steps: before or after the append, the
 * store, the connection, the telling. */
static void step_of_successor(struct simulation *simulation) {
    if (simulation->node_count < 3) {
        return;
    }
    simulation_play(simulation, 3);
    simulation->successor.is_doomed = true;
    simulation->successor.node = SIM_NOBODY;
    simulation->successor.effects_left = simulation->seed % SUCCESSOR_STEPS;
    if (!kill_host(simulation)) {
        simulation_complain(simulation, "nobody hosts");
    }
    for (int i = 0; i < 100 && simulation->successor.is_doomed; i++) {
        simulation_play(simulation, 0.1);
    }
    if (simulation->successor.is_doomed) {
        simulation_complain(simulation, "nobody has claimed, or has done less than was thought");
    }
    simulation_play(simulation, 1.5);
    if (!simulation_is_settled(simulation)) {
        simulation_complain(simulation, "the survivors are not one world after 1.5 s");
    }
    expect_one_world(simulation, 10);
}

/* The host stands still while another takes its term, with what it was about to do undone: it tells
 * nothing when it goes on, and follows. */
static void standing(struct simulation *simulation) {
    simulation_play(simulation, 1 + fraction(simulation) * 2);
    int host = simulation_host(simulation);
    if (host == SIM_NOBODY) {
        simulation_complain(simulation, "nobody hosts");
        return;
    }
    for (int other = anybody(simulation); other != host; other = host) {
        simulation_kill(simulation, other); /* a round is under way */
        simulation_play(simulation, fraction(simulation) * 0.2);
    }
    simulation_stop(simulation, host);
    simulation_play(simulation, 6 + fraction(simulation) * 20);
    int successor = simulation_host(simulation);
    bool has_others = count_alive(simulation) > 1;
    if (has_others && (successor == host || successor == SIM_NOBODY)) {
        simulation_complain(simulation, "nobody follows a host that stands still");
    }
    simulation_continue(simulation, host);
    simulation_play(simulation, 3);
    if (has_others && simulation->nodes[host].is_hosting) {
        simulation_complain(simulation, "a host that stood still hosts on");
    }
    if (!simulation_is_settled(simulation)) {
        simulation_complain(simulation, "host and successor are not one world after 3 s");
    }
    expect_one_world(simulation, 10);
}

/* The host's machine is gone without a word: its connections are found silent, and its renewal has
 * stood still by then. */
static void silent(struct simulation *simulation) {
    simulation_play(simulation, 3);
    for (int i = 0; i < 5; i++) {
        int host = simulation_host(simulation);
        if (host == SIM_NOBODY) {
            simulation_complain(simulation, "nobody hosts");
            return;
        }
        simulation_power_off(simulation, host);
        simulation_play(simulation, 4.3);
        if (!simulation_is_settled(simulation)) {
            simulation_complain(simulation, "the survivors are not one world after 4.3 s");
        }
        simulation_start(simulation, host);
        simulation_play(simulation, 2);
    }
    expect_one_world(simulation, 10);
}

/* A node that alone cannot reach the host, in one direction or in both, deposes nobody. */
static void lonely(struct simulation *simulation) {
    simulation_play(simulation, 3);
    int host = simulation_host(simulation);
    int node = (host + 1) % simulation->node_count;
    if (host == SIM_NOBODY) {
        simulation_complain(simulation, "nobody hosts");
        return;
    }
    uint64_t way = below(simulation, 3);
    if (way != 1) {
        simulation_cut(simulation, node, host);
    }
    if (way != 0) {
        simulation_cut(simulation, host, node);
    }
    simulation_play(simulation, 60);
    if (simulation_host(simulation) != host) {
        simulation_complain(simulation, "a node that was cut off alone has deposed the host");
    }
    expect_one_world(simulation, 10);
}

/* The host reaches the register, and less than half of the nodes: those who are more have another
 * host, and one world, soon. Cuts may be of one direction. */
static void outnumbered(struct simulation *simulation) {
    simulation_play(simulation, 3);
    int host = simulation_host(simulation);
    int few = (simulation->node_count - 1) / 2;
    uint64_t others = 0;
    if (host == SIM_NOBODY || simulation->node_count < 3) {
        return;
    }
    for (int i = 1; i < simulation->node_count; i++) {
        others |= i >= few ? UINT64_C(1) << (host + i) % simulation->node_count : 0;
    }
    for (int i = 0; i < simulation->node_count * simulation->node_count; i++) {
        int from = i / simulation->node_count;
        int to = i % simulation->node_count;
        if ((others >> from & 1) != (others >> to & 1)) {
            uint64_t way = below(simulation, 3);
            simulation_cut(simulation, way != 1 ? from : to, way != 1 ? to : from);
        }
    }
    simulation_play(simulation, 10);
    if (!simulation_runs(simulation, others)) {
        simulation_complain(simulation, "the host keeps the job from those who are more");
    }
    simulation_play(simulation, 60);
    if (!simulation_runs(simulation, others)) {
        simulation_complain(simulation, "those who are more have lost the job again");
    }
    expect_one_world(simulation, 10);
}

static void start_again(struct simulation *simulation) {
    for (int i = 0; i < simulation->node_count; i++) {
        simulation_kill(simulation, i);
    }
    for (int i = 0; i < simulation->node_count; i++) {
        simulation_start(simulation, i);
    }
}

/* The job is over, and its host may die at any moment of that. Where one survivor knows that it is
 * over, all do in the end, and nobody runs workers again: not even when all nodes are started
 * anew. */
static void over(struct simulation *simulation) {
    simulation_play(simulation, 3);
    simulation_close_job(simulation);
    for (uint64_t deaths = below(simulation, 3); deaths > 0; deaths--) {
        simulation_play(simulation, (double)below(simulation, 40) / 1000);
        (void)kill_host(simulation);
    }
    bool is_known = false;
    for (int i = 0; i < simulation->node_count; i++) {
        is_known = is_known || (simulation->nodes[i].is_alive && simulation->nodes[i].knows_end);
    }
    simulation_play(simulation, 10);
    if (is_known && !simulation_is_over(simulation)) {
        simulation_complain(simulation, "the end of the job is forgotten");
    }
    if (simulation_is_over(simulation)) {
        uint64_t starts = simulation->starts;
        start_again(simulation);
        simulation_play(simulation, 20);
        if (simulation->starts != starts) {
            simulation_complain(simulation, "a job that is over is run again");
        }
    }
}

/* While nothing happens, one node asks the register for all, less than once a second. */
static void idle(struct simulation *simulation) {
    simulation_play(simulation, 10);
    int host = simulation_host(simulation);
    for (int i = 0; i < simulation->node_count; i++) {
        simulation->nodes[i].requests = 0;
    }
    simulation_play(simulation, IDLE_SECONDS);
    for (int i = 0; i < simulation->node_count; i++) {
        uint64_t requests = simulation->nodes[i].requests;
        if (requests > (i == host ? IDLE_SECONDS : 0)) {
            simulation_complain(simulation, "node %d has asked the register %llu times in %d s", i,
                (unsigned long long)requests, IDLE_SECONDS);
        }
    }
    if (host == SIM_NOBODY || simulation->nodes[host].requests < IDLE_SECONDS / 2) {
        simulation_complain(simulation, "nobody renews its term");
    }
    expect_one_world(simulation, 10);
}

/* The register goes away and comes back: workers run on in the world that they have. */
static void registerless(struct simulation *simulation) {
    simulation_play(simulation, 3);
    uint64_t starts = simulation->starts;
    simulation->is_register_down = true;
    simulation_play(simulation, 40);
    for (int i = 0; i < simulation->node_count; i++) {
        if (!simulation->nodes[i].is_running) {
            simulation_complain(simulation, "workers of node %d were ended, without need", i);
        }
    }
    expect_one_world(simulation, 10);
    if (simulation->starts != starts) {
        simulation_complain(simulation, "workers were restarted, without need");
    }
}

static void play_seed(uint64_t seed, bool is_told, void (*story)(struct simulation *simulation),
    char *out_complaint) {
    struct simulation simulation;
    simulation_init(&simulation, seed, 2 + (int)(seed % (SIM_NODES_MAXIMUM - 1)));
    simulation.is_told = is_told;
    story(&simulation);
    (void)snprintf(out_complaint, 256, "%s", simulation.complaint);
    news_told += simulation.news;
    simulation_clear(&simulation);
}

static void expect_no_complaint(uint64_t seed, void (*story)(struct simulation *simulation)) {
    char complaint[256];
    play_seed(seed, is_one_seed, story, complaint);
    if (complaint[0] != '\0') {
        print_message("seed %llu: %s\n", (unsigned long long)seed, complaint);
        if (!is_one_seed) {
            play_seed(seed, true, story, complaint);
        }
        fail_msg("seed %llu: %s", (unsigned long long)seed, complaint);
    }
}

static void play(void (*story)(struct simulation *simulation), uint64_t share) {
    uint64_t count = is_one_seed ? 1 : seed_count / share;
    for (uint64_t i = 0; i < count; i++) {
        expect_no_complaint(is_one_seed ? only_seed : first_seed + i, story);
    }
}

static void a_storm_leaves_one_chain_and_one_world(void **state) {
    (void)state;
    play(storm, 1);
}

static void hosts_are_killed_one_after_the_other(void **state) {
    (void)state;
    play(succession, 10);
    assert_true(news_told > 0 || is_one_seed); /* who waits for its turn hears of the next host */
}

static void a_successor_may_die_at_every_step(void **state) {
    (void)state;
    play(step_of_successor, 1);
}

static void a_host_that_leaves_is_followed_by_whom_it_names(void **state) {
    (void)state;
    play(leavers, 10);
}

static void who_is_named_may_die_at_every_step(void **state) {
    (void)state;
    play(step_of_named, 1);
}

static void a_host_that_stands_still_across_a_term_follows(void **state) {
    (void)state;
    play(standing, 4);
}

static void a_machine_that_is_gone_without_a_word_is_succeeded_soon(void **state) {
    (void)state;
    play(silent, 10);
}

static void a_node_that_is_cut_off_alone_deposes_nobody(void **state) {
    (void)state;
    play(lonely, 10);
}

static void a_host_does_not_keep_the_job_from_those_who_are_more(void **state) {
    (void)state;
    play(outnumbered, 10);
}

static void a_job_that_is_over_is_never_run_again(void **state) {
    (void)state;
    play(over, 5);
}

static void an_idle_job_asks_the_register_less_than_once_a_second(void **state) {
    (void)state;
    play(idle, 10);
}

static void workers_run_on_while_only_the_register_is_away(void **state) {
    (void)state;
    play(registerless, 10);
}

/* A seed that has found a mistake: an append of its own that a host had given up took effect. */
static void a_commit_that_comes_late_is_told_as_what_it_is(void **state) {
    (void)state;
    if (!is_one_seed) {
        expect_no_complaint(35368, storm);
    }
}

/* Seeds that have found a mistake: 45, 376. */
static void silences_that_come_one_by_one_count_together(void **state) {
    static const uint64_t seeds[] = {45, 376};
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds && !is_one_seed; i++) {
        expect_no_complaint(seeds[i], outnumbered);
    }
}

static void a_storm_in_which_hosts_leave_is_no_worse(void **state) {
    (void)state;
    play(storm_of_leavers, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hosts_are_killed_one_after_the_other),
    cmocka_unit_test(a_successor_may_die_at_every_step),
    cmocka_unit_test(a_host_that_leaves_is_followed_by_whom_it_names),
    cmocka_unit_test(who_is_named_may_die_at_every_step),
    cmocka_unit_test(a_host_that_stands_still_across_a_term_follows),
    cmocka_unit_test(a_machine_that_is_gone_without_a_word_is_succeeded_soon),
    cmocka_unit_test(a_node_that_is_cut_off_alone_deposes_nobody),
    cmocka_unit_test(a_host_does_not_keep_the_job_from_those_who_are_more),
    cmocka_unit_test(silences_that_come_one_by_one_count_together),
    cmocka_unit_test(a_commit_that_comes_late_is_told_as_what_it_is),
    cmocka_unit_test(a_job_that_is_over_is_never_run_again),
    cmocka_unit_test(an_idle_job_asks_the_register_less_than_once_a_second),
    cmocka_unit_test(workers_run_on_while_only_the_register_is_away),
    cmocka_unit_test(a_storm_leaves_one_chain_and_one_world),
    cmocka_unit_test(a_storm_in_which_hosts_leave_is_no_worse),
};

int main(int argument_count, char **arguments) {
    const char *seed = getenv("SIMULATION_SEED");
    if (argument_count > 1) {
        seed_count = strtoull(arguments[1], NULL, 10);
    }
    if (argument_count > 2) {
        cmocka_set_test_filter(arguments[2]);
    }
    if (argument_count > 3) {
        hosts_killed = strtoull(arguments[3], NULL, 10);
    }
    if (argument_count > 4) {
        first_seed = strtoull(arguments[4], NULL, 10);
    }
    is_one_seed = seed != NULL;
    only_seed = seed != NULL ? strtoull(seed, NULL, 10) : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
