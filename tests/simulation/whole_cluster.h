/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole job in one process on a virtual clock: the nodes are what ships (core/node/node_machine,
 * wire/rendezvous/rendezvous_record_store, the spelling of wire/round), and so is the store that
 * they meet at (core/store/store_table with its presence, core/rendezvous/presence_watch, the wire
 * codecs). Made up are processes, machines, connections and users: from a seed, or as a story says.
 *
 * What must hold at every moment is checked while it plays; what must hold in the end is for who
 * plays it. The same settings play the same job. */
#ifndef MUSTER_TESTS_WHOLE_CLUSTER_H
#define MUSTER_TESTS_WHOLE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/node/node_membership.h"

#define WHOLE_NODES_MAXIMUM 10240
#define WHOLE_WORKERS_MAXIMUM 4
#define WHOLE_PARTS_MAXIMUM 8

/* How often things happen, compared with each other. */
struct whole_faults {
    int worker_fails;
    int agent_is_killed;   /* its process; its guardian ends the workers */
    int machine_goes_off;  /* without a word to anybody */
    int agent_is_stopped;  /* for a while, by SIGSTOP; its workers run on */
    int link_breaks;       /* to the store, for a while, in both directions or one */
    int link_loses;        /* packets: up to half of them in a direction, for a while */
    int connection_resets; /* one of a node's */
    int reads_slowly;      /* what comes from the store reaches the node late for a while */
    int is_signalled;      /* by a user */
    int another_comes;
    int one_flaps;         /* comes and goes all the time */
    int clock_jumps;       /* the wall clock */
    int worker_hangs;      /* in the kernel, for too long: the job fails */
    int record_is_lost;    /* somebody deletes it, or empties it */
    int store_begins_anew; /* empty; its host is a machine of its own */
};

/* How likely things are, in percent. */
struct whole_weather {
    struct whole_faults faults;
    int worker_fails;       /* a worker that ends by itself fails */
    int worker_is_stubborn; /* it ignores every signal but SIGKILL */
    int worker_is_stuck;    /* it does not even die of SIGKILL */
    int worker_hangs;       /* in the kernel for a while, which its agent finds too long */
    int leaves_orphan;      /* its end leaves a process of its session behind */
    int announces_end;      /* its agent knows of a failure before it is over */
    int start_fails;        /* of one attempt's start */
    int user_signals;       /* at some time a user signals a node, and half as often again */
    int message_is_lost;    /* once; it comes again later, and what follows it waits */
    int loss;               /* of a thousand packets of every link to the host, all the time */
};

/* What a story lets happen. */
enum whole_deed {
    WHOLE_NODE_COMES,
    WHOLE_TORCH_NODE_COMES,
    WHOLE_WORKER_ENDS, /* worker 0 of the node, with this exit code */
    WHOLE_WORKERS_END, /* all of the node, with this exit code */
    WHOLE_SIGNAL,      /* of this number, to the agent */
    WHOLE_AGENT_KILLED,
    WHOLE_MACHINE_OFF,
    WHOLE_AGENT_STOPPED, /* for so many milliseconds */
    WHOLE_LINK_BROKEN,   /* the same */
    /* 0: somebody deletes its key, 1: empties it, 2: as no node has written, 3: deletes it
     * together with the counter of changes */
    WHOLE_RECORD_LOST,
    WHOLE_STORE_ANEW,    /* empty; the host is a machine of its own */
    WHOLE_CLOSE_RECORD,  /* somebody who is no node of the job marks it closed, without a failure */
    WHOLE_GHOST_WRITTEN, /* somebody writes a node into it that is nowhere */
};

struct whole_happens {
    double at; /* seconds */
    enum whole_deed deed;
    int node; /* in the order of their coming */
    int number;
};

/* What those who play may demand besides what always must hold. */
struct whole_demands {
    bool no_start_after_signal; /* no worker is started within the settling time of the first
                                   signal, and each worker is signalled at most once */
    bool no_smaller_world;      /* a world is never smaller than the one before */
    bool success_everywhere;    /* every node ends with 0 … */
    double soon_after_work;     /* … so many seconds after the last worker at most; 0: whenever */
};

struct whole_settings {
    uint64_t seed;
    enum membership_kind kind;
    struct rendezvous_settings rendezvous; /* changing */
    int nodes;                             /* at the start */
    int torch_nodes;                       /* the last of these are torchrun's */
    int workers;                           /* per node; 0: one to three */
    int max_restarts;
    double shutdown_timeout;
    bool is_hosted; /* the first node hosts the store; else a server without presence does */
    bool is_uniform;
    double work_seconds; /* a worker works for so long … */
    double work_spread;  /* … and up to so much longer; both 0: until all are to finish */
    double start_spread; /* nodes come within this time … */
    bool comes_evenly;   /* … else most of them at once */
    const struct whole_happens *story;
    size_t story_length;
    bool is_calm; /* every message takes a millisecond, and nothing is left to chance */
    /* Traffic is counted for each part of the story; each begins so many seconds after the one
     * before. 0: it is counted in one. */
    double part_seconds;

    /* A storm, then peace until all are together, then all workers finish. */
    bool is_storm;
    int fault_count; /* within … */
    double storm_seconds;
    double gather_seconds; /* so long it may take after it until all are in one world */
    double finish_seconds; /* so long it takes until all workers are done */
    bool finishes_in_storm;
    bool host_dies;         /* at some time; then everybody must end */
    bool host_falls_silent; /* when it does */
    bool has_standby;       /* nodes keep standby workers */
    bool losses_spread;     /* workers whose peers are lost fail, soon */
    struct whole_weather weather;

    struct whole_demands demands;
    int transcript_of; /* this node's lines are kept; -1: nobody's */
    bool is_printed;   /* everything, a line per event with its effects */
};

/* What became of one node. */
struct whole_ending {
    bool is_torch;
    bool was_killed;
    int status; /* of its process */
    enum agent_outcome_kind outcome;
    bool is_settled;
    bool has_failure; /* a worker of its last attempt */
    bool is_stuck;    /* the one to blame hung in the kernel */
    int starts;       /* how often its workers were started */
    int user_signals;
    double ended_at;
    double work_done_at; /* its last worker's end */
};

/* Between the nodes and the store, in both directions. */
struct whole_traffic {
    uint64_t messages;
    uint64_t bytes;
};

struct whole_outcome {
    char *complaint; /* NULL: none; to be freed */
    struct text transcript;
    struct whole_ending *endings; /* to be freed */
    int node_count;
    int64_t rounds; /* that the record has counted in the end */
    int64_t restarts;
    bool has_trouble; /* a worker ended badly, or a user or a start stopped a node */
    int worlds;
    uint64_t events;
    struct whole_traffic traffic[WHOLE_PARTS_MAXIMUM]; /* the last has all the rest */
    double seconds;
    double failed_at; /* when the first failure for good was told to others; -1: never */
    double gathered_after;
    double first_world;
    int given;              /* workers that were started from standby */
    int taught;             /* standby workers that were ready and had to learn more */
    int fences;             /* how often a guardian ended workers of an agent that stood still */
    int false_losses;       /* how often an end took the other one for gone that was there */
    double longest_restart; /* from a worker's failure until the write of the next round */
    double longest_loss;    /* from the end of a participant until it was out of the record */
    double longest_news;    /* from the write of a new round until a node of the old one was told */
    double longest_doubt;   /* from a last failure until it stood */
    double longest_end; /* from the end of the job until nobody was there who had met the store */
};

struct whole_outcome whole_cluster_play(const struct whole_settings *settings);
void whole_outcome_clear(struct whole_outcome *outcome);

#endif
