/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/rendezvous_conf.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/launch/secret_setting.h"
#include "options/argparse/option_parser.h"
#include "options/launch/option_values.h"

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

enum failure_code rendezvous_conf_parse_boolean(const char *text, bool *out_value) {
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

enum failure_code rendezvous_conf_check(
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

bool rendezvous_conf_wants_file(const struct text_list *settings) {
    const char *type = text_list_variable(settings, "store_type");
    return type != NULL && is_word(type, "file");
}

void rendezvous_conf_apply(const struct text_list *settings, struct launch_dynamic *dynamic) {
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

void rendezvous_conf_warn_of_none(
    const struct text_list *settings, const char *backend, struct text_list *warnings) {
    for (size_t i = 0; i < settings->count; i++) {
        if (!is_known(settings->items[i], 0)) {
            warn_of_unknown(settings->items[i], backend, warnings);
        }
    }
}
