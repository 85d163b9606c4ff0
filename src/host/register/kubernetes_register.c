/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `k8s` of a job's register: two objects that the API server of Kubernetes keeps, both
 * of the name that --rdzv-endpoint gives.
 *
 *     ConfigMap    data: entry.RUN_ID                         the last entry of that job
 *     Lease        metadata.annotations: renewal.RUN_ID.TERM  its renewals; spec.holderIdentity
 *
 * An append is an update with the version (resourceVersion) of the ConfigMap that was read, so it
 * is done only if nobody has changed the ConfigMap since. One entry is enough: what is appended
 * must follow it. The API server is asked again when it is not there or wants to be left alone;
 * what became of an update whose reply was lost is read. The Lease does not run out: a term ends by
 * an append, and not by a time that passes. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/register/register_entry.h"
#include "host/loop/clock.h"
#include "host/loop/event_loop.h"
#include "host/loop/files.h"
#include "host/register/http_client.h"
#include "host/register/register_engine.h"
#include "options/launch/option_values.h"
#include "options/launch/rendezvous_options.h"
#include "wire/register/register_entry_text.h"

/* Where the API server of Kubernetes is that keeps a job's register, and how it is asked. In a pod
 * that is known from its environment and its service account. With --rdzv-conf k8s_server= it is
 * another one, with k8s_token_file= and k8s_ca=, if given: outside of a pod, or behind `kubectl
 * proxy`. */

/* What Kubernetes gives to each process of a pod. */
struct kubernetes_pod {
    const char *host; /* of the API server; NULL: this is no pod */
    const char *port;
    const char *directory; /* of the service account: token, ca.crt, namespace */
};

struct kubernetes_settings {
    char *server; /* http://… or https://…, without a slash at its end */
    struct kubernetes_place place;
    char *token_file;        /* NULL: none */
    struct http_trust trust; /* its strings are owned here */
};

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_MAXIMUM ((size_t)64 << 10)
#define SERVER_MAXIMUM ((size_t)1024)

/* That of this process. */
static struct kubernetes_pod kubernetes_pod_here(void) {
    return (struct kubernetes_pod){
        .host = getenv("KUBERNETES_SERVICE_HOST"),
        .port = getenv("KUBERNETES_SERVICE_PORT"),
        .directory = SERVICE_ACCOUNT,
    };
}

static void kubernetes_settings_clear(struct kubernetes_settings *settings) {
    free(settings->server);
    kubernetes_place_clear(&settings->place);
    free(settings->token_file);
    free((void *)(uintptr_t)settings->trust.ca);
    *settings = (struct kubernetes_settings){0};
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

/* `conf` may be NULL. FAILURE_INVALID with a message for the user; FAILURE_SYSTEM and
 * FAILURE_MISSING for a file that cannot be read. */
static enum failure_code kubernetes_settings_read(const char *endpoint,
    const struct text_list *conf, const struct kubernetes_pod *pod,
    struct kubernetes_settings *out_settings, struct failure *failure) {
    struct kubernetes_settings settings = {0};
    enum failure_code code = read_all(endpoint, conf, pod, &settings, failure);
    if (code == FAILURE_NONE) {
        *out_settings = settings;
    } else {
        kubernetes_settings_clear(&settings);
    }
    return code;
}

/* Reads the token file: Kubernetes replaces it from time to time. The caller frees the token, which
 * is NULL where there is no token file. FAILURE_MALFORMED for what cannot be a token; no message
 * quotes it. */
static enum failure_code kubernetes_settings_read_token(
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

/* Kubernetes client. */

/* Asks the API server of Kubernetes for one object, to create one, to take a changed one, or to
 * tell of its changes, and says what its answer means. It knows nothing of what the objects hold.
 */

enum kubernetes_verb { KUBERNETES_GET, KUBERNETES_UPDATE, KUBERNETES_CREATE, KUBERNETES_WATCH };

enum kubernetes_outcome {
    KUBERNETES_DONE,     /* `object`: as it is now */
    KUBERNETES_MISSING,  /* there is no such object */
    KUBERNETES_CONFLICT, /* somebody has changed or created it meanwhile */
    KUBERNETES_FAILED,   /* `why` */
};

/* Borrowed for the call that gets it. */
struct kubernetes_answer {
    enum kubernetes_outcome outcome;
    struct kubernetes_object *object; /* the caller's from now on */
    const struct failure *why;        /* it names the server */
    bool is_final;                    /* it will be the same until somebody has done something */
    bool may_pass;         /* all the same: a server that has just started says so, too */
    bool is_undone;        /* the server has not done what it was asked */
    struct duration pause; /* how long it wants to be left alone; 0: it does not say */
};

/* Called on the loop, never from inside a call of this module. */
typedef void kubernetes_answered(void *context, const struct kubernetes_answer *answer);

#define LONGEST_PAUSE_SECONDS 30
#define ROLE "apply the Role and RoleBinding of examples/kubernetes/role.yaml for it"

struct kubernetes_client {
    const struct kubernetes_settings *settings;
    struct http_client *http;
};

struct kubernetes_question {
    struct kubernetes_client *client;
    struct http_exchange *exchange;
    enum kubernetes_verb verb;
    enum kubernetes_kind kind;
    int64_t retry_after; /* seconds, of the reply's header */
    size_t heard_length; /* of a watch: of the reply, in lines that were told */
    bool (*heard)(void *context, struct kubernetes_object *object_or_null);
    kubernetes_answered *answered;
    void *context;
};

/* Both are in `folder`, below the namespace. */
static const struct {
    const char *group;
    const char *folder;
} resources[] = {
    [KUBERNETES_CONFIG_MAP] = {"/api/v1", "configmaps"},
    [KUBERNETES_LEASE] = {"/apis/coordination.k8s.io/v1", "leases"},
};

static const char *const methods[] = {
    [KUBERNETES_GET] = "GET",
    [KUBERNETES_UPDATE] = "PUT",
    [KUBERNETES_CREATE] = "POST",
    [KUBERNETES_WATCH] = "GET",
};

/* Answers. */

/* The failure has its words; they get the server's name, and what may help. */
static void answer_failed(struct kubernetes_question *question, struct failure *failure,
    struct kubernetes_answer answer) {
    failure_wrap(failure, "Kubernetes (%s)", question->client->settings->server);
    answer.outcome = KUBERNETES_FAILED;
    answer.why = failure;
    question->answered(question->context, &answer);
}

static void take_silence(struct kubernetes_question *question, const struct http_result *result) {
    struct failure failure;
    bool is_tls = question->client->settings->trust.is_tls;
    failure_set(&failure, result->why->code, "%s%s", result->why->message,
        result->is_strange && !is_tls ? " (for a server with TLS, write https:// in k8s_server)"
                                      : "");
    answer_failed(question, &failure,
        (struct kubernetes_answer){
            .is_final = result->is_trust_failure, .is_undone = result->is_unheard});
}

/* The server refuses for other causes with the same statuses, which its words tell. */
static const char *advice_for(
    const struct kubernetes_question *question, long status, const char *words) {
    bool lacks_role = strstr(words, " cannot ") != NULL;
    bool is_too_long = strstr(words, "Too long") != NULL;
    switch (status) {
    case 400:
        return question->client->settings->trust.is_tls
                   ? ""
                   : "; for a server with TLS, write https:// in k8s_server";
    case 401:
        return "; it does not accept the token of the service account: look at the token file and "
               "at the server's name";
    case 403:
        return lacks_role ? "; " ROLE : "";
    case 413:
    case 422:
        return status == 413 || is_too_long
                   ? "; a ConfigMap holds 1 MiB: remove the entries of jobs that are over, or give "
                     "this job another name in --rdzv-endpoint"
                   : "";
    default:
        return "";
    }
}

/* A server that has just started knows no accounts and no roles for a moment. */
static bool is_about_access(long status) {
    return status == 401 || status == 403;
}

static bool is_transient(long status) {
    bool is_old_version = status == 410; /* of a watch: it is read again */
    return status == 408 || status == 429 || status >= 500 || is_old_version;
}

static void take_refusal(struct kubernetes_question *question, const struct http_result *result) {
    struct failure failure;
    struct text words = {0};
    int64_t seconds = kubernetes_status_read(result->body, &words);
    seconds = question->retry_after > seconds ? question->retry_after : seconds;
    seconds = seconds > LONGEST_PAUSE_SECONDS ? LONGEST_PAUSE_SECONDS : seconds;
    bool is_known = words.length > 0;
    failure_set(&failure, FAILURE_SYSTEM, "%s (HTTP status %ld)%s",
        is_known ? text_string(&words) : "the server gives no reason as an API server does",
        result->status, advice_for(question, result->status, text_string(&words)));
    text_clear(&words);
    answer_failed(question, &failure,
        (struct kubernetes_answer){.is_final = !is_transient(result->status),
            .may_pass = is_about_access(result->status),
            .is_undone = result->status < 500 && result->status != 408,
            .pause = duration_from_milliseconds(seconds * 1000)});
}

/* The object is of no use: the server has done what it was asked, or is none. */
static void take_nonsense(struct kubernetes_question *question, const struct http_result *result) {
    struct failure failure;
    failure_set(&failure, FAILURE_PROTOCOL,
        "what answers there is no API server of Kubernetes (HTTP status %ld); look at the server's "
        "name",
        result->status);
    answer_failed(question, &failure,
        (struct kubernetes_answer){
            .is_final = true, .is_undone = question->verb == KUBERNETES_GET});
}

static void kubernetes_client_take_object(
    struct kubernetes_question *question, const struct http_result *result) {
    struct kubernetes_answer answer = {.outcome = KUBERNETES_DONE};
    if (kubernetes_object_read(result->body, question->kind, &answer.object) != FAILURE_NONE) {
        take_nonsense(question, result);
    } else {
        question->answered(question->context, &answer);
    }
}

/* An object is missing only where an API server says so. Nothing can be created in a namespace that
 * is missing. */
static void kubernetes_client_take_missing(
    struct kubernetes_question *question, const struct http_result *result) {
    const struct kubernetes_place *place = &question->client->settings->place;
    struct text words = {0};
    struct failure failure;
    (void)kubernetes_status_read(result->body, &words);
    bool is_known = words.length > 0;
    text_clear(&words);
    if (!is_known) {
        take_nonsense(question, result);
    } else if (question->verb == KUBERNETES_CREATE) {
        failure_set(&failure, FAILURE_MISSING,
            "there is no namespace '%s'; name one that exists in --rdzv-endpoint %s/%s",
            place->space, place->space, place->name);
        answer_failed(
            question, &failure, (struct kubernetes_answer){.is_final = true, .is_undone = true});
    } else {
        question->answered(
            question->context, &(struct kubernetes_answer){.outcome = KUBERNETES_MISSING});
    }
}

/* A server ends each watch after a while. */
static void take_end(struct kubernetes_question *question) {
    struct failure failure;
    failure_set(&failure, FAILURE_DISCONNECTED, "it tells of no more changes");
    answer_failed(question, &failure, (struct kubernetes_answer){.is_undone = true});
}

static void done(void *context, const struct http_result *result) {
    struct kubernetes_question *question = context;
    bool is_success = result->status >= 200 && result->status < 300;
    if (!result->is_answered) {
        take_silence(question, result);
    } else if (is_success && question->verb == KUBERNETES_WATCH) {
        take_end(question);
    } else if (is_success) {
        kubernetes_client_take_object(question, result);
    } else if (result->status == 404) {
        kubernetes_client_take_missing(question, result);
    } else if (result->status == 409) {
        question->answered(
            question->context, &(struct kubernetes_answer){.outcome = KUBERNETES_CONFLICT});
    } else if (result->status >= 400) {
        take_refusal(question, result);
    } else {
        take_nonsense(question, result);
    }
    free(question);
}

static bool hear_line(struct kubernetes_question *question, struct slice line) {
    struct kubernetes_object *object = NULL;
    enum kubernetes_event event = kubernetes_event_read(line, question->kind, &object);
    return event == KUBERNETES_EVENT_NOTHING || question->heard(question->context, object);
}

/* A refusal is no line of a watch, and is the answer. False: the question is gone. */
static bool hear(void *context, struct slice body) {
    struct kubernetes_question *question = context;
    bool goes_on = true;
    struct slice rest = slice_from(body, question->heard_length);
    const uint8_t *end;
    while (goes_on && rest.length > 0 && (end = memchr(rest.data, '\n', rest.length)) != NULL) {
        struct slice line = {rest.data, (size_t)(end - rest.data)};
        rest = slice_from(rest, line.length + 1);
        question->heard_length = body.length - rest.length;
        goes_on = hear_line(question, line);
    }
    if (!goes_on) {
        free(question);
    }
    return goes_on;
}

static void take_header(void *context, struct slice line) {
    struct kubernetes_question *question = context;
    static const char name[] = "retry-after:";
    size_t length = sizeof name - 1;
    if (line.length < length || strncasecmp((const char *)line.data, name, length) != 0) {
        return;
    }
    struct text value = {0};
    int64_t seconds;
    text_append_bytes(&value, (const char *)line.data + length, line.length - length);
    if (text_parse_integer(text_string(&value), &seconds) == FAILURE_NONE) {
        question->retry_after = seconds; /* otherwise it is a date */
    }
    text_clear(&value);
}

/* Questions. */

static void write_headers(const char *token, struct text_list *headers) {
    text_list_add(headers, "accept: application/json");
    text_list_add(headers, "content-type: application/json");
    text_list_add(headers, "user-agent: muster");
    text_list_add(headers, "expect:");
    if (token != NULL) {
        text_list_add_taken(headers, text_format("authorization: Bearer %s", token));
    }
}

static void write_watch(const struct kubernetes_question *question,
    const struct kubernetes_object *object, struct duration patience, struct text *out) {
    text_append_format(out,
        "?watch=true&fieldSelector=metadata.name%%3D%s&resourceVersion=%s&timeoutSeconds=%lld",
        question->client->settings->place.name, kubernetes_object_version(object),
        (long long)(duration_milliseconds_ceiling(patience) / 1000 + 1));
}

static char *url_of(const struct kubernetes_question *question,
    const struct kubernetes_object *object, struct duration patience) {
    const struct kubernetes_settings *settings = question->client->settings;
    struct text url = {0};
    text_append_format(&url, "%s%s/namespaces/%s/%s", settings->server,
        resources[question->kind].group, settings->place.space, resources[question->kind].folder);
    if (question->verb == KUBERNETES_WATCH) {
        write_watch(question, object, patience, &url);
    } else if (question->verb != KUBERNETES_CREATE) {
        text_append_format(&url, "/%s", settings->place.name);
    }
    return text_take(&url);
}

static void start(struct kubernetes_question *question, const char *token,
    const struct kubernetes_object *object, struct duration patience) {
    struct text_list headers = {0};
    struct text body = {0};
    char *url = url_of(question, object, patience);
    bool is_watch = question->verb == KUBERNETES_WATCH;
    write_headers(token, &headers);
    if (object != NULL && !is_watch) {
        kubernetes_object_write(object, &body);
    }
    const struct http_question http = {
        .url = url,
        .method = methods[question->verb],
        .headers = &headers,
        .body = {(const uint8_t *)text_string(&body), body.length},
        .version = HTTP_VERSION_1,
        .ceiling = KUBERNETES_OBJECT_MAXIMUM,
        .patience = patience,
        .header = take_header,
        .heard = is_watch ? hear : NULL,
        .done = done,
        .context = question,
    };
    question->exchange = http_exchange_start(question->client->http, &http);
    text_list_clear(&headers);
    text_clear(&body);
    free(url);
}

static struct kubernetes_question *begin(const struct kubernetes_question *wanted,
    const struct kubernetes_object *object, struct duration patience, struct failure *failure) {
    char *token = NULL;
    if (kubernetes_settings_read_token(wanted->client->settings, &token, failure) != FAILURE_NONE) {
        return NULL;
    }
    struct kubernetes_question *question = memory_duplicate(wanted, sizeof *wanted);
    start(question, token, object, patience);
    free(token);
    return question;
}

/* `object` is borrowed for the call; NULL with KUBERNETES_GET. NULL, and a message that names the
 * file, when the token cannot be read; otherwise the question is valid until it is answered. */
static struct kubernetes_question *kubernetes_ask(struct kubernetes_client *client,
    enum kubernetes_verb verb, enum kubernetes_kind kind, const struct kubernetes_object *object,
    struct duration patience, kubernetes_answered *answered, void *context,
    struct failure *failure) {
    const struct kubernetes_question wanted = {
        .client = client, .verb = verb, .kind = kind, .answered = answered, .context = context};
    return begin(&wanted, object, patience, failure);
}

/* Waits for changes of the object since the version of this one. `heard` is called as `answered`
 * is, with each change: the object is the callee's from then on; NULL: it is gone, or the server
 * does not know any more what has changed. When it returns false, the question is gone and not
 * answered. Otherwise the answer is KUBERNETES_FAILED at last. NULL as above. */
static struct kubernetes_question *kubernetes_watch(struct kubernetes_client *client,
    enum kubernetes_kind kind, const struct kubernetes_object *object, struct duration patience,
    bool (*heard)(void *context, struct kubernetes_object *object_or_null),
    kubernetes_answered *answered, void *context, struct failure *failure) {
    const struct kubernetes_question wanted = {.client = client,
        .verb = KUBERNETES_WATCH,
        .kind = kind,
        .heard = heard,
        .answered = answered,
        .context = context};
    return begin(&wanted, object, patience, failure);
}

static void kubernetes_question_cancel(struct kubernetes_question *question) {
    http_exchange_cancel(question->exchange);
    free(question);
}

/* The client. */

/* The settings and the library are borrowed as long as the client lives. FAILURE_SYSTEM. */
static enum failure_code kubernetes_client_new(struct event_loop *loop,
    const struct curl_library *library, const struct kubernetes_settings *settings,
    struct kubernetes_client **out_client, struct failure *failure) {
    struct kubernetes_client *client = memory_allocate(sizeof *client);
    client->settings = settings;
    enum failure_code code =
        http_client_new(loop, library, &settings->trust, &client->http, failure);
    if (code == FAILURE_NONE) {
        *out_client = client;
    } else {
        free(client);
    }
    return code;
}

/* All questions must have been answered or cancelled. Not from inside `answered`. Accepts NULL. */
static void kubernetes_client_free(struct kubernetes_client *client) {
    if (client != NULL) {
        http_client_free(client->http);
        free(client);
    }
}

/* Kubernetes register. */

/* How long the server may take; so long for each attempt, because it may be slow. */
#define PATIENCE_MILLISECONDS 1500
#define PATIENCE_ATTEMPTS 10
/* The pauses before it is asked again, when it is not there and when others are faster. */
#define ABSENCE_PAUSE_MILLISECONDS 100
#define CONFLICT_PAUSE_MILLISECONDS 10
#define LONGEST_PAUSE_MILLISECONDS 500
/* For so long a server is asked again that does not let this account in. */
#define REFUSALS_MILLISECONDS 3000

struct kubernetes_register {
    struct event_loop *loop;
    struct curl_library curl;
    struct kubernetes_settings settings;
    struct kubernetes_client *client;
    char *node_name;
    char *entry_name;
    char *renewal_start; /* the name of a renewal, without its term */
    /* As they were when they were last read or written; NULL: unknown. */
    struct kubernetes_object *known[2];
    uint64_t renewal_seed;
    uint64_t renewal_count;
};

struct work {
    struct kubernetes_register *state;
    struct register_request *request;
    struct kubernetes_question *question;
    struct event_timer *timer; /* of a pause; then the object is read */
    enum kubernetes_kind kind;
    enum kubernetes_verb verb; /* of the question */
    int64_t attempts;
    int64_t conflicts;
    struct instant refused_at; /* for the first time; 0: never */
    bool may_have_happened;    /* of an append: the server was asked, and has not said no */
};

static void answered(void *context, const struct kubernetes_answer *answer);

/* The end of a request. */

static void work_free(struct work *work) {
    if (work->question != NULL) {
        kubernetes_question_cancel(work->question);
    }
    event_timer_free(work->timer);
    free(work);
}

static void finish(struct work *work, const struct register_result *result) {
    work->request->answer(work->request, result);
    work_free(work);
}

static void finish_failed(struct work *work, const struct failure *failure) {
    finish(work,
        &(struct register_result){
            .outcome = work->may_have_happened ? REGISTER_OUTCOME_UNKNOWN : REGISTER_OUTCOME_FAILED,
            .failure = failure,
            .is_final = true});
}

static const char *kind_name(const struct work *work) {
    return work->kind == KUBERNETES_CONFIG_MAP ? "ConfigMap" : "Lease";
}

static void finish_with_text(
    struct work *work, enum register_outcome outcome, const char *name, const char *value) {
    const struct kubernetes_place *place = &work->state->settings.place;
    char *where =
        text_format("%s of ConfigMap %s in namespace %s", name, place->name, place->space);
    finish(work, &(struct register_result){.outcome = outcome,
                     .text = slice_from_string(value == NULL ? "" : value),
                     .place = where});
    free(where);
}

/* What is known. */

static void forget(struct work *work) {
    kubernetes_object_free(work->state->known[work->kind]);
    work->state->known[work->kind] = NULL;
}

static void keep(struct work *work, struct kubernetes_object *object) {
    forget(work);
    work->state->known[work->kind] = object;
}

static const char *known_entry(const struct kubernetes_register *state) {
    const struct kubernetes_object *object = state->known[KUBERNETES_CONFIG_MAP];
    return object == NULL ? NULL : kubernetes_object_value(object, state->entry_name);
}

/* 0: there is none. False: it cannot be read. */
static bool read_number(const char *entry_text, int64_t *out_number) {
    struct register_entry entry;
    *out_number = 0;
    if (entry_text == NULL) {
        return true;
    }
    if (register_entry_read(slice_from_string(entry_text), &entry, NULL) != FAILURE_NONE) {
        return false;
    }
    *out_number = entry.number;
    register_entry_clear(&entry);
    return true;
}

/* Asking. */

static void ask(struct work *work, enum kubernetes_verb verb, struct kubernetes_object *object) {
    struct failure failure;
    int64_t patience = work->attempts < PATIENCE_ATTEMPTS ? work->attempts + 1 : PATIENCE_ATTEMPTS;
    work->verb = verb;
    work->attempts++;
    work->question = kubernetes_ask(work->state->client, verb, work->kind, object,
        duration_from_milliseconds(patience * PATIENCE_MILLISECONDS), answered, work, &failure);
    if (work->question == NULL) {
        finish_failed(work, &failure);
    }
}

static void read_object(void *context) {
    ask(context, KUBERNETES_GET, NULL);
}

static void pause_for(struct work *work, struct duration pause) {
    event_timer_set(work->timer, instant_after(event_loop_now(work->state->loop), pause));
}

static void pause_milliseconds(struct work *work, int64_t milliseconds) {
    pause_for(work,
        duration_from_milliseconds(
            milliseconds < LONGEST_PAUSE_MILLISECONDS ? milliseconds : LONGEST_PAUSE_MILLISECONDS));
}

/* Writing. */

static void change_config_map(const struct work *work, struct kubernetes_object *object) {
    struct text text = {0};
    text_append_bytes(&text, (const char *)work->request->text.data, work->request->text.length);
    kubernetes_object_set_value(object, work->state->entry_name, text_string(&text));
    text_clear(&text);
}

/* The renewals of this term and the one before stay. */
static void change_lease(struct work *work, struct kubernetes_object *object) {
    struct kubernetes_register *state = work->state;
    int64_t term = work->request->term;
    char *name = text_format("%s%" PRId64, state->renewal_start, term);
    char value[64];
    snprintf(value, sizeof value, "%016" PRIx64 " %" PRIu64, state->renewal_seed,
        ++state->renewal_count);
    kubernetes_object_remove_below(object, state->renewal_start, term - 1);
    kubernetes_object_set_value(object, name, value);
    kubernetes_object_set_holder(object, state->node_name);
    free(name);
}

/* The object is not known from here on, until the answer comes. */
static void write_object(
    struct work *work, enum kubernetes_verb verb, struct kubernetes_object *object_taken) {
    if (work->kind == KUBERNETES_CONFIG_MAP) {
        change_config_map(work, object_taken);
    } else {
        change_lease(work, object_taken);
    }
    ask(work, verb, object_taken);
    kubernetes_object_free(object_taken);
}

static void update(struct work *work) {
    struct kubernetes_object *object = work->state->known[work->kind];
    work->state->known[work->kind] = NULL;
    write_object(work, KUBERNETES_UPDATE, object);
}

static void create(struct work *work) {
    write_object(work, KUBERNETES_CREATE,
        kubernetes_object_new(work->kind, work->state->settings.place.name));
}

/* What was read. */

static void finish_gone(struct work *work) {
    const struct kubernetes_place *place = &work->state->settings.place;
    struct failure failure;
    failure_set(&failure, FAILURE_MISSING,
        "entry %" PRId64
        " of this job's register is gone from ConfigMap %s in namespace %s: somebody has removed "
        "it while the job runs",
        work->request->number - 1, place->name, place->space);
    finish_failed(work, &failure);
}

/* The entry follows the last one, or it has lost. */
static void append(struct work *work) {
    const char *last = known_entry(work->state);
    int64_t number;
    if (!read_number(last, &number) || number >= work->request->number) {
        finish_with_text(work, REGISTER_OUTCOME_LOST, work->state->entry_name, last);
    } else if (number == work->request->number - 1) {
        update(work);
    } else {
        finish_gone(work);
    }
}

/* Watching. */

static bool has_later_entry(const struct work *work) {
    int64_t number;
    return read_number(known_entry(work->state), &number) && number > work->request->number;
}

static void finish_watch(struct work *work) {
    finish_with_text(
        work, REGISTER_OUTCOME_DONE, work->state->entry_name, known_entry(work->state));
}

/* The object may be of somebody else by now: it is looked at as any other that was read. */
static bool take_change(void *context, struct kubernetes_object *object_or_null) {
    struct work *work = context;
    bool is_own = object_or_null != NULL && kubernetes_object_has_label(object_or_null);
    if (object_or_null != NULL) {
        keep(work, object_or_null);
    }
    if (is_own && !has_later_entry(work)) {
        return true;
    }
    work->question = NULL;
    if (is_own) {
        finish_watch(work);
    } else {
        read_object(work);
    }
    return false;
}

static void watch(struct work *work) {
    struct failure failure;
    if (has_later_entry(work)) {
        finish_watch(work);
        return;
    }
    work->verb = KUBERNETES_WATCH;
    work->attempts++;
    work->question =
        kubernetes_watch(work->state->client, work->kind, work->state->known[work->kind],
            instant_until(event_loop_now(work->state->loop), work->request->deadline), take_change,
            answered, work, &failure);
    if (work->question == NULL) {
        finish_failed(work, &failure);
    }
}

static void finish_renewal(struct work *work, const struct kubernetes_object *lease) {
    char *name = text_format("%s%" PRId64, work->state->renewal_start, work->request->term);
    finish_with_text(work, REGISTER_OUTCOME_DONE, name,
        lease == NULL ? NULL : kubernetes_object_value(lease, name));
    free(name);
}

static void go_on_with_object(struct work *work) {
    switch (work->request->kind) {
    case REGISTER_REQUEST_READ:
        finish_with_text(
            work, REGISTER_OUTCOME_DONE, work->state->entry_name, known_entry(work->state));
        break;
    case REGISTER_REQUEST_APPEND:
        append(work);
        break;
    case REGISTER_REQUEST_RENEW:
        update(work);
        break;
    case REGISTER_REQUEST_RENEWAL:
        finish_renewal(work, work->state->known[KUBERNETES_LEASE]);
        break;
    case REGISTER_REQUEST_WATCH:
        watch(work);
        break;
    }
}

static void go_on_without_object(struct work *work) {
    switch (work->request->kind) {
    case REGISTER_REQUEST_READ:
        finish_with_text(work, REGISTER_OUTCOME_DONE, work->state->entry_name, NULL);
        break;
    case REGISTER_REQUEST_APPEND:
        if (work->request->number == 1) {
            create(work);
        } else {
            finish_gone(work);
        }
        break;
    case REGISTER_REQUEST_RENEW:
        create(work);
        break;
    case REGISTER_REQUEST_RENEWAL:
        finish_renewal(work, NULL);
        break;
    case REGISTER_REQUEST_WATCH: /* it may come */
        pause_milliseconds(work, LONGEST_PAUSE_MILLISECONDS);
        break;
    }
}

static void finish_foreign(struct work *work) {
    const struct kubernetes_place *place = &work->state->settings.place;
    struct failure failure;
    failure_set(&failure, FAILURE_INVALID,
        "%s %s in namespace %s is not Muster's: it lacks the label " KUBERNETES_LABEL
        "=" KUBERNETES_LABEL_VALUE "; give another name in --rdzv-endpoint, or label it",
        kind_name(work), place->name, place->space);
    finish_failed(work, &failure);
}

/* Answers. */

static void take_object(struct work *work, struct kubernetes_object *object) {
    keep(work, object);
    if (work->verb != KUBERNETES_GET) {
        finish(work, &(struct register_result){.outcome = REGISTER_OUTCOME_DONE});
    } else if (kubernetes_object_has_label(object)) {
        go_on_with_object(work);
    } else {
        forget(work); /* nothing is written there */
        finish_foreign(work);
    }
}

static void take_missing(struct work *work) {
    forget(work);
    if (work->verb == KUBERNETES_GET) {
        go_on_without_object(work);
    } else {
        pause_milliseconds(work, 0);
    }
}

/* Whoever was faster is found by reading. */
static void take_conflict(struct work *work) {
    forget(work);
    pause_milliseconds(work, CONFLICT_PAUSE_MILLISECONDS * work->conflicts);
    work->conflicts++;
}

static bool stays_wrong(struct work *work, const struct kubernetes_answer *answer) {
    struct instant now = event_loop_now(work->state->loop);
    bool may_pass = answer->may_pass && work->verb != KUBERNETES_WATCH;
    if (!answer->is_final || !may_pass) {
        return answer->is_final;
    }
    if (work->refused_at.nanoseconds == 0) {
        work->refused_at = now;
    }
    struct duration patience = duration_from_milliseconds(REFUSALS_MILLISECONDS);
    return !instant_is_before(now, instant_after(work->refused_at, patience));
}

static void take_failure(struct work *work, const struct kubernetes_answer *answer) {
    bool is_append = work->request->kind == REGISTER_REQUEST_APPEND;
    work->may_have_happened |= is_append && work->verb != KUBERNETES_GET && !answer->is_undone;
    if (stays_wrong(work, answer)) {
        finish_failed(work, answer->why);
        return;
    }
    work->request->trouble = *answer->why;
    if (answer->pause.nanoseconds > 0) {
        pause_for(work, answer->pause);
    } else {
        pause_milliseconds(work, ABSENCE_PAUSE_MILLISECONDS * work->attempts);
    }
}

static void answered(void *context, const struct kubernetes_answer *answer) {
    struct work *work = context;
    work->question = NULL;
    switch (answer->outcome) {
    case KUBERNETES_DONE:
        take_object(work, answer->object);
        break;
    case KUBERNETES_MISSING:
        take_missing(work);
        break;
    case KUBERNETES_CONFLICT:
        take_conflict(work);
        break;
    case KUBERNETES_FAILED:
        take_failure(work, answer);
        break;
    }
}

/* The engine. */

static void kubernetes_close(void *context) {
    struct kubernetes_register *state = context;
    kubernetes_client_free(state->client);
    kubernetes_settings_clear(&state->settings);
    kubernetes_object_free(state->known[KUBERNETES_CONFIG_MAP]);
    kubernetes_object_free(state->known[KUBERNETES_LEASE]);
    free(state->node_name);
    free(state->entry_name);
    free(state->renewal_start);
    free(state);
}

static enum failure_code kubernetes_open(struct event_loop *loop,
    const struct register_settings *settings, void **out_state, struct failure *failure) {
    struct kubernetes_register *state = memory_allocate(sizeof *state);
    const struct kubernetes_pod pod = kubernetes_pod_here();
    struct text job = {0};
    register_name_write_short(settings->run_id, &job);
    state->loop = loop;
    state->node_name = memory_duplicate_string(settings->node_name);
    state->entry_name = text_format("entry.%s", text_string(&job));
    state->renewal_start = text_format("renewal.%s.", text_string(&job));
    state->renewal_seed = random_seed();
    text_clear(&job);
    enum failure_code code = kubernetes_settings_read(
        settings->endpoint, settings->conf, &pod, &state->settings, failure);
    if (code == FAILURE_NONE) {
        code = curl_library_load(CURL_LIBRARY_NAME, &state->curl, failure);
    }
    if (code == FAILURE_NONE) {
        code = kubernetes_client_new(loop, &state->curl, &state->settings, &state->client, failure);
    }
    if (code == FAILURE_NONE) {
        *out_state = state;
    } else {
        kubernetes_close(state);
    }
    return code;
}

/* An append that follows the entry which is known, and a renewal, are written at once. */
static void kubernetes_begin(void *context, struct register_request *request) {
    struct work *work = memory_allocate(sizeof *work);
    struct kubernetes_register *state = context;
    bool has_entry =
        request->kind != REGISTER_REQUEST_RENEW && request->kind != REGISTER_REQUEST_RENEWAL;
    int64_t number;
    *work = (struct work){.state = state,
        .request = request,
        .kind = has_entry ? KUBERNETES_CONFIG_MAP : KUBERNETES_LEASE};
    work->timer = event_timer_new(state->loop, read_object, work);
    request->work = work;
    bool is_known = state->known[work->kind] != NULL;
    bool follows = is_known && request->kind == REGISTER_REQUEST_APPEND &&
                   read_number(known_entry(state), &number) && number == request->number - 1;
    if (follows || (is_known && request->kind == REGISTER_REQUEST_RENEW)) {
        update(work);
    } else if (is_known && request->kind == REGISTER_REQUEST_WATCH) {
        watch(work);
    } else {
        read_object(work);
    }
}

static void kubernetes_cancel(void *context, struct register_request *request) {
    (void)context;
    work_free(request->work);
}

const struct register_engine kubernetes_register_engine = {
    .name = "k8s",
    .watches = true,
    .open = kubernetes_open,
    .close = kubernetes_close,
    .begin = kubernetes_begin,
    .cancel = kubernetes_cancel,
};
