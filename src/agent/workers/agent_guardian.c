/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_guardian.h"

#include <stdlib.h>

#include "base/memory.h"

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
