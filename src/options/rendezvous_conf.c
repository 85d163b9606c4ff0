/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/rendezvous_conf.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "options/option_values.h"

enum setting_kind {
    SETTING_POSITIVE, /* a whole number above 0 */
    SETTING_BOOLEAN,
    SETTING_STORE_TYPE,
};

enum { BACKEND_STATIC = 1, BACKEND_C10D = 2, BACKEND_ETCD_V2 = 4, BACKEND_ETCD = 8 };

static const struct {
    const char *key;
    enum setting_kind kind;
    int backends;
} known_settings[] = {
    {"join_timeout", SETTING_POSITIVE, BACKEND_C10D | BACKEND_ETCD_V2},
    {"last_call_timeout", SETTING_POSITIVE, BACKEND_C10D | BACKEND_ETCD_V2 | BACKEND_ETCD},
    {"close_timeout", SETTING_POSITIVE, BACKEND_C10D | BACKEND_ETCD_V2},
    {"heartbeat_timeout", SETTING_POSITIVE, BACKEND_C10D | BACKEND_ETCD_V2},
    {"keep_alive_interval", SETTING_POSITIVE, BACKEND_C10D | BACKEND_ETCD_V2},
    {"keep_alive_max_attempt", SETTING_POSITIVE, BACKEND_C10D | BACKEND_ETCD_V2},
    {"read_timeout", SETTING_POSITIVE, BACKEND_C10D | BACKEND_ETCD_V2},
    {"timeout", SETTING_POSITIVE, BACKEND_STATIC | BACKEND_ETCD},
    {"is_host", SETTING_BOOLEAN, BACKEND_C10D},
    {"store_type", SETTING_STORE_TYPE, BACKEND_C10D},
};

static enum failure_code add_setting(
    const char *whole, const char *item, struct text_list *settings, struct text *out_reason) {
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
    text_list_add_all(&settings, out_settings);
    if (*trimmed != '\0') {
        option_split(trimmed, ',', &items);
    }
    free(trimmed);
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < items.count && code == FAILURE_NONE; i++) {
        code = add_setting(text, items.items[i], &settings, out_reason);
    }
    text_list_clear(&items);
    if (code != FAILURE_NONE) {
        text_list_clear(&settings);
        return code;
    }
    text_list_clear(out_settings);
    *out_settings = settings;
    return FAILURE_NONE;
}

/* Whether `text` is `word` in any case. */
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

static enum failure_code check_setting(
    const char *key, const char *value, enum setting_kind kind, struct text *out_reason) {
    int64_t number = 0;
    bool boolean;
    switch (kind) {
    case SETTING_POSITIVE:
        if (text_parse_integer(value, &number) != FAILURE_NONE || number < 1 || number > INT_MAX) {
            return option_refuse_value(
                out_reason, value, "the setting %s takes a whole number above 0", key);
        }
        break;
    case SETTING_BOOLEAN:
        if (rendezvous_conf_parse_boolean(value, &boolean) != FAILURE_NONE) {
            return option_refuse_value(
                out_reason, value, "the setting %s takes true or false", key);
        }
        break;
    case SETTING_STORE_TYPE:
        if (!is_word(value, "tcp") && !is_word(value, "file")) {
            return option_refuse_value(out_reason, value, "the setting %s takes tcp or file", key);
        }
        break;
    }
    return FAILURE_NONE;
}

static int backend_bit(const char *backend) {
    static const struct {
        const char *name;
        int bit;
    } backends[] = {{"static", BACKEND_STATIC}, {"c10d", BACKEND_C10D},
        {"etcd-v2", BACKEND_ETCD_V2}, {"etcd", BACKEND_ETCD}};
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
        enum failure_code code =
            check_setting(known_settings[i].key, value, known_settings[i].kind, out_reason);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    return FAILURE_NONE;
}
