/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_guardian.h"

#include <stdlib.h>

#include "base/memory.h"

struct agent_guardian {
    const struct agent_guardian_settings settings;
    struct guardian *process;
};

static void add_fingerprint(
    const struct agent_guardian_settings *settings, struct text_list *out_fingerprint) {
    const struct agent_preparation *preparation = settings->preparation;
    if (preparation->logs.run_path != NULL) {
        text_list_add_taken(out_fingerprint,
            text_format("TORCHELASTIC_ERROR_FILE=%s/", preparation->logs.run_path));
    } else if (settings->config->run_id == NULL) { /* a random one, which nobody else can have */
        text_list_add_taken(
            out_fingerprint, text_format("TORCHELASTIC_RUN_ID=%s", preparation->run_id));
    }
}

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

static enum failure_code start(
    struct agent_guardian *guardian, struct event_loop *loop, struct failure *failure) {
    const struct log_directory *logs = &guardian->settings.preparation->logs;
    const struct guardian_events events = {ended, guardian};
    struct text_list fingerprint = {0};
    add_fingerprint(&guardian->settings, &fingerprint);
    enum failure_code code = guardian_start(&fingerprint, &guardian->process, failure);
    text_list_clear(&fingerprint);
    if (code == FAILURE_NONE && logs->is_temporary) {
        guardian_remove_at_end(guardian->process, GUARDIAN_REMAINS_DIRECTORY, logs->base_path);
    }
    return code == FAILURE_NONE ? guardian_watch(guardian->process, loop, &events, failure) : code;
}

enum failure_code agent_guardian_new(struct event_loop *loop,
    const struct agent_guardian_settings *settings, struct agent_guardian **out_guardian,
    struct failure *failure) {
    const struct agent_guardian initial = {.settings = *settings};
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
        guardian_free(guardian->process);
        free(guardian);
    }
}

struct guardian *agent_guardian_process(const struct agent_guardian *guardian) {
    return guardian == NULL ? NULL : guardian->process;
}
