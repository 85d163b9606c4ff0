/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_guardian.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/workers/signal_name.h"
#include "host/process/process_apart.h"

#define SIGNS_OF_LIFE 8 /* in the time that the agent may stand still */
#define LONGEST_PAUSE_MILLISECONDS 1000

struct agent_guardian {
    const struct agent_guardian_settings settings;
    struct event_loop *loop;
    struct guardian *process;
    struct event_timer *timer; /* of the signs of life */
    struct instant last_sign;
};

static void ended(void *context, pid_t pid, const struct failure *failure) {
    const struct agent_guardian *guardian = context;
    if (failure == NULL) {
        log_warning(guardian->settings.log,
            "the guardian (process %lld) has ended; process %lld takes its place", (long long)pid,
            (long long)guardian_pid(guardian->process));
    } else {
        log_error(guardian->settings.log,
            "the guardian (process %lld) has ended, and %s; until that works, workers' processes "
            "are left behind if this agent is killed",
            (long long)pid, failure->message);
    }
}

/* By now it has been longer than the guardian said. */
static void fenced(void *context, struct duration silence) {
    const struct agent_guardian *guardian = context;
    struct duration how_long = instant_until(guardian->last_sign, event_loop_now(guardian->loop));
    bool has_spoken_since = how_long.nanoseconds < silence.nanoseconds;
    guardian->settings.fenced(guardian->settings.context, has_spoken_since ? silence : how_long);
}

static struct duration pause_after(struct duration patience) {
    struct duration longest = duration_from_milliseconds(LONGEST_PAUSE_MILLISECONDS);
    struct duration pause = {patience.nanoseconds / SIGNS_OF_LIFE};
    bool is_usable = pause.nanoseconds > 0 && pause.nanoseconds < longest.nanoseconds;
    return is_usable ? pause : longest;
}

static void give_sign_of_life(void *context) {
    struct agent_guardian *guardian = context;
    struct duration patience = guardian->settings.patience(guardian->settings.context);
    guardian_listen(guardian->process); /* before the sign, for how long there was none */
    guardian->last_sign = event_loop_now(guardian->loop);
    guardian_speak(guardian->process, patience);
    struct duration pause = pause_after(patience);
    event_timer_set_between(guardian->timer,
        instant_after(guardian->last_sign, (struct duration){pause.nanoseconds / 2}),
        instant_after(guardian->last_sign, pause));
}

void agent_guardian_speak(struct agent_guardian *guardian) {
    if (guardian != NULL && guardian->timer != NULL) {
        give_sign_of_life(guardian);
    }
}

static void begin_signs_of_life(struct agent_guardian *guardian) {
    guardian->timer = event_timer_new(guardian->loop, give_sign_of_life, guardian);
    event_timer_set(guardian->timer, event_loop_now(guardian->loop));
}

static enum failure_code start(
    struct agent_guardian *guardian, struct event_loop *loop, struct failure *failure) {
    const struct log_directory *logs = &guardian->settings.preparation->logs;
    const struct guardian_events events = {ended, fenced, guardian};
    struct text_list fingerprint = {0};
    agent_preparation_fingerprint(guardian->settings.preparation, &fingerprint);
    bool may_fence = guardian->settings.patience != NULL;
    enum failure_code code = guardian_start(&fingerprint, may_fence, &guardian->process, failure);
    text_list_clear(&fingerprint);
    if (code == FAILURE_NONE && logs->is_temporary) {
        guardian_remove_at_end(guardian->process, GUARDIAN_REMAINS_DIRECTORY, logs->base_path);
    }
    if (code == FAILURE_NONE && may_fence) {
        begin_signs_of_life(guardian);
    }
    return code == FAILURE_NONE ? guardian_watch(guardian->process, loop, &events, failure) : code;
}

enum failure_code agent_guardian_new(struct event_loop *loop,
    const struct agent_guardian_settings *settings, struct agent_guardian **out_guardian,
    struct failure *failure) {
    const struct agent_guardian initial = {.settings = *settings, .loop = loop};
    struct agent_guardian *guardian = memory_duplicate(&initial, sizeof initial);
    enum failure_code code = start(guardian, loop, failure);
    if (code != FAILURE_NONE) {
        agent_guardian_free(guardian);
        return code;
    }
    *out_guardian = guardian;
    return FAILURE_NONE;
}

void agent_guardian_free(struct agent_guardian *guardian) {
    if (guardian != NULL) {
        event_timer_free(guardian->timer);
        guardian_free(guardian->process);
        free(guardian);
    }
}

void agent_guardian_listen(const struct agent_guardian *guardian) {
    guardian_listen(agent_guardian_process(guardian));
}

struct guardian *agent_guardian_process(const struct agent_guardian *guardian) {
    return guardian == NULL ? NULL : guardian->process;
}

/* Signal passing. */

/* Who signals a whole tree of processes needs far less to come from one to the next. */
#define WITNESS_PATIENCE_MILLISECONDS 250
/* Who signals many nodes needs less, as a rule, to come to the last one. */
#define RELAY_PATIENCE_MILLISECONDS 1000
/* The witness answers as soon as the machine lets it run. One that is stopped does not. */
#define ANSWER_PATIENCE_MILLISECONDS 2000
/* Between two signals that are one. Whoever signals a tree looks first which processes are in it;
 * workers that are younger may have been missed. */
#define SAME_SIGNAL_MILLISECONDS 1000

struct sending {
    struct agent_workers *workers;
    const struct worker_group *group;
    const struct log *log;
    int signal; /* 0: none waits */
};

/* When a signal came last. */
struct arrival {
    bool is_there;
    struct instant when;
};

struct signal_passing {
    struct signal_witness *witness;
    struct event_loop *loop;
    struct event_timer *patience;
    struct arrival came[SIGNAL_NUMBER_REAL_TIME_LAST + 1];
    struct arrival seen[SIGNAL_NUMBER_REAL_TIME_LAST + 1];
    bool is_starting;
    struct arrival started; /* the last start was over */
    struct sending waiting;
    int patience_milliseconds; /* with the signal that came last */
    bool is_asked;             /* the witness, about what waits */
    size_t unanswered_count;   /* of all questions */
};

/* One line, in torchrun's words where there is one worker. */
static void tell(const struct sending *sending) {
    struct text pids = {0};
    size_t count = 0;
    for (size_t rank = 0; rank < sending->group->count; rank++) {
        pid_t pid = sending->group->states[rank] == WORKER_RUNNING
                        ? agent_workers_pid(sending->workers, (int)rank)
                        : 0;
        if (pid != 0) {
            text_append_format(&pids, "%s%lld", count++ > 0 ? ", " : "", (long long)pid);
        }
    }
    if (count > 0) {
        log_warning(sending->log, "Sending process%s %s closing signal %s", count > 1 ? "es" : "",
            text_string(&pids), signal_name_from_number(sending->signal));
    }
    text_clear(&pids);
}

static void send_now(const struct sending *sending) {
    tell(sending);
    agent_workers_signal(sending->workers, sending->signal);
}

static bool is_within(struct arrival one, struct arrival other, int milliseconds) {
    struct duration bound = duration_from_milliseconds(milliseconds);
    return one.is_there && other.is_there &&
           !instant_is_before(instant_after(one.when, bound), other.when) &&
           !instant_is_before(instant_after(other.when, bound), one.when);
}

static bool is_seen(const struct signal_passing *passing, int signal) {
    return is_within(passing->came[signal], passing->seen[signal], SAME_SIGNAL_MILLISECONDS);
}

/* The workers have it. */
static void leave_out(struct signal_passing *passing) {
    log_info(passing->waiting.log,
        "the workers have got %s beside this agent; it is not sent again",
        signal_name_from_number(passing->waiting.signal));
    passing->waiting.signal = 0;
    event_timer_stop(passing->patience);
}

static void send_what_waits(struct signal_passing *passing) {
    struct sending sending = passing->waiting;
    passing->waiting.signal = 0;
    event_timer_stop(passing->patience);
    send_now(&sending);
}

static void witness_answered(struct signal_passing *passing) {
    passing->unanswered_count--;
    if (passing->waiting.signal != 0 && passing->is_asked && passing->unanswered_count == 0) {
        send_what_waits(passing);
    }
}

static void witness_saw(void *context, int signal) {
    struct signal_passing *passing = context;
    if (signal == SIGNAL_WITNESS_ANSWER) {
        witness_answered(passing);
    } else if (signal <= SIGNAL_NUMBER_REAL_TIME_LAST) {
        passing->seen[signal] = (struct arrival){true, event_loop_now(passing->loop)};
        if (passing->waiting.signal == signal) {
            leave_out(passing);
        }
    }
}

static void wait_until(struct signal_passing *passing, struct instant since, int milliseconds) {
    event_timer_set(
        passing->patience, instant_after(since, duration_from_milliseconds(milliseconds)));
}

/* The witness may have got the signal, and wait for the machine to let it run. So it is asked. */
static void patience_is_over(void *context) {
    struct signal_passing *passing = context;
    bool is_there = signal_witness_listen(passing->witness); /* the loop may have stood still */
    if (passing->waiting.signal == 0) {
        return;
    }
    if (!is_there || passing->is_asked || !signal_witness_ask(passing->witness)) {
        send_what_waits(passing);
        return;
    }
    passing->is_asked = true;
    passing->unanswered_count++;
    wait_until(passing, event_loop_now(passing->loop), ANSWER_PATIENCE_MILLISECONDS);
}

struct signal_passing *signal_passing_new(struct event_loop *loop, const struct log *log) {
    struct failure failure = {0};
    struct signal_passing *passing = memory_allocate(sizeof *passing);
    passing->loop = loop;
    if (signal_witness_new(loop, witness_saw, passing, &passing->witness, &failure) !=
        FAILURE_NONE) {
        log_warning(log, "a worker may get a signal to all processes twice: %s", failure.message);
        free(passing);
        return NULL;
    }
    passing->patience = event_timer_new(loop, patience_is_over, passing);
    return passing;
}

void signal_passing_free(struct signal_passing *passing) {
    if (passing != NULL) {
        event_timer_free(passing->patience);
        signal_witness_free(passing->witness);
        free(passing);
    }
}

void signal_passing_note(struct signal_passing *passing, int signal, bool is_relayed) {
    if (passing != NULL) {
        passing->came[signal] = (struct arrival){true, event_loop_now(passing->loop)};
        passing->patience_milliseconds =
            is_relayed ? RELAY_PATIENCE_MILLISECONDS : WITNESS_PATIENCE_MILLISECONDS;
    }
}

void signal_passing_note_start(struct signal_passing *passing, bool is_over) {
    if (passing != NULL) {
        passing->is_starting = !is_over;
        passing->started = (struct arrival){true, event_loop_now(passing->loop)};
    }
}

/* Whether the workers may have got the signal that is to be sent. */
static bool may_have_it(struct signal_passing *passing, int signal) {
    return passing != NULL && passing->came[signal].is_there && !passing->is_starting &&
           !is_within(passing->started, passing->came[signal], SAME_SIGNAL_MILLISECONDS) &&
           signal_witness_listen(passing->witness);
}

void signal_passing_send(struct signal_passing *passing, struct agent_workers *workers,
    const struct worker_group *group, const struct log *log, int signal) {
    struct sending sending = {workers, group, log, signal};
    if (passing != NULL) {
        passing->waiting.signal = 0;
        passing->is_asked = false;
        event_timer_stop(passing->patience);
    }
    if (!may_have_it(passing, signal)) {
        send_now(&sending);
        return;
    }
    passing->waiting = sending;
    if (is_seen(passing, signal)) {
        leave_out(passing);
        return;
    }
    wait_until(passing, passing->came[signal].when, passing->patience_milliseconds);
}

pid_t signal_passing_witness(const struct signal_passing *passing) {
    return signal_witness_pid(passing->witness);
}

bool signal_passing_has_seen(const struct signal_passing *passing, int signal) {
    return passing->seen[signal].is_there;
}
