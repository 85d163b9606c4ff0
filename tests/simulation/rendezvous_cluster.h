/* SPDX-License-Identifier: BSD-3-Clause */
/* A job whose nodes come and go, in one process on a virtual clock: real rendezvous machines (and
 * nodes of torchrun's kind, made of rendezvous_decision in torchrun's polling loop) around a record
 * that is changed by compare-and-set. What lies between them (connections, presence, watches,
 * links, agents, clocks) and what befalls them is made up from a seed. What must hold at every
 * moment is checked after every event, and that the job gets together and ends once nothing befalls
 * it any more; the first thing wrong ends the play and is said in `complaint`. The same settings
 * give the same play. */
#ifndef MUSTER_TESTS_RENDEZVOUS_CLUSTER_H
#define MUSTER_TESTS_RENDEZVOUS_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "core/rendezvous_settings.h"

/* How often things befall a node, as weights against each other. */
struct rendezvous_weather {
    int worker_fails;
    int is_killed;      /* the agent's process: its connection ends at once */
    int is_powered_off; /* its host: its connection falls silent */
    int is_stalled;     /* SIGSTOP, and SIGCONT some time later */
    int link_breaks;    /* down, and up again some time later */
    int leaves;         /* SIGTERM */
    int another_comes;  /* a new node */
    int one_flaps;      /* a node comes and dies, again and again */
    int clock_jumps;    /* its wall clock, by up to an hour */
    int job_gives_up;   /* a failure that costs more restarts than are left */
};

struct rendezvous_cluster_settings {
    uint64_t seed;
    struct rendezvous_settings rendezvous;
    int nodes;              /* that come at the beginning */
    int torch_nodes;        /* so many of them are of torchrun's kind */
    bool has_presence;      /* the first node hosts the store and is told who is gone */
    bool host_dies;         /* at some time; then everybody must end */
    bool host_falls_silent; /* when it does */
    bool finishes_in_storm; /* the workers may be done before the storm is over */
    double finish_seconds;  /* so long it takes until all workers are done */
    int faults;             /* how many things happen … */
    double storm_seconds;   /* … within this time */
    double gather_seconds;  /* so long it may take after it until all are in one world */
    bool losses_spread;     /* workers whose peers are lost fail, soon */
    bool has_no_restarts;   /* such failures would end the job */
    int lost_changes;       /* percent of watchers' wake-ups that are lost */
    struct rendezvous_weather weather;
    bool is_printed; /* the transcript, a line per event with its effects */
};

/* What became of it, for what only some tests demand. */
struct rendezvous_cluster_outcome {
    char *complaint; /* NULL: none; to be freed */
    int64_t rounds;  /* of the record in the end */
    int64_t restarts;
    int ended_as_spares;
    int ended_closed;
    int ended_failed;
    int worlds_told;
    uint64_t events;        /* that were played */
    double seconds;         /* virtual time it took */
    double gathered_after;  /* from the end of the storm until all were in one world */
    double first_world;     /* when it was complete */
    double longest_news;    /* from the write of a new round until a node of the old one was told */
    double longest_restart; /* from a worker's failure until the write of the next round */
    double longest_loss;    /* from the end of a participant until it was out of the record */
    double longest_doubt;   /* from a last failure until it stood */
    double longest_end;     /* from the end of the job until nobody was there */
};

struct rendezvous_cluster_outcome rendezvous_cluster_play(
    const struct rendezvous_cluster_settings *settings);

#endif
