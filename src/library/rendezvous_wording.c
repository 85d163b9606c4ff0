/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/rendezvous_wording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "host/loop/random_seed.h"
#include "host/network/local_address.h"
#include "library/library_failure.h"
#include "library/library_settings.h"
#include "options/launch/endpoint.h"

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

enum muster_error rendezvous_wording_read(const struct muster_rendezvous_settings *given,
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

enum failure_code rendezvous_wording_of_machine(const struct launch_config *config,
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
