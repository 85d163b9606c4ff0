/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/rendezvous.h: the house's rendezvous machine for a program, which has a loop of its own.
 */
#include <muster/rendezvous.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "library/library_failure.h"
#include "library/library_memory.h"
#include "library/library_settings.h"
#include "library/rendezvous_object.h"
#include "library/rendezvous_wording.h"

#define NAME_MAXIMUM 255

static enum muster_error check(
    const struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    if (rendezvous == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the rendezvous is NULL");
    }
    if (!embedded_loop_is_of_this_process(rendezvous->embedded)) {
        return library_fail(
            failure, MUSTER_ERROR_FORKED, "the rendezvous belongs to the process that has made it");
    }
    if (rendezvous->is_freed) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the rendezvous is being freed");
    }
    return MUSTER_OK;
}

/* What functions ask that do something. */
static enum muster_error check_able(
    const struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    enum muster_error error = check(rendezvous, failure);
    return error == MUSTER_OK ? library_memory_check(failure) : error;
}

static enum muster_error check_not_over(
    const struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    enum muster_error error = check_able(rendezvous, failure);
    if (error == MUSTER_OK && rendezvous->is_shut_down) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the rendezvous was shut down");
    }
    return error;
}

/* What functions ask that wait, or call back. */
static enum muster_error check_outside(
    const struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    enum muster_error error = check_able(rendezvous, failure);
    if (error == MUSTER_OK && rendezvous->busy > 0) {
        return library_fail(failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    return error;
}

/* Making and freeing one. */

static enum muster_error read_backend(const struct muster_rendezvous_backend *given,
    struct muster_rendezvous_backend *out_backend, struct muster_failure *failure) {
    enum muster_error error = library_settings_read(
        given, sizeof *out_backend, out_backend, sizeof *out_backend, failure);
    if (error == MUSTER_OK && (out_backend->get_state == NULL || out_backend->set_state == NULL)) {
        error =
            library_fail(failure, MUSTER_ERROR_INVALID, "the backend lacks get_state or set_state");
    }
    if (error == MUSTER_OK && (out_backend->present == NULL) != (out_backend->is_gone == NULL)) {
        error = library_fail(failure, MUSTER_ERROR_INVALID, "the backend has %s without %s",
            out_backend->present != NULL ? "present" : "is_gone",
            out_backend->present != NULL ? "is_gone" : "present");
    }
    if (error == MUSTER_OK && out_backend->has_watch && out_backend->watch_fd < 0) {
        error = library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no descriptor", out_backend->watch_fd);
    }
    if (error == MUSTER_OK && out_backend->name != NULL) {
        error = library_utf8_check("backend's name", out_backend->name, NAME_MAXIMUM, failure);
    }
    return error;
}

/* Takes the configuration, also on failure. */
static enum muster_error make(const struct muster_rendezvous_settings *settings,
    struct launch_config config_taken, const struct muster_rendezvous_backend *backend,
    struct muster_rendezvous **out_rendezvous, struct muster_failure *out_failure) {
    struct muster_rendezvous *rendezvous = memory_allocate(sizeof *rendezvous);
    struct rendezvous_machine_settings machine = {0};
    struct failure failure = {0};
    rendezvous->settings = *settings;
    rendezvous->config = config_taken;
    rendezvous->master_addr = memory_duplicate_string(settings->master_addr);
    enum failure_code code = embedded_loop_new(&rendezvous->embedded, &failure);
    if (code == FAILURE_NONE && settings->token_file != NULL) {
        code = job_token_open(NULL, settings->token_file, &rendezvous->token, &failure);
    }
    if (code == FAILURE_NONE) {
        code = rendezvous_wording_of_machine(
            &rendezvous->config, settings->is_torchrun != 0, &machine, &failure);
    }
    if (code == FAILURE_NONE) {
        code = rendezvous_object_open(rendezvous, backend, &machine, &failure);
    }
    if (code != FAILURE_NONE) {
        rendezvous_object_destroy(rendezvous);
        return library_pass_on(out_failure, &failure);
    }
    embedded_loop_note(rendezvous->embedded);
    *out_rendezvous = rendezvous;
    return MUSTER_OK;
}

enum muster_error muster_rendezvous_new(const struct muster_rendezvous_settings *settings,
    struct muster_rendezvous **out_rendezvous, struct muster_failure *failure) {
    struct muster_rendezvous_settings own;
    struct muster_rendezvous_backend backend;
    struct launch_config config;
    if (out_rendezvous == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the rendezvous");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, failure);
    if (error == MUSTER_OK && own.backend != NULL) {
        error = read_backend(own.backend, &backend, failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(failure);
    }
    if (error == MUSTER_OK) {
        error = rendezvous_wording_read(&own, &config, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    return make(&own, config, own.backend != NULL ? &backend : NULL, out_rendezvous, failure);
}

static void enter(struct muster_rendezvous *rendezvous) {
    rendezvous->busy++;
}

static void leave(struct muster_rendezvous *rendezvous) {
    rendezvous->busy--;
    if (rendezvous->busy > 0) {
        return;
    }
    if (rendezvous->is_freed) {
        rendezvous_object_destroy(rendezvous);
    } else {
        embedded_loop_note(rendezvous->embedded);
    }
}

void muster_rendezvous_free(struct muster_rendezvous *rendezvous) {
    if (check(rendezvous, NULL) != MUSTER_OK) {
        return;
    }
    rendezvous->is_freed = true;
    rendezvous_own_backend_silence(rendezvous->own);
    rendezvous_object_wake(rendezvous);
    if (rendezvous->busy == 0) {
        rendezvous_object_destroy(rendezvous);
    }
}

/* The next round. */

/* What came while the program did not process is told by its processing. */
static void begin_next(struct muster_rendezvous *rendezvous) {
    enter(rendezvous);
    rendezvous_object_ask_next(rendezvous);
    leave(rendezvous);
}

enum muster_error muster_rendezvous_submit_next(struct muster_rendezvous *rendezvous,
    void (*done)(void *context, enum muster_error error, const char *message,
        const struct muster_rendezvous_info *info),
    void *context, struct muster_failure *failure) {
    enum muster_error error = check_not_over(rendezvous, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (done == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is nobody to be told");
    }
    if (rendezvous->asked.is_asked) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the next round is asked for already");
    }
    rendezvous->asked = (struct rendezvous_asking){true, done, context};
    begin_next(rendezvous);
    return MUSTER_OK;
}

struct waited {
    struct muster_rendezvous *rendezvous;
    bool is_done;
    bool is_late;
    enum muster_error error;
    struct muster_failure *failure;
    const struct muster_rendezvous_info *info;
};

static void note_next(void *context, enum muster_error error, const char *message,
    const struct muster_rendezvous_info *info) {
    struct waited *waited = context;
    waited->is_done = true;
    waited->error = error;
    waited->info = info;
    if (error != MUSTER_OK) {
        library_fail(waited->failure, error, "%s", message);
    }
    rendezvous_object_wake(waited->rendezvous);
}

/* Waits until one of the callbacks has set `*is_done`, or the time is up. */
static bool wait_until(
    struct muster_rendezvous *rendezvous, const bool *is_done, struct duration timeout) {
    rendezvous_object_set_alarm(rendezvous, timeout);
    while (!*is_done && !rendezvous->is_alarmed && !rendezvous->is_freed) {
        rendezvous->is_woken = false;
        embedded_loop_run_until(rendezvous->embedded, &rendezvous->is_woken);
    }
    return *is_done;
}

enum muster_error muster_rendezvous_next(struct muster_rendezvous *rendezvous, double timeout,
    const struct muster_rendezvous_info **out_info, struct muster_failure *failure) {
    struct waited waited = {.rendezvous = rendezvous, .failure = failure};
    struct duration patience = DURATION_FOREVER;
    enum muster_error error = check_outside(rendezvous, failure);
    if (error == MUSTER_OK && out_info == NULL) {
        error = library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the round");
    }
    if (error == MUSTER_OK) {
        error = library_time_read(timeout, DURATION_FOREVER, &patience, failure);
    }
    if (error == MUSTER_OK) {
        error = muster_rendezvous_submit_next(rendezvous, note_next, &waited, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    enter(rendezvous);
    bool is_done = wait_until(rendezvous, &waited.is_done, patience);
    if (rendezvous->is_freed) {
        error = library_fail(failure, MUSTER_ERROR_CANCELLED, "the rendezvous was freed");
    } else if (is_done) {
        error = waited.error;
    } else {
        error = library_fail(failure, MUSTER_ERROR_TIMEOUT, "there is no next round yet");
        rendezvous->asked = (struct rendezvous_asking){0};
    }
    leave(rendezvous);
    if (error == MUSTER_OK) {
        *out_info = waited.info;
    }
    return error;
}

/* Looking. */

/* Takes in what has come meanwhile, unless that is under way. */
static enum muster_error look(
    struct muster_rendezvous *rendezvous, const void *out, struct muster_failure *failure) {
    enum muster_error error = check_able(rendezvous, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (out == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the answer");
    }
    if (rendezvous->busy == 0) {
        enter(rendezvous);
        embedded_loop_process(rendezvous->embedded);
        if (rendezvous->is_freed) {
            leave(rendezvous);
            return library_fail(failure, MUSTER_ERROR_CANCELLED, "the rendezvous was freed");
        }
        leave(rendezvous);
    }
    return rendezvous_object_has_seen(rendezvous)
               ? MUSTER_OK
               : library_fail(failure, MUSTER_ERROR_STATE,
                     "nothing is known of the rendezvous before the next round is asked for");
}

enum muster_error muster_rendezvous_is_closed(
    struct muster_rendezvous *rendezvous, int *out_is_closed, struct muster_failure *failure) {
    enum muster_error error = look(rendezvous, out_is_closed, failure);
    if (error == MUSTER_OK) {
        *out_is_closed = rendezvous_object_is_closed(rendezvous);
    }
    return error;
}

enum muster_error muster_rendezvous_num_nodes_waiting(
    struct muster_rendezvous *rendezvous, size_t *out_count, struct muster_failure *failure) {
    enum muster_error error = look(rendezvous, out_count, failure);
    if (error == MUSTER_OK) {
        size_t waiting = rendezvous_state_waiting(rendezvous_member_state(rendezvous->node));
        *out_count = waiting == 0 && rendezvous->is_round_over ? 1 : waiting;
    }
    return error;
}

const char *muster_rendezvous_run_id(const struct muster_rendezvous *rendezvous) {
    return check(rendezvous, NULL) == MUSTER_OK ? rendezvous->config.run_id : NULL;
}

/* The end. */

static enum muster_error close_record(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    struct duration timeout = rendezvous->config.dynamic.settings.close_timeout;
    if (rendezvous_object_is_closed(rendezvous)) {
        return MUSTER_OK;
    }
    if (rendezvous->is_over) {
        return library_fail(failure, rendezvous->end.error, "%s", rendezvous->end.message);
    }
    rendezvous_object_ask_close(rendezvous);
    if (!wait_until(rendezvous, &rendezvous->is_over, timeout)) {
        return rendezvous->is_freed
                   ? library_fail(failure, MUSTER_ERROR_CANCELLED, "the rendezvous was freed")
                   : library_fail(failure, MUSTER_ERROR_TIMEOUT,
                         "the rendezvous could not be closed in time");
    }
    return rendezvous_object_is_closed(rendezvous)
               ? MUSTER_OK
               : library_fail(failure, rendezvous->end.error, "%s", rendezvous->end.message);
}

enum muster_error muster_rendezvous_set_closed(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    enum muster_error error = check_outside(rendezvous, failure);
    if (error == MUSTER_OK) {
        error = check_not_over(rendezvous, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    enter(rendezvous);
    error = close_record(rendezvous, failure);
    leave(rendezvous);
    return error;
}

enum muster_error muster_rendezvous_shutdown(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    enum muster_error error = check_outside(rendezvous, failure);
    if (error == MUSTER_OK) {
        error = check_not_over(rendezvous, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    enter(rendezvous);
    error = close_record(rendezvous, failure);
    rendezvous->is_shut_down = true;
    if (!rendezvous->is_freed && rendezvous_object_linger(rendezvous)) {
        (void)wait_until(rendezvous, &rendezvous->has_left, DURATION_FOREVER);
    }
    leave(rendezvous);
    return error;
}

int muster_rendezvous_fd(const struct muster_rendezvous *rendezvous) {
    return check(rendezvous, NULL) == MUSTER_OK ? embedded_loop_fd(rendezvous->embedded) : -1;
}

enum muster_error muster_rendezvous_process(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    enum muster_error error = check_outside(rendezvous, failure);
    if (error == MUSTER_OK) {
        enter(rendezvous);
        embedded_loop_process(rendezvous->embedded);
        leave(rendezvous);
    }
    return error;
}
