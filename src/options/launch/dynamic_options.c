/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/dynamic_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/launch/endpoint.h"
#include "options/launch/endpoint_list.h"
#include "options/launch/kubernetes_place.h"
#include "options/launch/option_values.h"
#include "options/launch/rendezvous_conf.h"

#define DEFAULT_PORT 29400
#define DEFAULT_READ_TIMEOUT_SECONDS 60
/* A machine under load may be silent for this long. */
#define SHORTEST_SENSIBLE_SILENCE_SECONDS 3

static bool is_given(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->source != OPTION_SOURCE_DEFAULT;
}

static enum failure_code check_run_id(
    struct option_result *options, const struct launch_config *config) {
    size_t length = strlen(config->run_id);
    if (length > LAUNCH_MAXIMUM_RUN_ID) {
        option_result_reject(options, "rdzv_id",
            "has %zu bytes, and every key of the job's store begins with it; give at most %d",
            length, LAUNCH_MAXIMUM_RUN_ID);
        return FAILURE_INVALID;
    }
    return FAILURE_NONE;
}

/* Checks the name that this node gets in the record. */
static enum failure_code check_local_address(struct option_result *options) {
    const char *address = option_result_text(options, "local_addr");
    struct text reason = {0};
    char *host = NULL;
    enum failure_code code =
        *address == '\0' ? FAILURE_NONE : endpoint_parse_host(address, &host, &reason);
    free(host);
    return option_result_settle(options, "local_addr", code, &reason);
}

/* The endpoint of a file store is the file's path. */
static enum failure_code apply_file(struct option_result *options, struct launch_config *config) {
    config->dynamic.file = option_copy_unless_empty(option_result_text(options, "rdzv_endpoint"));
    if (config->dynamic.file == NULL) {
        option_result_reject(options, "rdzv_endpoint",
            "is missing: with store_type=file it is the path of a file that every node sees");
        return FAILURE_INVALID;
    }
    return FAILURE_NONE;
}

static void warn_of_loopback(const struct option_result *options, struct launch_config *config) {
    const char *host = config->dynamic.host;
    if (!endpoint_is_loopback(host) || config->maximum_nodes == 1 || config->dynamic.port == 0) {
        return;
    }
    text_list_add_taken(&config->meeting_warnings,
        text_format(
            "nodes meet at %s port %d%s, which is a different place on every machine; give "
            "--rdzv-endpoint the name of the one that hosts the store, unless all nodes run "
            "on this one",
            host, config->dynamic.port,
            is_given(options, "rdzv_endpoint") ? "" : ", as no --rdzv-endpoint is given"));
}

/* Other nodes cannot find a port that the kernel chooses, because it is known only when the job
 * runs already. */
static enum failure_code check_free_port(
    const char *text, const struct launch_config *config, struct text *reason) {
    if (config->minimum_nodes > 1) {
        return option_refuse_value(reason, text,
            "port 0 (any free one) cannot be found by the other nodes; give a number");
    }
    if (config->dynamic.is_host == LAUNCH_IS_HOST_NO) {
        return option_refuse_value(reason, text,
            "a node that does not host the store (is_host=false) cannot find it at port 0 (any "
            "free one); give a number");
    }
    return FAILURE_NONE;
}

static enum failure_code apply_endpoint(
    struct option_result *options, struct launch_config *config) {
    const char *text = option_result_text(options, "rdzv_endpoint");
    struct endpoint endpoint = {0};
    struct text reason = {0};
    enum failure_code code = endpoint_parse(text, &endpoint, &reason);
    if (code == FAILURE_NONE && endpoint.port == 0) {
        code = check_free_port(text, config, &reason);
    }
    if (code == FAILURE_NONE) {
        config->dynamic.host = endpoint.host;
        config->dynamic.port = endpoint.port == ENDPOINT_NO_PORT ? DEFAULT_PORT : endpoint.port;
        warn_of_loopback(options, config);
    } else {
        endpoint_clear(&endpoint);
    }
    return option_result_settle(options, "rdzv_endpoint", code, &reason);
}

/* What --rdzv-endpoint is, for each engine of a register. */
static const char *describe_place(const char *engine) {
    if (text_equals(engine, "dir")) {
        return "a directory that every node sees";
    }
    return text_equals(engine, "k8s") ? "[NAMESPACE/]NAME of a ConfigMap and a Lease"
                                      : "HOST:PORT,HOST:PORT,… of etcd's members";
}

/* The endpoint of a register is its engine's to read. What can be looked at without the engine is
 * looked at here, so that what is wrong with it is a mistake of the command line. */
static enum failure_code check_register(
    struct option_result *options, const struct launch_config *config) {
    const char *engine = config->dynamic.register_engine;
    const char *text = config->dynamic.register_endpoint;
    struct endpoint_list list = {0};
    struct kubernetes_place place = {0};
    struct text reason = {0};
    enum failure_code code = FAILURE_NONE;
    if (text == NULL) {
        option_result_reject(options, "rdzv_endpoint",
            "is missing: with --rdzv-backend %s it is %s", engine, describe_place(engine));
        return FAILURE_INVALID;
    }
    if (text_equals(engine, "k8s")) {
        code = kubernetes_place_parse(text, &place, &reason);
    } else if (!text_equals(engine, "dir")) {
        code = endpoint_list_parse(text, &list, &reason);
    }
    endpoint_list_clear(&list);
    kubernetes_place_clear(&place);
    return option_result_settle(options, "rdzv_endpoint", code, &reason);
}

static enum failure_code apply_register(
    struct option_result *options, struct launch_config *config) {
    struct launch_dynamic *dynamic = &config->dynamic;
    dynamic->register_endpoint =
        option_copy_unless_empty(option_result_text(options, "rdzv_endpoint"));
    dynamic->store = LAUNCH_RECORD_TCP_STORE;
    return check_register(options, config);
}

static enum failure_code apply_place(struct option_result *options, struct launch_config *config) {
    if (config->dynamic.register_engine != NULL) {
        return apply_register(options, config);
    }
    return config->dynamic.store == LAUNCH_RECORD_FILE_STORE ? apply_file(options, config)
                                                             : apply_endpoint(options, config);
}

static void warn_of_default_run_id(
    const struct option_result *options, struct launch_config *config) {
    if (!is_given(options, "rdzv_id")) {
        text_list_add_taken(&config->meeting_warnings,
            text_format(
                "no --rdzv-id is given: another job that meets at the same place without one "
                "would be taken for this one (its name is %s)",
                config->run_id));
    }
}

static void warn_of_short_silence(struct launch_config *config) {
    const struct rendezvous_settings *settings = &config->dynamic.settings;
    double interval = duration_seconds(settings->keep_alive_interval);
    double silence = interval * settings->keep_alive_max_attempt;
    if (settings->keep_alive_max_attempt == 1 || silence < SHORTEST_SENSIBLE_SILENCE_SECONDS) {
        text_list_add_taken(&config->warnings,
            text_format(
                "--rdzv-conf: with keep_alive_interval=%g and keep_alive_max_attempt=%d a node "
                "that is merely slow for %g s counts as lost; the defaults are 5 and 3",
                interval, settings->keep_alive_max_attempt, silence));
    }
}

bool dynamic_options_meet_nobody(
    const struct option_result *options, const struct launch_config *config) {
    struct launch_dynamic dynamic = {0};
    struct endpoint endpoint = {0};
    struct text ignored = {0};
    rendezvous_conf_apply(&config->rdzv_conf, &dynamic);
    const char *text = option_result_text(options, "rdzv_endpoint");
    bool has_free_port = endpoint_parse(text, &endpoint, &ignored) == FAILURE_NONE &&
                         endpoint.port == 0 && endpoint_is_loopback(endpoint.host) &&
                         dynamic.is_host != LAUNCH_IS_HOST_NO;
    bool has_no_place = dynamic.store == LAUNCH_RECORD_FILE_STORE ? *text == '\0' : has_free_port;
    endpoint_clear(&endpoint);
    text_clear(&ignored);
    return config->maximum_nodes == 1 && has_no_place;
}

enum failure_code dynamic_options_apply(
    struct option_result *options, struct launch_config *config) {
    struct launch_dynamic *dynamic = &config->dynamic;
    rendezvous_settings_init(&dynamic->settings);
    dynamic->settings.minimum_nodes = config->minimum_nodes;
    dynamic->settings.maximum_nodes = config->maximum_nodes;
    dynamic->read_timeout = duration_from_milliseconds(DEFAULT_READ_TIMEOUT_SECONDS * 1000);
    rendezvous_conf_apply(&config->rdzv_conf, dynamic);
    enum failure_code code = check_run_id(options, config);
    if (code == FAILURE_NONE) {
        code = check_local_address(options);
    }
    if (code == FAILURE_NONE) {
        code = apply_place(options, config);
    }
    if (code == FAILURE_NONE) {
        warn_of_default_run_id(options, config);
        warn_of_short_silence(config);
        rendezvous_conf_warn_of_unknown(
            &config->rdzv_conf, config->rdzv_backend, &config->warnings);
    }
    return code;
}

static void warn_of_unused_policy(const struct option_result *options, struct launch_config *config,
    const char *destination, const char *name) {
    if (is_given(options, destination)) {
        text_list_add_taken(&config->warnings,
            text_format("%s is not used: it is for several nodes with --rdzv-backend c10d", name));
    }
}

static enum rendezvous_on_node_loss on_node_loss_of(const struct option_result *options) {
    const char *word = option_result_text(
        options, "on_node_loss"); /* the parser has checked that it is one of the choices */
    if (text_equals(word, "wait")) {
        return RENDEZVOUS_ON_NODE_LOSS_WAIT;
    }
    return text_equals(word, "torchrun") ? RENDEZVOUS_ON_NODE_LOSS_TORCHRUN
                                         : RENDEZVOUS_ON_NODE_LOSS_RESTART;
}

enum failure_code dynamic_options_apply_policies(
    struct option_result *options, struct launch_config *config) {
    struct rendezvous_settings *settings = &config->dynamic.settings;
    enum rendezvous_scale_up scale_up;
    struct duration interval;
    struct text reason = {0};
    enum failure_code code = option_parse_scale_up(
        option_result_text(options, "scale_up"), &scale_up, &interval, &reason);
    if (code != FAILURE_NONE) {
        return option_result_settle(options, "scale_up", code, &reason);
    }
    if (config->rendezvous != LAUNCH_RENDEZVOUS_DYNAMIC) {
        warn_of_unused_policy(options, config, "on_node_loss", "--on-node-loss");
        warn_of_unused_policy(options, config, "scale_up", "--scale-up");
        return FAILURE_NONE;
    }
    settings->on_node_loss = on_node_loss_of(options);
    settings->scale_up = scale_up;
    settings->scale_up_interval = interval;
    return FAILURE_NONE;
}
