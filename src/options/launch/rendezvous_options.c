/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/rendezvous_options.h"

#include <stdlib.h>

#include "base/memory.h"
#include "options/launch/dynamic_options.h"
#include "options/launch/endpoint.h"
#include "options/launch/option_values.h"
#include "options/launch/rendezvous_conf.h"

#define DEFAULT_MASTER_PORT 29500
#define DEFAULT_STORE_TIMEOUT_SECONDS 900
#define HIGHEST_PORT 65535

static int64_t integer_of(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->integer;
}

static bool is_given(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->source != OPTION_SOURCE_DEFAULT;
}

static enum failure_code apply_nodes(struct option_result *options, struct launch_config *config) {
    struct text reason = {0};
    enum failure_code code = option_parse_node_range(option_result_text(options, "nnodes"),
        &config->minimum_nodes, &config->maximum_nodes, &reason);
    return option_result_settle(options, "nnodes", code, &reason);
}

static enum failure_code check_port(struct option_result *options) {
    int64_t port = integer_of(options, "master_port");
    if (port < 0 || port > HIGHEST_PORT) {
        option_result_reject(options, "master_port",
            "invalid value %lld: ports go from 0 (any free one) to %d", (long long)port,
            HIGHEST_PORT);
        return FAILURE_INVALID;
    }
    return FAILURE_NONE;
}

static bool has_endpoint(const struct option_result *options) {
    return *option_result_text(options, "rdzv_endpoint") != '\0';
}

/* One node without an address runs alone, as with --standalone. */
static bool is_alone_by_default(
    const struct option_result *options, const struct launch_config *config) {
    return text_equals(option_result_text(options, "rdzv_backend"), "static") &&
           !has_endpoint(options) && !option_result_value(options, "master_port")->is_set &&
           config->maximum_nodes == 1;
}

static void warn_of_unused(
    const struct option_result *options, struct launch_config *config, bool is_standalone) {
    const char *backend = config->rdzv_backend;
    if (!is_standalone && is_given(options, "master_addr") && !has_endpoint(options)) {
        text_list_add_taken(&config->warnings,
            text_format("--master-addr is not used: it is for --rdzv-backend static only, and this "
                        "is %s",
                backend));
    }
    if (integer_of(options, "node_rank") != 0) {
        text_list_add_taken(&config->warnings,
            text_format("--node-rank is not used: it is for --rdzv-backend static only, and this "
                        "is %s",
                backend));
    }
}

/* The job runs alone: by --standalone, or because it is one node without an address. */
static enum failure_code apply_single_node(
    struct option_result *options, struct launch_config *config) {
    if (config->maximum_nodes > 1) {
        option_result_reject(options, "standalone",
            "runs on one node, but --nnodes asks for %d; leave one of the two out",
            config->maximum_nodes);
        return FAILURE_INVALID;
    }
    config->rendezvous = LAUNCH_RENDEZVOUS_SINGLE;
    warn_of_unused(options, config, true);
    rendezvous_conf_warn_of_none(&config->rdzv_conf, config->rdzv_backend, &config->warnings);
    return FAILURE_NONE;
}

static enum failure_code take_run_id(struct option_result *options, struct launch_config *config) {
    if (*option_result_text(options, "rdzv_id") == '\0') {
        option_result_reject(options, "rdzv_id", "is empty; give the job a name or leave it out");
        return FAILURE_INVALID;
    }
    config->run_id = memory_duplicate_string(option_result_text(options, "rdzv_id"));
    return FAILURE_NONE;
}

/* The job runs alone but keeps its run id; only --standalone gets a random one. */
static enum failure_code apply_single_node_with_run_id(
    struct option_result *options, struct launch_config *config) {
    config->rendezvous = LAUNCH_RENDEZVOUS_SINGLE;
    warn_of_unused(options, config, false);
    rendezvous_conf_warn_of_none(&config->rdzv_conf, config->rdzv_backend, &config->warnings);
    return take_run_id(options, config);
}

/* One node runs alone. */
static enum failure_code apply_etcd_v2(
    struct option_result *options, struct launch_config *config) {
    struct endpoint endpoint = {0};
    struct text reason = {0};
    if (config->maximum_nodes > 1) {
        option_result_reject(options, "rdzv_backend",
            "etcd-v2 with several nodes (--nnodes %s) will not be in Muster, because etcd itself "
            "has dropped its API of version 2; use --rdzv-backend etcd-v3, or --rdzv-backend c10d",
            option_result_text(options, "nnodes"));
        return FAILURE_UNSUPPORTED;
    }
    enum failure_code code =
        endpoint_parse(option_result_text(options, "rdzv_endpoint"), &endpoint, &reason);
    endpoint_clear(&endpoint);
    return code == FAILURE_NONE ? apply_single_node_with_run_id(options, config)
                                : option_result_settle(options, "rdzv_endpoint", code, &reason);
}

/* A job of one node may also meet other agents with the same run id: one agent runs the job, the
 * others wait as spares. */
static enum failure_code apply_c10d(struct option_result *options, struct launch_config *config) {
    if (dynamic_options_meet_nobody(options, config)) {
        return apply_single_node_with_run_id(options, config);
    }
    config->rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    warn_of_unused(options, config, false);
    enum failure_code code = take_run_id(options, config);
    return code == FAILURE_NONE ? dynamic_options_apply(options, config) : code;
}

/* The store is hosted by the node that the job's register names. */
static enum failure_code apply_register(
    struct option_result *options, struct launch_config *config) {
    config->rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    config->dynamic.register_engine = memory_duplicate_string(config->rdzv_backend);
    warn_of_unused(options, config, false);
    enum failure_code code = take_run_id(options, config);
    return code == FAILURE_NONE ? dynamic_options_apply(options, config) : code;
}

/* torchrun's etcd backend calls the join timeout `timeout`. */
static enum failure_code apply_etcd(struct option_result *options, struct launch_config *config) {
    const char *timeout = text_list_variable(&config->rdzv_conf, "timeout");
    if (config->maximum_nodes == 1 && !has_endpoint(options)) {
        return apply_single_node_with_run_id(options, config);
    }
    if (timeout != NULL && text_list_variable(&config->rdzv_conf, "join_timeout") == NULL) {
        char *seconds = memory_duplicate_string(timeout);
        text_list_set_variable(&config->rdzv_conf, "join_timeout", seconds);
        free(seconds);
    }
    return apply_register(options, config);
}

/* Takes the master from --rdzv-endpoint. */
static enum failure_code apply_endpoint(
    struct option_result *options, struct launch_config *config) {
    struct endpoint endpoint = {0};
    struct text reason = {0};
    enum failure_code code =
        endpoint_parse(option_result_text(options, "rdzv_endpoint"), &endpoint, &reason);
    if (code == FAILURE_NONE && endpoint.port == ENDPOINT_NO_PORT) {
        code = option_refuse_value(&reason, option_result_text(options, "rdzv_endpoint"),
            "the static rendezvous needs a port too; write HOST:PORT, an IPv6 address in brackets, "
            "as in [::1]:29500");
        endpoint_clear(&endpoint);
    }
    if (code == FAILURE_NONE) {
        config->master_host = endpoint.host;
        config->master_port = endpoint.port;
    }
    return option_result_settle(options, "rdzv_endpoint", code, &reason);
}

/* Takes the master from --master-addr and --master-port. */
static enum failure_code apply_master(struct option_result *options, struct launch_config *config) {
    const struct option_value *port = option_result_value(options, "master_port");
    struct text reason = {0};
    config->master_port = port->is_set ? (int)port->integer : DEFAULT_MASTER_PORT;
    enum failure_code code = endpoint_parse_host(
        option_result_text(options, "master_addr"), &config->master_host, &reason);
    return option_result_settle(options, "master_addr", code, &reason);
}

static enum failure_code apply_node_rank(
    struct option_result *options, struct launch_config *config) {
    int64_t rank = integer_of(options, "node_rank");
    if (rank < 0 || rank >= config->maximum_nodes) {
        option_result_reject(options, "node_rank",
            "invalid value %lld: with %d node%s (--nnodes) ranks go from 0 to %d", (long long)rank,
            config->maximum_nodes, config->maximum_nodes == 1 ? "" : "s",
            config->maximum_nodes - 1);
        return FAILURE_INVALID;
    }
    config->node_rank = (int)rank;
    return FAILURE_NONE;
}

/* torchrun does the same, but without a warning. */
static void warn_of_range(const struct option_result *options, struct launch_config *config) {
    if (config->minimum_nodes != config->maximum_nodes) {
        text_list_add_taken(&config->warnings,
            text_format("--nnodes %s: with --rdzv-backend static the job waits for %d nodes and "
                        "keeps them; for nodes that come and go use --rdzv-backend c10d",
                option_result_text(options, "nnodes"), config->maximum_nodes));
    }
}

/* Nodes on several machines would each wait for the others at a place of its own, and all would be
 * node 0. On one machine the place is right. */
static void warn_of_no_master(const struct option_result *options, struct launch_config *config) {
    if (config->maximum_nodes == 1 || has_endpoint(options) || is_given(options, "master_addr")) {
        return;
    }
    text_list_add_taken(&config->meeting_warnings,
        text_format("--nnodes %s without --master-addr: this is node %d%s, and nodes meet at %s "
                    "port %d, which is a different place on every machine; give --master-addr and "
                    "--node-rank, or --rdzv-backend c10d and --rdzv-endpoint, unless all nodes run "
                    "on this one",
            option_result_text(options, "nnodes"), config->node_rank,
            is_given(options, "node_rank") ? "" : ", as no --node-rank is given",
            config->master_host, config->master_port));
}

static enum failure_code apply_static(struct option_result *options, struct launch_config *config) {
    enum failure_code code =
        has_endpoint(options) ? apply_endpoint(options, config) : apply_master(options, config);
    if (code == FAILURE_NONE) {
        code = apply_node_rank(options, config);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    if (config->master_port == 0 && config->maximum_nodes > 1) {
        option_result_reject(options, has_endpoint(options) ? "rdzv_endpoint" : "master_port",
            "port 0 (any free one) cannot be found by the other nodes; give a number");
        return FAILURE_INVALID;
    }
    config->rendezvous = LAUNCH_RENDEZVOUS_STATIC;
    warn_of_range(options, config);
    warn_of_no_master(options, config);
    rendezvous_conf_warn_of_unknown(&config->rdzv_conf, config->rdzv_backend, &config->warnings);
    config->run_id = memory_duplicate_string(option_result_text(options, "rdzv_id"));
    return FAILURE_NONE;
}

/* Sets the backend's name, after the changes that torchrun makes to it. */
static enum failure_code apply_backend(
    struct option_result *options, struct launch_config *config, bool is_alone) {
    static const char *const known[] = {
        "static", "c10d", "etcd", "etcd-v2", "etcd-v3", "dir", "k8s"};
    const char *backend = is_alone ? "c10d" : option_result_text(options, "rdzv_backend");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (text_equals(backend, known[i])) {
            config->rdzv_backend = memory_duplicate_string(backend);
            return FAILURE_NONE;
        }
    }
    struct text reason = {0};
    enum failure_code code =
        option_refuse_value(&reason, backend, "the backends are static, c10d, dir, etcd and k8s");
    return option_result_settle(options, "rdzv_backend", code, &reason);
}

static enum failure_code apply_settings(
    struct option_result *options, struct launch_config *config) {
    struct text reason = {0};
    enum failure_code code = rendezvous_conf_parse(
        option_result_text(options, "rdzv_conf"), &config->rdzv_conf, &reason);
    if (code == FAILURE_NONE) {
        code = rendezvous_conf_check(&config->rdzv_conf, config->rdzv_backend, &reason);
    }
    if (code != FAILURE_NONE) {
        return option_result_settle(options, "rdzv_conf", code, &reason);
    }
    int64_t seconds = DEFAULT_STORE_TIMEOUT_SECONDS;
    const char *timeout = text_list_variable(&config->rdzv_conf, "timeout");
    if (timeout != NULL && text_equals(config->rdzv_backend, "static")) {
        code = text_parse_integer(timeout, &seconds); /* the value was checked before */
    }
    config->store_timeout = duration_from_milliseconds(seconds * 1000);
    return code;
}

static enum failure_code apply_rendezvous(
    struct option_result *options, struct launch_config *config, bool is_alone) {
    if (is_alone) {
        return apply_single_node(options, config);
    }
    if (text_equals(config->rdzv_backend, "static")) {
        return apply_static(options, config);
    }
    if (text_equals(config->rdzv_backend, "dir") || text_equals(config->rdzv_backend, "k8s")) {
        return apply_register(options, config);
    }
    if (text_equals(config->rdzv_backend, "etcd-v2")) {
        return apply_etcd_v2(options, config);
    }
    return text_equals(config->rdzv_backend, "c10d") ? apply_c10d(options, config)
                                                     : apply_etcd(options, config);
}

/* A node that is told to host the store (is_host=true) may be known to others by another name than
 * its endpoint's. */
static bool is_local(const struct launch_config *config) {
    const struct launch_dynamic *dynamic = &config->dynamic;
    switch (config->rendezvous) {
    case LAUNCH_RENDEZVOUS_SINGLE:
        return true;
    case LAUNCH_RENDEZVOUS_STATIC:
        return config->maximum_nodes == 1 && config->master_host != NULL &&
               endpoint_is_loopback(config->master_host);
    case LAUNCH_RENDEZVOUS_DYNAMIC:
        return config->maximum_nodes == 1 && dynamic->host != NULL &&
               endpoint_is_loopback(dynamic->host) && dynamic->is_host == LAUNCH_IS_HOST_UNSET;
    }
    return false;
}

enum failure_code rendezvous_options_apply(
    struct option_result *options, struct launch_config *config) {
    enum failure_code code = apply_nodes(options, config);
    if (code == FAILURE_NONE) {
        code = check_port(options);
    }
    bool is_alone = code == FAILURE_NONE && (option_result_value(options, "standalone")->flag ||
                                                is_alone_by_default(options, config));
    if (code == FAILURE_NONE) {
        code = apply_backend(options, config, is_alone);
    }
    if (code == FAILURE_NONE) {
        code = apply_settings(options, config);
    }
    if (code == FAILURE_NONE) {
        code = apply_rendezvous(options, config, is_alone);
    }
    config->is_local = is_local(config);
    return code == FAILURE_NONE ? dynamic_options_apply_policies(options, config) : code;
}
