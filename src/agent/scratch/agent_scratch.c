/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/scratch/agent_scratch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "host/machine/machine.h"
#include "host/scratch/scratch_directory.h"

#define SHARED_MEMORY "/dev/shm"
#define MIB ((double)(1u << 20))

struct agent_scratch {
    const struct agent_scratch_settings settings;
    struct scratch_directory directory;
};

static enum failure_code check_memory(uint64_t bytes, struct failure *failure) {
    uint64_t limit = memory_limit_read("");
    if (bytes <= limit) {
        return FAILURE_NONE;
    }
    return failure_set(failure, FAILURE_LIMIT,
        "%.1f MiB are more than the %.1f MiB of memory that this machine, or this agent's cgroup, "
        "has; ask for less",
        (double)bytes / MIB, (double)limit / MIB);
}

static void list_places(const struct text_list *environment, struct text_list *out_places) {
    const char *runtime = text_list_variable(environment, "XDG_RUNTIME_DIR");
    text_list_add(out_places, SHARED_MEMORY);
    if (runtime != NULL && *runtime == '/') {
        text_list_add(out_places, runtime);
    }
}

/* What they have left takes room from the new one. */
static void sweep(const struct log *log, const struct text_list *places) {
    struct text_list removed = {0};
    for (size_t i = 0; i < places->count; i++) {
        scratch_directory_sweep(places->items[i], &removed);
    }
    for (size_t i = 0; i < removed.count; i++) {
        log_warning(
            log, "--scratch: removed %s, which a killed job had left behind", removed.items[i]);
    }
    text_list_clear(&removed);
}

static enum failure_code make(struct agent_scratch *scratch, struct failure *failure) {
    const struct agent_scratch_settings *settings = &scratch->settings;
    uint64_t bytes = settings->config->scratch_bytes;
    struct text_list places = {0};
    enum failure_code code = check_memory(bytes, failure);
    if (code == FAILURE_NONE) {
        list_places(settings->environment, &places);
        sweep(settings->log, &places);
        code = scratch_directory_make(&places, bytes, &scratch->directory, failure);
    }
    text_list_clear(&places);
    return code == FAILURE_NONE ? code : failure_wrap(failure, "--scratch");
}

enum failure_code agent_scratch_new(const struct agent_scratch_settings *settings,
    struct agent_scratch **out_scratch, struct failure *failure) {
    const struct agent_scratch initial = {.settings = *settings};
    if (settings->config->scratch_bytes == 0) {
        *out_scratch = NULL;
        return FAILURE_NONE;
    }
    struct agent_scratch *scratch = memory_duplicate(&initial, sizeof initial);
    enum failure_code code = make(scratch, failure);
    if (code != FAILURE_NONE) {
        free(scratch);
        return code;
    }
    guardian_remove_at_end(settings->guardian, GUARDIAN_REMAINS_TREE, scratch->directory.path);
    *out_scratch = scratch;
    return FAILURE_NONE;
}

void agent_scratch_renew(struct agent_scratch *scratch) {
    struct failure failure = {0};
    if (scratch == NULL || scratch_directory_is_there(&scratch->directory)) {
        return;
    }
    const struct log *log = scratch->settings.log;
    char *old = memory_duplicate_string(scratch->directory.path);
    bool is_made = scratch_directory_remake(&scratch->directory);
    if (!is_made) {
        scratch_directory_clear(&scratch->directory);
        is_made = make(scratch, &failure) == FAILURE_NONE;
    }
    const char *gone = old != NULL ? old : "the directory";
    if (!is_made) {
        log_warning(log, "--scratch: %s was removed while the job ran; these workers have none: %s",
            gone, failure.message);
    } else {
        log_warning(log,
            "--scratch: %s was removed while the job ran, with what it held; %s is made anew", gone,
            scratch->directory.path);
        guardian_remove_at_end(
            scratch->settings.guardian, GUARDIAN_REMAINS_TREE, scratch->directory.path);
    }
    free(old);
}

static void remove_directory(struct agent_scratch *scratch) {
    const struct log *log = scratch->settings.log;
    uint64_t asked = scratch->settings.config->scratch_bytes;
    struct failure reason = {0};
    uint64_t held;
    if (!scratch_directory_remove(&scratch->directory, &held)) {
        (void)failure_set_system(
            &reason, errno, "%s could not be removed", scratch->directory.path);
        log_warning(log, "--scratch: %s; the next job with --scratch does it", reason.message);
    }
    if (held > asked) {
        log_warning(log,
            "--scratch: the workers had %.1f MiB in their directory in memory, but %.1f MiB were "
            "asked for; what they write there counts as their memory",
            (double)held / MIB, (double)asked / MIB);
    }
}

void agent_scratch_free(struct agent_scratch *scratch) {
    if (scratch != NULL) {
        remove_directory(scratch);
        scratch_directory_clear(&scratch->directory);
        free(scratch);
    }
}

void agent_scratch_set_variables(
    const struct agent_scratch *scratch, struct text_list *environment) {
    if (scratch == NULL || scratch->directory.path == NULL) {
        return;
    }
    char *bytes = text_format("%" PRIu64, scratch->settings.config->scratch_bytes);
    text_list_set_variable(environment, "MUSTER_SCRATCH", scratch->directory.path);
    text_list_set_variable(environment, "MUSTER_SCRATCH_BYTES", bytes);
    free(bytes);
}
