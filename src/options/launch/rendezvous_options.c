/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/rendezvous_options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_parser.h"
#include "options/launch/option_values.h"

/* Parses --rdzv-conf (KEY=VALUE separated by commas) and checks the values of known keys. Matches
 * elastic/rendezvous/utils.py _parse_rendezvous_config, api.py RendezvousParameters and the keys
 * that create_handler and create_backend read in dynamic_rendezvous.py and
 * c10d_rendezvous_backend.py. Unlike there, values that would make a job hang (keep_alive_interval
 * or keep_alive_max_attempt below 1) are refused. silence_timeout and exit_barrier_timeout are
 * Muster's own keys. */

enum setting_kind {
    SETTING_SECONDS, /* a whole number from 1 to the key's maximum */
    SETTING_COUNT,   /* the same for a count */
    SETTING_BOOLEAN,
    SETTING_STORE_TYPE,
    SETTING_PROTOCOL,
    SETTING_TEXT, /* whatever it is, the engine of the register reads it */
};

/* The product of the two keep_alive values is the time that a node may be silent; it must fit into
 * a duration. */
#define MAXIMUM_KEEP_ALIVE_SECONDS 86400
#define MAXIMUM_KEEP_ALIVES 100000
#define MAXIMUM_SILENCE_SECONDS 3600

enum {
    BACKEND_STATIC = 1,
    BACKEND_C10D = 2,
    BACKEND_ETCD_V2 = 4,
    BACKEND_ETCD = 8, /* beside BACKEND_REGISTER */
    BACKEND_REGISTER = 16,
    BACKEND_K8S = 32 /* beside BACKEND_REGISTER */
};

static const struct {
    const char *key;
    enum setting_kind kind;
    int backends;
    int maximum; /* of a number's value */
} known_settings[] = {
    {"join_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER | BACKEND_ETCD_V2, INT_MAX},
    {"last_call_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER | BACKEND_ETCD_V2,
        INT_MAX},
    {"close_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER | BACKEND_ETCD_V2, INT_MAX},
    {"heartbeat_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER | BACKEND_ETCD_V2,
        INT_MAX},
    {"keep_alive_interval", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER | BACKEND_ETCD_V2,
        MAXIMUM_KEEP_ALIVE_SECONDS},
    {"keep_alive_max_attempt", SETTING_COUNT, BACKEND_C10D | BACKEND_REGISTER | BACKEND_ETCD_V2,
        MAXIMUM_KEEP_ALIVES},
    {"read_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER | BACKEND_ETCD_V2, INT_MAX},
    {"silence_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER, MAXIMUM_SILENCE_SECONDS},
    {"calm_after", SETTING_SECONDS, BACKEND_C10D, INT_MAX},
    {"host_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER, INT_MAX},
    {"fence_timeout", SETTING_SECONDS, BACKEND_REGISTER, INT_MAX},
    {"exit_barrier_timeout", SETTING_SECONDS, BACKEND_C10D | BACKEND_REGISTER, INT_MAX},
    {"timeout", SETTING_SECONDS, BACKEND_STATIC | BACKEND_ETCD, INT_MAX},
    {"is_host", SETTING_BOOLEAN, BACKEND_C10D, 0},
    {"delegation", SETTING_BOOLEAN, BACKEND_C10D | BACKEND_REGISTER, 0},
    {"store_type", SETTING_STORE_TYPE, BACKEND_C10D, 0},
    {"protocol", SETTING_PROTOCOL, BACKEND_ETCD, 0},
    {"ca_cert", SETTING_TEXT, BACKEND_ETCD, 0},
    {"cacert", SETTING_TEXT, BACKEND_ETCD, 0},
    {"ssl_cert", SETTING_TEXT, BACKEND_ETCD, 0},
    {"cert", SETTING_TEXT, BACKEND_ETCD, 0},
    {"ssl_cert_key", SETTING_TEXT, BACKEND_ETCD, 0},
    {"key", SETTING_TEXT, BACKEND_ETCD, 0},
    {"user", SETTING_TEXT, BACKEND_ETCD, 0},
    {"password", SETTING_TEXT, BACKEND_ETCD, 0},
    {"password_file", SETTING_TEXT, BACKEND_ETCD, 0},
    {"k8s_server", SETTING_TEXT, BACKEND_K8S, 0},
    {"k8s_token_file", SETTING_TEXT, BACKEND_K8S, 0},
    {"k8s_ca", SETTING_TEXT, BACKEND_K8S, 0},
};

/* `whole`: what was given, as it may be shown; `secret`: the item before this one if that is a
 * secret, else NULL. */
static enum failure_code add_setting(const char *whole, const char *secret, const char *item,
    struct text_list *settings, struct text *out_reason) {
    size_t length = strcspn(item, "=");
    struct text key_text = {0};
    text_append_bytes(&key_text, item, length);
    char *key = option_trim(text_string(&key_text));
    char *value = option_trim(item[length] == '=' ? item + length + 1 : "");
    text_clear(&key_text);
    enum failure_code code = FAILURE_NONE;
    if (*key == '\0') {
        code = option_refuse_value(
            out_reason, whole, "give KEY=VALUE,KEY=VALUE, as in join_timeout=60,read_timeout=30");
    } else if (item[length] != '=' && secret != NULL) {
        code = option_refuse_value(out_reason, whole,
            "a comma ends the value of the setting %.*s; for one with a comma in it give "
            "password_file=PATH",
            (int)strcspn(secret, "="), secret);
    } else if (*value == '\0') {
        code = option_refuse_value(out_reason, whole, "the setting %.100s has no value", key);
    } else {
        text_list_set_variable(settings, key, value);
    }
    free(key);
    free(value);
    return code;
}

enum failure_code rendezvous_conf_parse(
    const char *text, struct text_list *out_settings, struct text *out_reason) {
    char *trimmed = option_trim(text);
    struct text_list items = {0};
    struct text_list settings = {0};
    struct text shown = {0};
    text_list_add_all(&settings, out_settings);
    if (*trimmed != '\0') {
        option_split(trimmed, ',', &items);
    }
    free(trimmed);
    enum failure_code code = FAILURE_NONE;
    const char *secret = NULL;
    secret_setting_write_shown(text, &shown);
    for (size_t i = 0; i < items.count && code == FAILURE_NONE; i++) {
        code = add_setting(text_string(&shown), secret, items.items[i], &settings, out_reason);
        secret = secret_setting_is_one(items.items[i]) ? items.items[i] : NULL;
    }
    text_clear(&shown);
    text_list_clear(&items);
    if (code != FAILURE_NONE) {
        text_list_clear(&settings);
        return code;
    }
    text_list_clear(out_settings);
    *out_settings = settings;
    return FAILURE_NONE;
}

/* Whether `text` equals `word`, ignoring case. */
static bool is_word(const char *text, const char *word) {
    for (; *text != '\0' && *word != '\0'; text++, word++) {
        char lower = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        if (lower != *word) {
            return false;
        }
    }
    return *text == *word;
}

/* A boolean as RendezvousParameters.get_as_bool reads it: 1 true t yes y, 0 false f no n, in any
 * case. FAILURE_MALFORMED for anything else. */
static enum failure_code rendezvous_conf_parse_boolean(const char *text, bool *out_value) {
    static const char *const yes[] = {"1", "true", "t", "yes", "y"};
    static const char *const no[] = {"0", "false", "f", "no", "n"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (is_word(text, yes[i]) || is_word(text, no[i])) {
            *out_value = is_word(text, yes[i]);
            return FAILURE_NONE;
        }
    }
    return FAILURE_MALFORMED;
}

static enum failure_code check_number(const char *value, size_t known, struct text *out_reason) {
    int64_t number = 0;
    if (text_parse_integer(value, &number) == FAILURE_NONE && number >= 1 &&
        number <= known_settings[known].maximum) {
        return FAILURE_NONE;
    }
    return option_refuse_value(out_reason, value,
        "the setting %s takes a whole number%s from 1 to %d", known_settings[known].key,
        known_settings[known].kind == SETTING_SECONDS ? " of seconds" : "",
        known_settings[known].maximum);
}

static enum failure_code check_setting(const char *value, size_t known, struct text *out_reason) {
    bool boolean;
    switch (known_settings[known].kind) {
    case SETTING_SECONDS:
    case SETTING_COUNT:
        return check_number(value, known, out_reason);
    case SETTING_BOOLEAN:
        if (rendezvous_conf_parse_boolean(value, &boolean) != FAILURE_NONE) {
            return option_refuse_value(
                out_reason, value, "the setting %s takes true or false", known_settings[known].key);
        }
        break;
    case SETTING_STORE_TYPE:
        if (!is_word(value, "tcp") && !is_word(value, "file")) {
            return option_refuse_value(
                out_reason, value, "the setting %s takes tcp or file", known_settings[known].key);
        }
        break;
    case SETTING_PROTOCOL:
        if (!text_equals(value, "http") && !text_equals(value, "https")) {
            return option_refuse_value(
                out_reason, value, "the setting %s takes http or https", known_settings[known].key);
        }
        break;
    case SETTING_TEXT:
        break;
    }
    return FAILURE_NONE;
}

static int backend_bit(const char *backend) {
    static const struct {
        const char *name;
        int bit;
    } backends[] = {{"static", BACKEND_STATIC}, {"c10d", BACKEND_C10D},
        {"etcd-v2", BACKEND_ETCD_V2}, {"etcd", BACKEND_REGISTER | BACKEND_ETCD},
        {"etcd-v3", BACKEND_REGISTER | BACKEND_ETCD}, {"dir", BACKEND_REGISTER},
        {"k8s", BACKEND_REGISTER | BACKEND_K8S}};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (text_equals(backends[i].name, backend)) {
            return backends[i].bit;
        }
    }
    return 0;
}

/* Checks the values of the keys that this backend knows: their grammar and range. Other keys are
 * ignored. FAILURE_INVALID with a reason appended. */
static enum failure_code rendezvous_conf_check(
    const struct text_list *settings, const char *backend, struct text *out_reason) {
    int bit = backend_bit(backend);
    for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings; i++) {
        const char *value = text_list_variable(settings, known_settings[i].key);
        if (value == NULL || (known_settings[i].backends & bit) == 0) {
            continue;
        }
        enum failure_code code = check_setting(value, i, out_reason);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    return FAILURE_NONE;
}

/* The number given for a key, or `otherwise`. */
static int64_t number_of(const struct text_list *settings, const char *key, int64_t otherwise) {
    const char *value = text_list_variable(settings, key);
    int64_t number = otherwise;
    return value != NULL && text_parse_integer(value, &number) == FAILURE_NONE ? number : otherwise;
}

static void take_seconds(
    const struct text_list *settings, const char *key, struct duration *duration) {
    int64_t seconds = number_of(settings, key, 0);
    if (seconds > 0) {
        *duration = duration_from_milliseconds(seconds * 1000);
    }
}

/* Whether store_type selects a file store. */
static bool rendezvous_conf_wants_file(const struct text_list *settings) {
    const char *type = text_list_variable(settings, "store_type");
    return type != NULL && is_word(type, "file");
}

/* Applies the settings for c10d, which must have passed rendezvous_conf_check. Values without a
 * setting stay unchanged, but for delegation, whose default follows from the number of nodes. */
static void rendezvous_conf_apply(
    const struct text_list *settings, struct launch_dynamic *dynamic) {
    struct rendezvous_settings *rendezvous = &dynamic->settings;
    take_seconds(settings, "join_timeout", &rendezvous->join_timeout);
    take_seconds(settings, "last_call_timeout", &rendezvous->last_call_timeout);
    if (text_list_variable(settings, "last_call_timeout") == NULL) {
        /* A last call that outlasts the join timeout never ends. */
        struct duration longest = {rendezvous->join_timeout.nanoseconds / 2};
        bool is_too_long = rendezvous->last_call_timeout.nanoseconds > longest.nanoseconds;
        rendezvous->last_call_timeout = is_too_long ? longest : rendezvous->last_call_timeout;
    }
    take_seconds(settings, "close_timeout", &rendezvous->close_timeout);
    take_seconds(settings, "heartbeat_timeout", &rendezvous->heartbeat_timeout);
    take_seconds(settings, "keep_alive_interval", &rendezvous->keep_alive_interval);
    rendezvous->keep_alive_max_attempt =
        (int)number_of(settings, "keep_alive_max_attempt", rendezvous->keep_alive_max_attempt);
    take_seconds(settings, "silence_timeout", &rendezvous->silence_timeout);
    take_seconds(settings, "calm_after", &rendezvous->calm_after);
    take_seconds(settings, "host_timeout", &rendezvous->host_timeout);
    take_seconds(settings, "fence_timeout", &rendezvous->fence_timeout);
    take_seconds(settings, "exit_barrier_timeout", &rendezvous->exit_barrier_timeout);
    take_seconds(settings, "read_timeout", &dynamic->read_timeout);
    dynamic->store =
        rendezvous_conf_wants_file(settings) ? LAUNCH_RECORD_FILE_STORE : LAUNCH_RECORD_TCP_STORE;
    const char *delegation = text_list_variable(settings, "delegation");
    if (delegation == NULL ||
        rendezvous_conf_parse_boolean(delegation, &rendezvous->delegates) != FAILURE_NONE) {
        rendezvous->delegates = rendezvous->maximum_nodes > RENDEZVOUS_DELEGATES_ABOVE_NODES;
    }
    const char *is_host = text_list_variable(settings, "is_host");
    bool hosts = false;
    if (is_host != NULL && rendezvous_conf_parse_boolean(is_host, &hosts) == FAILURE_NONE) {
        dynamic->is_host = hosts ? LAUNCH_IS_HOST_YES : LAUNCH_IS_HOST_NO;
    }
}

/* Of any backend where `backend` is 0. */
static bool is_known(const char *setting, int backend) {
    for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings; i++) {
        size_t length = strlen(known_settings[i].key);
        if ((backend == 0 || (known_settings[i].backends & backend) != 0) &&
            strncmp(setting, known_settings[i].key, length) == 0 && setting[length] == '=') {
            return true;
        }
    }
    return false;
}

static void warn_of_unknown(const char *setting, const char *backend, struct text_list *warnings) {
    size_t length = strcspn(setting, "=");
    const char *meant = NULL;
    size_t best = 0;
    for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings; i++) {
        const char *key = known_settings[i].key;
        if (!is_known(setting, 0) && option_suggestion_is_better(setting, length, key, &best)) {
            meant = key;
        }
    }
    text_list_add_taken(
        warnings, text_format("--rdzv-conf: %s knows no setting %.*s; it has no effect%s%s%s",
                      backend, (int)length, setting, meant != NULL ? " (did you mean " : "",
                      meant != NULL ? meant : "", meant != NULL ? "?)" : ""));
}

void rendezvous_conf_warn_of_unknown(
    const struct text_list *settings, const char *backend, struct text_list *warnings) {
    for (size_t i = 0; i < settings->count; i++) {
        const char *setting = settings->items[i];
        if (!is_known(setting, backend_bit(backend))) {
            warn_of_unknown(setting, backend, warnings);
        }
    }
}

/* The same for a job of one node, which uses none: for each key that no backend knows. */
static void rendezvous_conf_warn_of_none(
    const struct text_list *settings, const char *backend, struct text_list *warnings) {
    for (size_t i = 0; i < settings->count; i++) {
        if (!is_known(settings->items[i], 0)) {
            warn_of_unknown(settings->items[i], backend, warnings);
        }
    }
}

/* Kubernetes place. */

/* As Kubernetes allows: RFC 1123's label of a namespace, and subdomain of an object's name. */
#define KUBERNETES_SPACE_MAXIMUM 63

#define KUBERNETES_NAME_MAXIMUM 253

static bool is_letter_or_digit(char character) {
    return (character >= 'a' && character <= 'z') || text_is_digit(character);
}

/* Parts of lower-case letters, digits and hyphens, with a letter or digit at both ends. */
static bool is_name(const char *text, size_t maximum, bool has_dots) {
    size_t length = strlen(text);
    if (length == 0 || length > maximum) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        bool is_end = i == 0 || i + 1 == length || text[i - 1] == '.' || text[i + 1] == '.';
        bool is_plain = is_letter_or_digit(text[i]);
        bool is_between = !is_end && (text[i] == '-' || (text[i] == '.' && has_dots));
        if (!is_plain && !is_between) {
            return false;
        }
    }
    return true;
}

bool kubernetes_is_space(const char *text) {
    return is_name(text, KUBERNETES_SPACE_MAXIMUM, false);
}

enum failure_code kubernetes_place_parse(
    const char *text, struct kubernetes_place *out_place, struct text *out_reason) {
    const char *slash = strchr(text, '/');
    const char *name = slash == NULL ? text : slash + 1;
    struct text space = {0};
    enum failure_code code = FAILURE_NONE;
    text_append_bytes(&space, text, slash == NULL ? 0 : (size_t)(slash - text));
    if (slash != NULL && !kubernetes_is_space(text_string(&space))) {
        code = option_refuse_value(out_reason, text,
            "what comes before the / has to be the name of a namespace: at most %d lower-case "
            "letters, digits and hyphens, as in ml/train",
            KUBERNETES_SPACE_MAXIMUM);
    } else if (!is_name(name, KUBERNETES_NAME_MAXIMUM, true)) {
        code = option_refuse_value(out_reason, text,
            "give [NAMESPACE/]NAME of a ConfigMap: NAME has at most %d lower-case letters, digits, "
            "hyphens and dots, and begins and ends with a letter or digit, as in train or ml/train",
            KUBERNETES_NAME_MAXIMUM);
    } else {
        out_place->space = slash == NULL ? NULL : memory_duplicate_string(text_string(&space));
        out_place->name = memory_duplicate_string(name);
    }
    text_clear(&space);
    return code;
}

void kubernetes_place_clear(struct kubernetes_place *place) {
    free(place->space);
    free(place->name);
    *place = (struct kubernetes_place){0};
}

/* The options of a dynamic rendezvous (--rdzv-backend c10d): where the record is kept, how long to
 * wait, what to do when nodes come and go. Matches create_backend in
 * elastic/rendezvous/c10d_rendezvous_backend.py and create_handler in dynamic_rendezvous.py, with
 * two differences. Values that can never work (port 0, or a file store without a path, for several
 * nodes) are mistakes. Values that are likely to surprise (an endpoint that only one machine can
 * reach, the default job name) cause warnings. */

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

static enum failure_code dynamic_options_apply_endpoint(
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

static enum failure_code dynamic_options_apply_register(
    struct option_result *options, struct launch_config *config) {
    struct launch_dynamic *dynamic = &config->dynamic;
    dynamic->register_endpoint =
        option_copy_unless_empty(option_result_text(options, "rdzv_endpoint"));
    dynamic->store = LAUNCH_RECORD_TCP_STORE;
    return check_register(options, config);
}

static enum failure_code apply_place(struct option_result *options, struct launch_config *config) {
    if (config->dynamic.register_engine != NULL) {
        return dynamic_options_apply_register(options, config);
    }
    return config->dynamic.store == LAUNCH_RECORD_FILE_STORE
               ? apply_file(options, config)
               : dynamic_options_apply_endpoint(options, config);
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

/* Whether a job of one node meets at a place that no other node can know: a free port of this
 * machine, as with --standalone, or a file store without a path, where torchrun makes a temporary
 * file. Sizes, backend and a checked rdzv_conf must be set already. */
static bool dynamic_options_meet_nobody(
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

/* Fills `config->dynamic` except for its policies, and adds warnings. Sizes, run id, backend and a
 * checked rdzv_conf must be set already. FAILURE_INVALID: `options` has become a mistake. */
static enum failure_code dynamic_options_apply(
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

/* Applies --on-node-loss and --scale-up. When the rendezvous is not dynamic, they are checked, and
 * cause a warning if they were given. FAILURE_INVALID as above. */
static enum failure_code dynamic_options_apply_policies(
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

/* Rendezvous options. */

#define DEFAULT_MASTER_PORT 29500
#define DEFAULT_STORE_TIMEOUT_SECONDS 900
#define HIGHEST_PORT 65535

static int64_t integer_of(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->integer;
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
