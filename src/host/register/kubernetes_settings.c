/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/kubernetes_settings.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/whole_file.h"
#include "options/launch/endpoint.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_MAXIMUM ((size_t)64 << 10)
#define SERVER_MAXIMUM ((size_t)1024)

struct kubernetes_pod kubernetes_pod_here(void) {
    return (struct kubernetes_pod){
        .host = getenv("KUBERNETES_SERVICE_HOST"),
        .port = getenv("KUBERNETES_SERVICE_PORT"),
        .directory = SERVICE_ACCOUNT,
    };
}

static bool is_given(const char *text) {
    return text != NULL && *text != '\0';
}

static const char *conf_value(const struct text_list *conf, const char *key) {
    return conf == NULL ? NULL : text_list_variable(conf, key);
}

/* A small text file, without the blanks around its text. */
static enum failure_code read_small_file(
    const char *path, char **out_text, struct failure *failure) {
    struct bytes bytes = {0};
    struct text text = {0};
    enum failure_code code = whole_file_read(path, true, TOKEN_MAXIMUM, &bytes, failure);
    if (code == FAILURE_NONE) {
        while (bytes.length > 0 && strchr(" \r\n\t", bytes.data[bytes.length - 1]) != NULL) {
            bytes.length--;
        }
        text_append_bytes(&text, (const char *)bytes.data, bytes.length);
        *out_text = memory_duplicate_string(text_string(&text));
    }
    text_clear(&text);
    bytes_clear(&bytes);
    return code;
}

/* The server. */

static bool is_path(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || strchr("?#@\\", *text) != NULL) {
            return false;
        }
    }
    return true;
}

static enum failure_code refuse_server(
    struct failure *failure, const char *text, const char *reason) {
    return failure_set(failure, FAILURE_INVALID,
        "invalid --rdzv-conf k8s_server=%s: %s; give https://HOST:PORT, as `kubectl cluster-info` "
        "shows it",
        text, reason);
}

static enum failure_code parse_server(
    const char *text, struct kubernetes_settings *settings, struct failure *failure) {
    struct endpoint endpoint = {0};
    struct text authority = {0};
    struct text reason = {0};
    bool is_tls = text_starts_with(text, "https://");
    if ((!is_tls && !text_starts_with(text, "http://")) || strlen(text) > SERVER_MAXIMUM) {
        return refuse_server(failure, text, "it is no URL of at most 1,024 characters");
    }
    const char *start = text + strlen(is_tls ? "https://" : "http://");
    size_t length = strcspn(start, "/");
    text_append_bytes(&authority, start, length);
    enum failure_code code = length == 0 || !is_path(start + length)
                                 ? refuse_server(failure, text, "it has no host, or an odd path")
                                 : endpoint_parse(text_string(&authority), &endpoint, &reason);
    if (code != FAILURE_NONE && reason.length > 0) {
        refuse_server(failure, text, text_string(&reason));
    }
    if (code == FAILURE_NONE && !is_tls && is_given(settings->token_file) &&
        !endpoint_is_loopback(endpoint.host)) {
        code = refuse_server(failure, text, "over http the token would be readable on its way");
    }
    if (code == FAILURE_NONE) {
        settings->server = memory_duplicate_string(text);
        settings->trust.is_tls = is_tls;
        for (size_t end = strlen(text); settings->server[end - 1] == '/'; end--) {
            settings->server[end - 1] = '\0';
        }
    }
    endpoint_clear(&endpoint);
    text_clear(&authority);
    text_clear(&reason);
    return code;
}

/* The files. */

static enum failure_code take_file(
    const char *path, const char *origin, char **out_path, struct failure *failure) {
    if (access(path, R_OK) != 0) {
        return failure_set_system(failure, errno, "cannot read %s %s", origin, path);
    }
    *out_path = memory_duplicate_string(path);
    return FAILURE_NONE;
}

static enum failure_code read_conf(
    const struct text_list *conf, struct kubernetes_settings *settings, struct failure *failure) {
    const char *token_file = conf_value(conf, "k8s_token_file");
    const char *ca = conf_value(conf, "k8s_ca");
    char *ca_file = NULL;
    enum failure_code code = FAILURE_NONE;
    if (token_file != NULL) {
        code = take_file(
            token_file, "the file of --rdzv-conf k8s_token_file:", &settings->token_file, failure);
    }
    if (code == FAILURE_NONE && ca != NULL) {
        code = take_file(ca, "the file of --rdzv-conf k8s_ca:", &ca_file, failure);
        settings->trust.ca = ca_file;
    }
    return code;
}

/* What has not been said in --rdzv-conf is that of the pod. */
static enum failure_code read_pod(const struct kubernetes_pod *pod,
    struct kubernetes_settings *settings, struct failure *failure) {
    if (!is_given(pod->host)) {
        return failure_set(failure, FAILURE_INVALID,
            "--rdzv-backend k8s finds the API server from inside a pod, and this is none "
            "(KUBERNETES_SERVICE_HOST is not set); give --rdzv-conf k8s_server=https://HOST:PORT");
    }
    bool is_ipv6 = strchr(pod->host, ':') != NULL;
    settings->server = text_format(is_ipv6 ? "https://[%s]:%s" : "https://%s:%s", pod->host,
        is_given(pod->port) ? pod->port : "443");
    settings->trust.is_tls = true;
    enum failure_code code = FAILURE_NONE;
    if (settings->token_file == NULL) {
        char *path = text_format("%s/token", pod->directory);
        code =
            take_file(path, "the token of the pod's service account (automountServiceAccountToken)",
                &settings->token_file, failure);
        free(path);
    }
    if (code == FAILURE_NONE && settings->trust.ca == NULL) {
        char *path = text_format("%s/ca.crt", pod->directory);
        char *ca = NULL;
        code = take_file(path, "the certificate of the cluster's authority", &ca, failure);
        settings->trust.ca = ca;
        free(path);
    }
    return code;
}

static enum failure_code read_space(const struct kubernetes_pod *pod,
    struct kubernetes_settings *settings, struct failure *failure) {
    char *path = text_format("%s/namespace", pod->directory);
    char *space = NULL;
    enum failure_code code = read_small_file(path, &space, failure);
    free(path);
    if (code != FAILURE_NONE || !kubernetes_is_space(space)) {
        free(space);
        return failure_set(failure, FAILURE_INVALID,
            "--rdzv-endpoint %s has no namespace, and %s/namespace names none; give NAMESPACE/%s",
            settings->place.name, pod->directory, settings->place.name);
    }
    settings->place.space = space;
    return FAILURE_NONE;
}

static enum failure_code read_all(const char *endpoint, const struct text_list *conf,
    const struct kubernetes_pod *pod, struct kubernetes_settings *settings,
    struct failure *failure) {
    struct text reason = {0};
    const char *server = conf_value(conf, "k8s_server");
    enum failure_code code = kubernetes_place_parse(endpoint, &settings->place, &reason);
    if (code != FAILURE_NONE) {
        failure_set(failure, code, "--rdzv-endpoint: %s", text_string(&reason));
    }
    text_clear(&reason);
    if (code == FAILURE_NONE) {
        code = read_conf(conf, settings, failure);
    }
    if (code == FAILURE_NONE) {
        code = server == NULL ? read_pod(pod, settings, failure)
                              : parse_server(server, settings, failure);
    }
    if (code == FAILURE_NONE && settings->place.space == NULL) {
        code = read_space(pod, settings, failure);
    }
    return code;
}

enum failure_code kubernetes_settings_read(const char *endpoint, const struct text_list *conf,
    const struct kubernetes_pod *pod, struct kubernetes_settings *out_settings,
    struct failure *failure) {
    struct kubernetes_settings settings = {0};
    enum failure_code code = read_all(endpoint, conf, pod, &settings, failure);
    if (code == FAILURE_NONE) {
        *out_settings = settings;
    } else {
        kubernetes_settings_clear(&settings);
    }
    return code;
}

void kubernetes_settings_clear(struct kubernetes_settings *settings) {
    free(settings->server);
    kubernetes_place_clear(&settings->place);
    free(settings->token_file);
    free((void *)(uintptr_t)settings->trust.ca);
    *settings = (struct kubernetes_settings){0};
}

enum failure_code kubernetes_settings_read_token(
    const struct kubernetes_settings *settings, char **out_token, struct failure *failure) {
    char *token = NULL;
    if (settings->token_file == NULL) {
        *out_token = NULL;
        return FAILURE_NONE;
    }
    enum failure_code code = read_small_file(settings->token_file, &token, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "the token for Kubernetes");
    }
    bool is_token = *token != '\0';
    for (const char *next = token; *next != '\0'; next++) {
        is_token = is_token && *next > ' ' && *next <= '~';
    }
    if (!is_token) {
        free(token);
        return failure_set(failure, FAILURE_MALFORMED,
            "%s holds no token for Kubernetes: it is empty, or has blanks in it",
            settings->token_file);
    }
    *out_token = token;
    return FAILURE_NONE;
}
