/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/kubernetes_client.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "host/register/http_client.h"

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

static void take_object(struct kubernetes_question *question, const struct http_result *result) {
    struct kubernetes_answer answer = {.outcome = KUBERNETES_DONE};
    if (kubernetes_object_read(result->body, question->kind, &answer.object) != FAILURE_NONE) {
        take_nonsense(question, result);
    } else {
        question->answered(question->context, &answer);
    }
}

/* An object is missing only where an API server says so. Nothing can be created in a namespace that
 * is missing. */
static void take_missing(struct kubernetes_question *question, const struct http_result *result) {
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
        take_object(question, result);
    } else if (result->status == 404) {
        take_missing(question, result);
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
    char *token;
    if (kubernetes_settings_read_token(wanted->client->settings, &token, failure) != FAILURE_NONE) {
        return NULL;
    }
    struct kubernetes_question *question = memory_duplicate(wanted, sizeof *wanted);
    start(question, token, object, patience);
    free(token);
    return question;
}

struct kubernetes_question *kubernetes_ask(struct kubernetes_client *client,
    enum kubernetes_verb verb, enum kubernetes_kind kind, const struct kubernetes_object *object,
    struct duration patience, kubernetes_answered *answered, void *context,
    struct failure *failure) {
    const struct kubernetes_question wanted = {
        .client = client, .verb = verb, .kind = kind, .answered = answered, .context = context};
    return begin(&wanted, object, patience, failure);
}

struct kubernetes_question *kubernetes_watch(struct kubernetes_client *client,
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

void kubernetes_question_cancel(struct kubernetes_question *question) {
    http_exchange_cancel(question->exchange);
    free(question);
}

/* The client. */

enum failure_code kubernetes_client_new(struct event_loop *loop, const struct curl_library *library,
    const struct kubernetes_settings *settings, struct kubernetes_client **out_client,
    struct failure *failure) {
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

void kubernetes_client_free(struct kubernetes_client *client) {
    if (client != NULL) {
        http_client_free(client->http);
        free(client);
    }
}
