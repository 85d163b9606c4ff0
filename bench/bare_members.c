/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of a job that have no workers, no agent and no round exchange: only the rendezvous, as it
 * ships (core/rendezvous, wire, host), over real sockets, many nodes in each process. So a machine
 * plays thousands of nodes whose agents it could not start. It prints one line of JSON: how long
 * they take to be one world when all join at once, and to be the next one after a worker failed.
 *
 *     bare_members PORT MEMBERS PROCESSES DELEGATION [REST]
 *
 * DELEGATION is true or false. One process hosts the store and is one of the members. With REST the
 * world is left alone for so many seconds instead, with the settings of a job that has none of its
 * own, and the line says what the host's process took meanwhile. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/rendezvous/agent_store_host.h"
#include "core/rendezvous/rendezvous_step.h"
#include "host/loop/clock.h"
#include "host/loop/descriptors.h"
#include "host/rendezvous/rendezvous_backend.h"

#define RUN_ID "bench"
#define PATIENCE_SECONDS 120
#define REGROUPS_MOST 3
/* Before the rest: the work of the start is over, and connections that lost packets in it are calm.
 */
#define SETTLING_SECONDS 40
#define CALM_SECONDS 15 /* instead of ten minutes, which nobody waits for */
#define NAP ((struct timespec){.tv_nsec = 1000000})

struct options {
    int port;
    int members;
    int processes;
    bool delegates;
    int rest; /* seconds; 0: none */
};

/* What the processes share. */
struct board {
    atomic_int ready; /* processes */
    atomic_bool may_join;
    atomic_int asked_regroups;
    atomic_int members_of[1 + REGROUPS_MOST]; /* the world of this round */
    _Atomic int64_t last_of[1 + REGROUPS_MOST];
    atomic_bool is_broken;
    atomic_bool rests; /* nobody is to look here any more */
};

struct member {
    struct process *process;
    struct rendezvous_machine *machine;
    struct rendezvous_backend *backend;
    struct event_timer *timer;
    int64_t round; /* of its world */
};

/* One process of the bench. The first hosts the store. */
struct process {
    const struct options *options;
    struct board *board;
    struct event_loop *loop;
    struct launch_config config;
    struct log log;
    struct agent_hosted_store *store; /* NULL in all but the first */
    struct member *members;
    int count;
    struct event_timer *look; /* at the board */
    bool has_joined;
    bool is_last; /* of the processes */
    int regroups;
};

static void break_off(struct process *process, const char *why) {
    fprintf(stderr, "bare_members: %s\n", why);
    atomic_store(&process->board->is_broken, true);
}

static void step(struct member *member, struct rendezvous_event event);

static void note_world(struct member *member, int64_t round) {
    struct board *board = member->process->board;
    member->round = round;
    if (round > REGROUPS_MOST) {
        break_off(member->process, "more rounds than were asked for");
        return;
    }
    atomic_store(&board->last_of[round], clock_now().nanoseconds);
    atomic_fetch_add(&board->members_of[round], 1);
}

static void connect_to_store(struct member *member, const struct rendezvous_effect *effect) {
    rendezvous_backend_connect(member->backend, &(struct rendezvous_backend_trying){
                                                    .host = "127.0.0.1",
                                                    .port = member->process->options->port,
                                                    .deadline = effect->deadline,
                                                    .refusal_patience = effect->refusal_patience,
                                                });
}

/* What is told to the node's agent. Its answer is the next event; none: it has none. */
static enum rendezvous_event_kind answer(
    struct member *member, const struct rendezvous_effect *effect) {
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_WORLD:
        note_world(member, effect->world.round);
        return RENDEZVOUS_EVENT_PLACED;
    case RENDEZVOUS_EFFECT_ROUND_OVER:
        return RENDEZVOUS_EVENT_JOIN_ASKED;
    case RENDEZVOUS_EFFECT_WARM:
        return RENDEZVOUS_EVENT_WARMED;
    case RENDEZVOUS_EFFECT_CLOSED:
    case RENDEZVOUS_EFFECT_FAILED:
        break_off(member->process, effect->told.reason);
        break;
    default:
        break;
    }
    return RENDEZVOUS_EVENT_KIND_COUNT;
}

static void perform(struct member *member, const struct rendezvous_effect *effect) {
    struct rendezvous_backend *backend = member->backend;
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_CONNECT:
        connect_to_store(member, effect);
        break;
    case RENDEZVOUS_EFFECT_PRESENT:
        rendezvous_backend_present(backend, effect);
        break;
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
        agent_hosted_store_tell(member->process->store, effect);
        break;
    case RENDEZVOUS_EFFECT_BEAT:
        rendezvous_backend_beat(backend);
        break;
    case RENDEZVOUS_EFFECT_FETCH:
        rendezvous_backend_fetch(backend);
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        rendezvous_backend_write(backend, effect->write.state, effect->write.is_quiet);
        break;
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
        rendezvous_backend_tell_watchers(backend);
        break;
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        event_timer_set(member->timer, effect->deadline);
        break;
    default:
        break; /* no failure is ever final here, and nobody is done */
    }
}

/* The agent's answers come after all effects, which are good until the next step. */
static void step(struct member *member, struct rendezvous_event event) {
    struct rendezvous_effects effects;
    enum rendezvous_event_kind answers[RENDEZVOUS_EFFECTS_MAXIMUM];
    event.now = clock_now();
    event.wall_now = clock_wall_time();
    rendezvous_machine_step(member->machine, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        perform(member, &effects.items[i]);
        answers[i] = answer(member, &effects.items[i]);
    }
    for (size_t i = 0; i < effects.count; i++) {
        if (answers[i] != RENDEZVOUS_EVENT_KIND_COUNT) {
            step(member, (struct rendezvous_event){.kind = answers[i]});
        }
    }
}

static void told(void *context, const struct rendezvous_event *event) {
    struct member *member = context;
    struct rendezvous_event taken = *event;
    if (taken.kind == RENDEZVOUS_EVENT_CONNECTED) {
        taken.connected.is_host =
            member->process->store != NULL && member == member->process->members;
    }
    step(member, taken);
}

static void timer_fired(void *context) {
    step(context, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_TIMER_FIRED});
}

/* What the store tells its host. */

static void gone(void *context, const struct node_identity *identity, bool has_finished) {
    struct process *process = context;
    step(process->members, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE,
                               .gone = {*identity, has_finished}});
}

static void wished(
    void *context, const struct node_identity *identity, const struct rendezvous_wish *wish) {
    struct process *process = context;
    step(process->members,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WISHED, .wished = {*identity, *wish}});
}

static void stranger_wrote(void *context) {
    struct process *process = context;
    step(process->members, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STRANGER_WROTE});
}

/* Life. */

static void say(void *context, enum log_level level, const char *origin, const char *message) {
    (void)context;
    (void)level;
    (void)origin;
    (void)fprintf(stderr, "bare_members: %s\n", message);
}

static void host_store(struct process *process) {
    struct failure failure = {0};
    process->log = (struct log){.threshold = LOG_LEVEL_WARNING, .write = say};
    const struct agent_hosted_store_settings settings = {
        .config = &process->config,
        .run_id = RUN_ID,
        .log = &process->log,
        .gone = gone,
        .record_written = stranger_wrote,
        .wished = process->options->delegates ? wished : NULL,
        .context = process,
    };
    if (agent_hosted_store_open(process->loop, &settings, "127.0.0.1", process->options->port,
            &process->store, &failure) != FAILURE_NONE) {
        break_off(process, failure.message);
        exit(1);
    }
}

static void make_member(struct process *process, int index) {
    struct member *member = &process->members[index];
    const struct rendezvous_settings *rendezvous = &process->config.dynamic.settings;
    struct rendezvous_machine_settings machine = {
        .rendezvous = *rendezvous, .seed = (uint64_t)getpid() << 20 | (uint64_t)index};
    char address[32];
    snprintf(address, sizeof address, "node%d-%d", (int)getpid(), index);
    node_identity_init(&machine.identity, address, getpid(),
        node_identity_muster_local_id((uint32_t)machine.seed));
    struct rendezvous_backend_settings backend = {
        .run_id = RUN_ID,
        .minimum_nodes = rendezvous->minimum_nodes,
        .maximum_nodes = rendezvous->maximum_nodes,
        .silence_timeout = rendezvous->silence_timeout,
        .calm_after = rendezvous->delegates ? rendezvous->calm_after : (struct duration){0},
        .answer_timeout = {INT64_C(1000000000) * PATIENCE_SECONDS},
        .delegates = rendezvous->delegates,
        .observer = {.told = told, .context = member},
    };
    *member = (struct member){.process = process, .machine = rendezvous_machine_new(&machine)};
    member->backend = rendezvous_backend_new(process->loop, &backend);
    member->timer = event_timer_new(process->loop, timer_fired, member);
}

/* Its agent has ended the other workers, of which there are none, and asks for the next world. */
static void fail_worker(struct member *member) {
    step(member, (struct rendezvous_event){
                     .kind = RENDEZVOUS_EVENT_RESTART_ASKED, .reason = "a worker failed"});
    step(member, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
}

/* The parent's wishes. A worker of the last member fails: that is not the host. */
static void look(void *context) {
    struct process *process = context;
    struct board *board = process->board;
    if (!process->has_joined && atomic_load(&board->may_join)) {
        process->has_joined = true;
        for (int i = 0; i < process->count; i++) {
            step(&process->members[i],
                (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
        }
    }
    if (process->is_last && process->regroups < atomic_load(&board->asked_regroups)) {
        process->regroups++;
        fail_worker(&process->members[process->count - 1]);
    }
    if (!atomic_load(&board->rests)) {
        event_timer_set(process->look, instant_after(clock_now(), duration_from_milliseconds(1)));
    }
}

/* The first process has the host alone, as on a machine of its own. */
static int share(const struct options *options, int index) {
    int others = options->members - 1;
    int groups = options->processes - 1;
    return index == 0 ? 1 : others / groups + (index <= others % groups ? 1 : 0);
}

static void configure(struct process *process) {
    struct rendezvous_settings *rendezvous = &process->config.dynamic.settings;
    rendezvous_settings_init(rendezvous);
    rendezvous->minimum_nodes = rendezvous->maximum_nodes = process->options->members;
    rendezvous->delegates = process->options->delegates;
    rendezvous->calm_after = (struct duration){INT64_C(1000000000) * CALM_SECONDS};
    if (process->options->rest == 0) {
        rendezvous->silence_timeout = (struct duration){INT64_C(1000000000) * PATIENCE_SECONDS};
    }
    process->config.minimum_nodes = process->config.maximum_nodes = process->options->members;
    process->config.is_local = true; /* it listens on loopback only */
    process->config.dynamic.port = process->options->port;
}

_Noreturn static void run_process(const struct options *options, struct board *board, int index) {
    struct process process = {.options = options, .board = board, .count = share(options, index)};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    configure(&process);
    if (event_loop_new(&process.loop, NULL) != FAILURE_NONE) {
        exit(1);
    }
    if (index == 0) {
        host_store(&process);
    }
    process.is_last = index == options->processes - 1;
    process.members = calloc((size_t)process.count, sizeof *process.members);
    for (int i = 0; i < process.count; i++) {
        make_member(&process, i);
    }
    process.look = event_timer_new(process.loop, look, &process);
    look(&process);
    atomic_fetch_add(&board->ready, 1);
    event_loop_run(process.loop);
    exit(0);
}

/* Milliseconds until all are in the world of this round; negative: never. */
static double await_world(
    struct board *board, const struct options *options, int round, int64_t since) {
    int64_t deadline = since + INT64_C(1000000000) * PATIENCE_SECONDS;
    while (atomic_load(&board->members_of[round]) < options->members) {
        if (atomic_load(&board->is_broken) || clock_now().nanoseconds > deadline) {
            return -1;
        }
        nanosleep(&NAP, NULL);
    }
    return (double)(atomic_load(&board->last_of[round]) - since) / 1e6;
}

/* All threads of the host's process. */
static double host_milliseconds(pid_t host) {
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(host, &clock) == 0) {
        (void)clock_gettime(clock, &used);
    }
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

static double host_mebibytes(pid_t host) {
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)host);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        (void)!fscanf(file, "%*d %ld", &pages);
        fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

static void pass_seconds(int seconds) {
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
}

static int rest(struct board *board, const struct options *options, pid_t host) {
    int64_t began = clock_now().nanoseconds;
    atomic_store(&board->may_join, true);
    double joined = await_world(board, options, 0, began);
    atomic_store(&board->rests, true);
    pass_seconds(SETTLING_SECONDS);
    double before = host_milliseconds(host);
    pass_seconds(options->rest);
    printf("{\"members\": %d, \"join_milliseconds\": %.1f, \"rest_seconds\": %d, "
           "\"host_milliseconds\": %.1f, \"host_mebibytes\": %.1f}\n",
        options->members, joined, options->rest, host_milliseconds(host) - before,
        host_mebibytes(host));
    return joined < 0 || atomic_load(&board->is_broken) ? 1 : 0;
}

static int measure(struct board *board, const struct options *options) {
    int64_t began = clock_now().nanoseconds;
    atomic_store(&board->may_join, true);
    double joined = await_world(board, options, 0, began);
    printf("{\"members\": %d, \"join_milliseconds\": %.1f, \"regroup_milliseconds\": [",
        options->members, joined);
    double last = joined;
    for (int round = 1; round <= REGROUPS_MOST && last >= 0; round++) {
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        began = clock_now().nanoseconds;
        atomic_store(&board->asked_regroups, round);
        last = await_world(board, options, round, began);
        printf("%s%.1f", round > 1 ? ", " : "", last);
    }
    printf("]}\n");
    return last < 0 ? 1 : 0;
}

static struct options read_options(int argument_count, char **arguments) {
    struct options options = {0};
    if (argument_count == 5 || argument_count == 6) {
        options.port = atoi(arguments[1]);
        options.members = atoi(arguments[2]);
        options.processes = atoi(arguments[3]);
        options.delegates = strcmp(arguments[4], "true") == 0;
        options.rest = argument_count == 6 ? atoi(arguments[5]) : 0;
    }
    if (options.port < 1 || options.processes < 2 || options.members < options.processes) {
        fprintf(stderr, "usage: bare_members PORT MEMBERS PROCESSES DELEGATION [REST]\n"
                        "at least 2 processes, and as many members\n");
        exit(2);
    }
    return options;
}

int main(int argument_count, char **arguments) {
    const struct options options = read_options(argument_count, arguments);
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    descriptor_limit_raise();
    signal(SIGPIPE, SIG_IGN);
    pid_t *pids = calloc((size_t)options.processes, sizeof *pids);
    for (int i = 0; i < options.processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            run_process(&options, board, i);
        }
    }
    while (atomic_load(&board->ready) < options.processes && !atomic_load(&board->is_broken)) {
        nanosleep(&NAP, NULL);
    }
    int status = options.rest > 0 ? rest(board, &options, pids[0]) : measure(board, &options);
    for (int i = 0; i < options.processes; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    free(pids);
    return status;
}
