/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <muster/rendezvous.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "host/loop/clock.h"
#include "host/network/network_address.h"
#include "library/library_settings.h"
#include "library/rendezvous_object.h"
#include "options/launch/option_values.h"

/* The settings of muster/rendezvous.h, checked, as the house's launch configuration. */

#define DEFAULT_PORT 29400
#define DEFAULT_READ_TIMEOUT_SECONDS 60
#define ENDPOINT_MAXIMUM 512
#define LEAST_KEEP_ALIVE 0.001
/* They are multiplied. The command has the same limits. */
#define LONGEST_KEEP_ALIVE 86400
#define MOST_KEEP_ALIVES 100000

static enum muster_error check_counts(
    const struct muster_rendezvous_settings *given, struct muster_failure *failure) {
    if (given->min_nodes < 0 || given->min_nodes > MUSTER_RENDEZVOUS_NODES_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "the minimum number of nodes is %d; it has to be 1 to %d", given->min_nodes,
            MUSTER_RENDEZVOUS_NODES_MAXIMUM);
    }
    int least = given->min_nodes > 0 ? given->min_nodes : 1;
    if (given->max_nodes != 0 &&
        (given->max_nodes < least || given->max_nodes > MUSTER_RENDEZVOUS_NODES_MAXIMUM)) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "the maximum number of nodes is %d; it has to be %d (the minimum) to %d",
            given->max_nodes, least, MUSTER_RENDEZVOUS_NODES_MAXIMUM);
    }
    if (given->keep_alive_max_attempt < 0 || given->keep_alive_max_attempt > MOST_KEEP_ALIVES) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "keep_alive_max_attempt is %d; it has to be 1 to %d", given->keep_alive_max_attempt,
            MOST_KEEP_ALIVES);
    }
    return MUSTER_OK;
}

/* TorchElastic refuses the like, too: RendezvousTimeout._set_timeouts. */
static enum muster_error read_time(
    const char *name, double seconds, struct duration *out_time, struct muster_failure *failure) {
    if (seconds == 0) {
        return MUSTER_OK;
    }
    if (!(seconds >= LEAST_KEEP_ALIVE)) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "%s is %g seconds; it has to be positive", name, seconds);
    }
    *out_time = duration_from_seconds(seconds);
    return MUSTER_OK;
}

static enum muster_error read_times(const struct muster_rendezvous_settings *given,
    struct rendezvous_settings *out, struct muster_failure *failure) {
    const struct {
        const char *name;
        double seconds;
        struct duration *out;
    } times[] = {
        {"join_timeout", given->join_timeout, &out->join_timeout},
        {"last_call_timeout", given->last_call_timeout, &out->last_call_timeout},
        {"close_timeout", given->close_timeout, &out->close_timeout},
        {"keep_alive_interval", given->keep_alive_interval, &out->keep_alive_interval},
    };
    enum muster_error error = MUSTER_OK;
    if (isnan(given->linger_timeout)) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "linger_timeout is no number");
    }
    if (given->keep_alive_interval > LONGEST_KEEP_ALIVE) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "keep_alive_interval is %g seconds; it may be %d", given->keep_alive_interval,
            LONGEST_KEEP_ALIVE);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times && error == MUSTER_OK; i++) {
        error = read_time(times[i].name, times[i].seconds, times[i].out, failure);
    }
    return error;
}

static enum muster_error read_endpoint(
    const char *text, struct launch_dynamic *dynamic, struct muster_failure *failure) {
    struct endpoint endpoint = {0};
    struct text reason = {0};
    enum muster_error error = library_host_check("endpoint", text, ENDPOINT_MAXIMUM, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (endpoint_parse(text, &endpoint, &reason) != FAILURE_NONE) {
        error =
            library_fail(failure, MUSTER_ERROR_INVALID, "the endpoint %s", text_string(&reason));
        text_clear(&reason);
        return error;
    }
    dynamic->host = endpoint.host;
    dynamic->port = endpoint.port == ENDPOINT_NO_PORT ? DEFAULT_PORT : endpoint.port;
    return MUSTER_OK;
}

static enum muster_error check_texts(
    const struct muster_rendezvous_settings *given, struct muster_failure *failure) {
    enum muster_error error =
        library_utf8_check("run id", given->run_id, MUSTER_RENDEZVOUS_RUN_ID_MAXIMUM, failure);
    if (error == MUSTER_OK && given->local_addr != NULL) {
        error = library_host_check("local_addr", given->local_addr, NODE_ADDRESS_SIZE - 1, failure);
    }
    if (error == MUSTER_OK && given->master_addr != NULL) {
        error =
            library_host_check("master_addr", given->master_addr, NODE_ADDRESS_SIZE - 1, failure);
    }
    if (error == MUSTER_OK && given->token_file != NULL) {
        error = library_path_check("token file", given->token_file, failure);
    }
    if (error == MUSTER_OK && (given->master_port < 0 || given->master_port > 65535)) {
        error = library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no port; 0 to 65535 are", given->master_port);
    }
    if (error == MUSTER_OK && given->use_agent_store != 0 &&
        (given->endpoint == NULL || given->is_torchrun != 0)) {
        error = library_fail(failure, MUSTER_ERROR_INVALID,
            "use_agent_store is for an endpoint, and not for is_torchrun; there the program serves "
            "the workers' store and says where");
    }
    if (error == MUSTER_OK && (given->endpoint == NULL) == (given->backend == NULL)) {
        error = library_fail(failure, MUSTER_ERROR_INVALID, "there %s an endpoint %s a backend",
            given->endpoint == NULL ? "is neither" : "are both",
            given->endpoint == NULL ? "nor" : "and");
    }
    return error;
}

static void apply(const struct muster_rendezvous_settings *given, struct launch_config *config) {
    struct rendezvous_settings *rendezvous = &config->dynamic.settings;
    rendezvous->minimum_nodes = given->min_nodes > 0 ? given->min_nodes : 1;
    rendezvous->maximum_nodes = given->max_nodes > 0 ? given->max_nodes : rendezvous->minimum_nodes;
    rendezvous->delegates =
        rendezvous->maximum_nodes > RENDEZVOUS_DELEGATES_ABOVE_NODES && !given->is_torchrun;
    if (given->keep_alive_max_attempt > 0) {
        rendezvous->keep_alive_max_attempt = given->keep_alive_max_attempt;
    }
    config->minimum_nodes = rendezvous->minimum_nodes;
    config->maximum_nodes = rendezvous->maximum_nodes;
    config->rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    config->run_id = memory_duplicate_string(given->run_id);
    config->local_address = memory_duplicate_string(given->local_addr);
    config->dynamic.read_timeout = duration_from_seconds(DEFAULT_READ_TIMEOUT_SECONDS);
    config->dynamic.is_host = given->is_host > 0   ? LAUNCH_IS_HOST_YES
                              : given->is_host < 0 ? LAUNCH_IS_HOST_NO
                                                   : LAUNCH_IS_HOST_UNSET;
}

/* Checks what was given, which has its full size already, and turns it into the house's words. The
 * caller clears the configuration; without an endpoint it has no host. */
static enum muster_error rendezvous_wording_read(const struct muster_rendezvous_settings *given,
    struct launch_config *out_config, struct muster_failure *failure) {
    struct launch_config config = {0};
    rendezvous_settings_init(&config.dynamic.settings);
    enum muster_error error = check_counts(given, failure);
    if (error == MUSTER_OK) {
        error = check_texts(given, failure);
    }
    if (error == MUSTER_OK) {
        error = read_times(given, &config.dynamic.settings, failure);
    }
    if (error == MUSTER_OK && given->endpoint != NULL) {
        error = read_endpoint(given->endpoint, &config.dynamic, failure);
    }
    if (error == MUSTER_OK) {
        apply(given, &config);
        *out_config = config;
    }
    return error;
}

/* The machine of a node with this configuration, by a new name. It may ask a name server. */
static enum failure_code rendezvous_wording_of_machine(const struct launch_config *config,
    bool is_torchrun, struct rendezvous_machine_settings *out_settings, struct failure *failure) {
    struct random random;
    char *address = memory_duplicate_string(config->local_address);
    if (address == NULL) {
        enum failure_code code = local_address_qualified_name(&address, failure);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    random_init(&random, random_seed());
    *out_settings = (struct rendezvous_machine_settings){
        .rendezvous = config->dynamic.settings, .seed = random_next(&random)};
    uint32_t number = (uint32_t)random_next(&random);
    node_identity_init(&out_settings->identity, address, getpid(),
        is_torchrun ? node_identity_foreign_local_id(number)
                    : node_identity_muster_local_id(number));
    free(address);
    return FAILURE_NONE;
}

/* Rendezvous. */

#define NAME_MAXIMUM 255
/* What programs give that were made with the header of 0.2. */
#define OLDEST_SETTINGS offsetof(struct muster_rendezvous_settings, use_agent_store)
/* A connection and an answer each may take the time for one answer. */
#define GLANCE_FACTOR 2

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

enum muster_error rendezvous_backend_read(const struct muster_rendezvous_backend *given,
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
        library_settings_read(settings, OLDEST_SETTINGS, &own, sizeof own, failure);
    if (error == MUSTER_OK && own.backend != NULL) {
        error = rendezvous_backend_read(own.backend, &backend, failure);
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

enum muster_error rendezvous_lend(const struct muster_rendezvous *rendezvous,
    const struct launch_config **out_config, const struct muster_rendezvous_backend **out_backend,
    struct muster_failure *failure) {
    enum muster_error error = check(rendezvous, failure);
    if (error == MUSTER_OK && rendezvous->own == NULL) {
        error = library_fail(failure, MUSTER_ERROR_UNSUPPORTED,
            "the rendezvous is at an endpoint; give rdzv_backend and rdzv_endpoint instead");
    }
    if (error == MUSTER_OK) {
        *out_config = &rendezvous->config;
        *out_backend = rendezvous_own_backend_functions(rendezvous->own);
    }
    return error;
}

/* Names. They are only ever added, so that whoever looks needs no lock. */

static struct rendezvous_registered *_Atomic registered;

const struct rendezvous_registered *rendezvous_registered_find(const char *name) {
    const struct rendezvous_registered *entry = atomic_load(&registered);
    while (entry != NULL && !text_equals(entry->name, name)) {
        entry = entry->next;
    }
    return entry;
}

static bool is_of_the_command(const char *name) {
    static const char *const names[] = {
        "c10d", "dir", "etcd", "etcd-v2", "etcd-v3", "k8s", "static"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        is_one = is_one || text_equals(names[i], name);
    }
    return is_one;
}

enum muster_error muster_rendezvous_register(const char *name,
    enum muster_error (*create)(void *context,
        const struct muster_rendezvous_parameters *parameters,
        struct muster_rendezvous_backend *out_backend, struct muster_failure *failure),
    void *context, struct muster_failure *failure) {
    enum muster_error error = library_memory_check(failure);
    if (error == MUSTER_OK) {
        error = library_utf8_check("name", name, NAME_MAXIMUM, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    if (create == NULL || is_of_the_command(name)) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            create == NULL ? "there is nothing to create '%s' with"
                           : "'%s' is a rendezvous of the command; give it another name",
            name);
    }
    struct rendezvous_registered *entry = memory_allocate(sizeof *entry);
    *entry = (struct rendezvous_registered){
        .name = memory_duplicate_string(name), .create = create, .context = context};
    const struct rendezvous_registered *earlier;
    do {
        entry->next = atomic_load(&registered);
        earlier = rendezvous_registered_find(name);
    } while (earlier == NULL && !atomic_compare_exchange_strong(&registered, &entry->next, entry));
    if (earlier == NULL) {
        return MUSTER_OK;
    }
    free(entry->name);
    free(entry);
    return earlier->create == create && earlier->context == context
               ? MUSTER_OK
               : library_fail(failure, MUSTER_ERROR_INVALID,
                     "'%s' is registered with another function already", name);
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

struct looking {
    bool is_closed;
    size_t waiting;
};

static void look_at_state(const struct muster_rendezvous *rendezvous, struct looking *out_looking) {
    size_t waiting = rendezvous_state_waiting(rendezvous_member_state(rendezvous->node));
    out_looking->is_closed = rendezvous_object_is_closed(rendezvous);
    out_looking->waiting = waiting == 0 && rendezvous->is_round_over ? 1 : waiting;
}

/* Before the record was seen. */
static enum muster_error glance(struct muster_rendezvous *rendezvous, struct looking *out_looking,
    struct muster_failure *failure) {
    struct duration patience = rendezvous->config.dynamic.read_timeout;
    const struct muster_failure *told;
    if (rendezvous->is_over) {
        return library_fail(failure, rendezvous->end.error, "%s", rendezvous->end.message);
    }
    rendezvous_object_begin_glance(rendezvous);
    bool is_done = wait_until(rendezvous, &rendezvous->has_glanced,
        (struct duration){GLANCE_FACTOR * patience.nanoseconds});
    told = rendezvous_object_glance(rendezvous, &out_looking->is_closed, &out_looking->waiting);
    rendezvous_object_end_glance(rendezvous);
    if (rendezvous->is_freed) {
        return library_fail(failure, MUSTER_ERROR_CANCELLED, "the rendezvous was freed");
    }
    if (rendezvous_object_has_seen(rendezvous)) {
        look_at_state(rendezvous, out_looking);
        return MUSTER_OK;
    }
    if (rendezvous->is_over) {
        told = &rendezvous->end;
    }
    if (!is_done || told->error != MUSTER_OK) {
        return library_fail(failure, is_done ? told->error : MUSTER_ERROR_TIMEOUT, "%s",
            is_done ? told->message : "the record of the rendezvous could not be read in time");
    }
    return MUSTER_OK;
}

/* Takes in what has come meanwhile, unless that is under way. */
static enum muster_error look(struct muster_rendezvous *rendezvous, const void *out,
    struct looking *out_looking, struct muster_failure *failure) {
    enum muster_error error = check_able(rendezvous, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (out == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the answer");
    }
    bool is_outside = rendezvous->busy == 0;
    enter(rendezvous);
    if (is_outside) {
        embedded_loop_process(rendezvous->embedded);
    }
    if (rendezvous->is_freed) {
        error = library_fail(failure, MUSTER_ERROR_CANCELLED, "the rendezvous was freed");
    } else if (rendezvous_object_has_seen(rendezvous)) {
        look_at_state(rendezvous, out_looking);
    } else if (is_outside && !rendezvous->is_shut_down) {
        error = glance(rendezvous, out_looking, failure);
    } else {
        error = library_fail(failure, MUSTER_ERROR_STATE,
            "nothing was heard of the rendezvous yet, and nobody can wait for that here");
    }
    leave(rendezvous);
    return error;
}

enum muster_error muster_rendezvous_is_closed(
    struct muster_rendezvous *rendezvous, int *out_is_closed, struct muster_failure *failure) {
    struct looking looking = {0};
    enum muster_error error = look(rendezvous, out_is_closed, &looking, failure);
    if (error == MUSTER_OK) {
        *out_is_closed = looking.is_closed;
    }
    return error;
}

enum muster_error muster_rendezvous_num_nodes_waiting(
    struct muster_rendezvous *rendezvous, size_t *out_count, struct muster_failure *failure) {
    struct looking looking = {0};
    enum muster_error error = look(rendezvous, out_count, &looking, failure);
    if (error == MUSTER_OK) {
        *out_count = looking.waiting;
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
