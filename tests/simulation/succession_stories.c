/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_stories.h"

#define IDLE_SECONDS 600
/* So many effects a successor has at most until all have followed it, and some more. */
#define SUCCESSOR_STEPS 16

uint64_t story_host_count = 20;

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

void story_storm(struct simulation *simulation) {
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

void story_storm_of_leavers(struct simulation *simulation) {
    simulation->has_leavers = true;
    story_storm(simulation);
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
void story_hosts_killed(struct simulation *simulation) {
    simulation_play(simulation, 3);
    for (uint64_t killed = 0; killed < story_host_count && simulation->complaint[0] == '\0';) {
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
void story_hosts_leave(struct simulation *simulation) {
    simulation_play(simulation, 3);
    for (uint64_t left = 0; left < story_host_count && simulation->complaint[0] == '\0'; left++) {
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

static bool let_host_leave(struct simulation *simulation) {
    int host = simulation_host(simulation);
    if (host != SIM_NOBODY) {
        simulation_leave(simulation, host);
    }
    return host != SIM_NOBODY;
}

/* The host is lost, and who claims its place dies at one of its steps: before or after the append,
 * the store, the connection, the telling. */
static void lose_successor(struct simulation *simulation,
    bool (*lose_host)(struct simulation *simulation), double seconds) {
    if (simulation->node_count < 3) {
        return;
    }
    simulation_play(simulation, 3);
    simulation->successor.is_doomed = true;
    simulation->successor.node = SIM_NOBODY;
    simulation->successor.effects_left = simulation->seed % SUCCESSOR_STEPS;
    if (!lose_host(simulation)) {
        simulation_complain(simulation, "nobody hosts");
    }
    for (int i = 0; i < 100 && simulation->successor.is_doomed; i++) {
        simulation_play(simulation, 0.1);
    }
    if (simulation->successor.is_doomed) {
        simulation_complain(simulation, "nobody has claimed, or has done less than was thought");
    }
    simulation_play(simulation, seconds);
    if (!simulation_is_settled(simulation)) {
        simulation_complain(simulation, "those who are left are not one world after %g s", seconds);
    }
    expect_one_world(simulation, 10);
}

void story_named_dies(struct simulation *simulation) {
    lose_successor(simulation, let_host_leave, 2);
}

void story_successor_dies(struct simulation *simulation) {
    lose_successor(simulation, kill_host, 1.5);
}

/* The host stands still while another takes its term, with what it was about to do undone: it tells
 * nothing when it goes on, and follows. */
void story_host_stands_still(struct simulation *simulation) {
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
void story_machines_vanish(struct simulation *simulation) {
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
void story_lonely_node(struct simulation *simulation) {
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
void story_outnumbered_host(struct simulation *simulation) {
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
void story_job_is_over(struct simulation *simulation) {
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
void story_idle_job(struct simulation *simulation) {
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
void story_register_away(struct simulation *simulation) {
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
