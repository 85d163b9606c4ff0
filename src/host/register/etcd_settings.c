/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/etcd_settings.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/whole_file.h"
#include "options/launch/endpoint_list.h"

#define PASSWORD_MAXIMUM ((size_t)4096)

static const char *conf_value(const struct text_list *conf, const char *key, const char *other) {
    const char *value = conf == NULL ? NULL : text_list_variable(conf, key);
    return value == NULL && other != NULL && conf != NULL ? text_list_variable(conf, other) : value;
}

static enum failure_code refuse_setting(
    struct failure *failure, const char *key, const char *value, const char *what) {
    return failure_set(failure, FAILURE_INVALID, "invalid --rdzv-conf %s=%s: %s", key, value, what);
}

/* Endpoints. */

static enum failure_code read_endpoints(
    const char *text, struct etcd_settings *settings, struct failure *failure) {
    struct endpoint_list list = {0};
    struct text reason = {0};
    enum failure_code code = endpoint_list_parse(text, &list, &reason);
    if (code != FAILURE_NONE) {
        failure_set(failure, FAILURE_INVALID, "--rdzv-endpoint: %s", text_string(&reason));
    }
    text_clear(&reason);
    settings->endpoints = list.members;
    settings->trust.is_tls = list.is_https;
    return code;
}

/* TLS. */

static enum failure_code read_protocol(
    const struct text_list *conf, struct etcd_settings *settings, struct failure *failure) {
    const char *protocol = conf_value(conf, "protocol", NULL);
    if (protocol == NULL) {
        return FAILURE_NONE;
    }
    bool is_https = text_equals(protocol, "https");
    if (!is_https && !text_equals(protocol, "http")) {
        return refuse_setting(failure, "protocol", protocol, "it is http or https");
    }
    if (!is_https && settings->trust.is_tls) {
        return refuse_setting(
            failure, "protocol", protocol, "the members in --rdzv-endpoint have https://");
    }
    settings->trust.is_tls = is_https;
    return FAILURE_NONE;
}

static enum failure_code read_path(const struct text_list *conf, const char *key, const char *other,
    const char **out_path, struct failure *failure) {
    const char *path = conf_value(conf, key, other);
    if (path != NULL && access(path, R_OK) != 0) {
        return failure_set_system(
            failure, errno, "cannot read the file of --rdzv-conf %s=%s", key, path);
    }
    *out_path = memory_duplicate_string(path);
    return FAILURE_NONE;
}

static enum failure_code read_trust(
    const struct text_list *conf, struct etcd_settings *settings, struct failure *failure) {
    struct http_trust *trust = &settings->trust;
    enum failure_code code = read_protocol(conf, settings, failure);
    if (code == FAILURE_NONE) {
        code = read_path(conf, "ca_cert", "cacert", &trust->ca, failure);
    }
    if (code == FAILURE_NONE) {
        code = read_path(conf, "ssl_cert", "cert", &trust->certificate, failure);
    }
    if (code == FAILURE_NONE) {
        code = read_path(conf, "ssl_cert_key", "key", &trust->key, failure);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    if ((trust->certificate == NULL) != (trust->key == NULL)) {
        return failure_set(failure, FAILURE_INVALID,
            "invalid --rdzv-conf: ssl_cert and ssl_cert_key need each other");
    }
    if (!trust->is_tls && (trust->ca != NULL || trust->certificate != NULL)) {
        return failure_set(
            failure, FAILURE_INVALID, "invalid --rdzv-conf: certificates need protocol=https");
    }
    return FAILURE_NONE;
}

/* The user. */

static enum failure_code read_password_file(
    const char *path, struct etcd_settings *settings, struct failure *failure) {
    struct bytes bytes = {0};
    struct text password = {0};
    enum failure_code code = whole_file_read(path, true, PASSWORD_MAXIMUM, &bytes, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "the file of --rdzv-conf password_file");
    }
    while (bytes.length > 0 && (bytes.data[bytes.length - 1] == '\n')) {
        bytes.length--;
    }
    text_append_bytes(&password, (const char *)bytes.data, bytes.length);
    settings->password = memory_duplicate_string(text_string(&password));
    text_clear(&password);
    bytes_clear(&bytes);
    return FAILURE_NONE;
}

static enum failure_code read_user(
    const struct text_list *conf, struct etcd_settings *settings, struct failure *failure) {
    const char *user = conf_value(conf, "user", NULL);
    const char *password = conf_value(conf, "password", NULL);
    const char *file = conf_value(conf, "password_file", NULL);
    int ways = (password != NULL ? 1 : 0) + (file != NULL ? 1 : 0);
    if (ways != (user != NULL ? 1 : 0)) {
        return failure_set(failure, FAILURE_INVALID,
            "invalid --rdzv-conf: user needs password or password_file, and each of these a user");
    }
    settings->user = memory_duplicate_string(user);
    settings->password = memory_duplicate_string(password);
    return file == NULL ? FAILURE_NONE : read_password_file(file, settings, failure);
}

enum failure_code etcd_settings_read(const char *endpoint, const struct text_list *conf,
    struct etcd_settings *out_settings, struct failure *failure) {
    struct etcd_settings settings = {0};
    enum failure_code code = read_endpoints(endpoint, &settings, failure);
    if (code == FAILURE_NONE) {
        code = read_trust(conf, &settings, failure);
    }
    if (code == FAILURE_NONE) {
        code = read_user(conf, &settings, failure);
    }
    if (code == FAILURE_NONE) {
        *out_settings = settings;
    } else {
        etcd_settings_clear(&settings);
    }
    return code;
}

static void free_text(const char *text) {
    free((void *)(uintptr_t)text);
}

void etcd_settings_clear(struct etcd_settings *settings) {
    text_list_clear(&settings->endpoints);
    free_text(settings->trust.ca);
    free_text(settings->trust.certificate);
    free_text(settings->trust.key);
    free(settings->user);
    free(settings->password);
    *settings = (struct etcd_settings){0};
}
