/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `etcd` (and `etcd-v3`) of a job's register: keys in etcd, asked over gRPC.
 *
 *     muster/RUN_ID/entry/000000000001      one entry each; the last few are kept
 *     muster/RUN_ID/renewal/000000000001    of a term
 *
 * An append is one transaction: it puts an entry if there is none of that number and the one before
 * it is there. So a number whose entry was removed as old cannot be won again. A member that does
 * not answer is left for the next one at once. There is no lease: a term ends by an append, and not
 * by a time that passes. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/register/register_entry.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "host/register/http_client.h"
#include "host/register/register_engine.h"
#include "options/launch/option_values.h"
#include "wire/register/etcd_message.h"

/* What a refusal of an etcd member, or its silence, means for who asks: whether asking on is of
 * use, and what the user can do about it. */

static bool is_out_of_space(const struct grpc_result *result) {
    return result->status == GRPC_RESOURCE_EXHAUSTED &&
           strstr(result->why->message, "database space exceeded") != NULL;
}

/* Whether it will be the same at every member, until the user has done something. */
static bool etcd_failure_is_final(const struct grpc_result *result) {
    if (!result->is_answered) {
        return result->is_trust_failure;
    }
    return result->status == GRPC_INVALID_ARGUMENT || result->status == GRPC_PERMISSION_DENIED ||
           result->status == GRPC_FAILED_PRECONDITION || /* of users */
           result->status == GRPC_UNIMPLEMENTED || result->status == GRPC_UNAUTHENTICATED ||
           is_out_of_space(result);
}

/* What the user can do about the member's words, to be appended to them; or "". etcd has one status
 * for several mistakes. */
static const char *etcd_failure_advice(const struct grpc_result *result) {
    static const struct {
        const char *words;
        const char *advice;
    } advices[] = {
        {"user name is empty", "; give user and password, or password_file, in --rdzv-conf"},
        {"authentication failed", "; look at user and password in --rdzv-conf"},
        {"permission denied", "; the user needs a role that may read and write the keys from "
                              "muster/ up to muster0"},
        {"request is too large", "; let etcd take more (--max-request-bytes)"},
        {"database space exceeded", "; make room there (etcdctl compact, defrag, alarm disarm)"},
        {"authentication is not enabled",
            "; this etcd has no users: leave user out of --rdzv-conf"},
    };
    for (size_t i = 0; result->is_answered && i < sizeof advices / sizeof *advices; i++) {
        if (strstr(result->why->message, advices[i].words) != NULL) {
            return advices[i].advice;
        }
    }
    return "";
}

/* Etcd settings. */

/* Where a job's etcd is and how it is asked: from --rdzv-endpoint and --rdzv-conf, whose keys are
 * torchrun's (etcd_rendezvous.py and etcd_rendezvous_backend.py in torch/distributed/elastic):
 * protocol, ca_cert or cacert, ssl_cert or cert, ssl_cert_key or key, user, password; and
 * password_file, because a password on a command line is seen by all users of a machine. */

struct etcd_settings {
    struct text_list endpoints; /* HOST:PORT */
    struct http_trust trust;    /* its strings are owned here */
    char *user;                 /* NULL: none */
    char *password;
};

#define PASSWORD_MAXIMUM ((size_t)4096)

static void free_text(const char *text) {
    free((void *)(uintptr_t)text);
}

static void etcd_settings_clear(struct etcd_settings *settings) {
    text_list_clear(&settings->endpoints);
    free_text(settings->trust.ca);
    free_text(settings->trust.certificate);
    free_text(settings->trust.key);
    free(settings->user);
    free(settings->password);
    *settings = (struct etcd_settings){0};
}

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

/* `conf` may be NULL. FAILURE_INVALID with a message for the user; FAILURE_SYSTEM and
 * FAILURE_MISSING for a file that cannot be read. */
static enum failure_code etcd_settings_read(const char *endpoint, const struct text_list *conf,
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

/* Etcd register. */

#define KEPT_ENTRIES 8
#define NUMBER_DIGITS 12
/* How long one member may take: so long for each round over all of them, because all may be slow.
 * And how long it takes to ask all of them again. */
#define MEMBER_PATIENCE_MILLISECONDS 1500
#define MEMBER_PATIENCE_ROUNDS 10
#define ROUND_PAUSE_MILLISECONDS 100
#define TOKEN_MAXIMUM ((size_t)4096)

struct etcd_register {
    struct event_loop *loop;
    struct curl_library curl;
    struct etcd_settings settings;
    struct grpc_client *client;
    char *prefix;   /* muster/RUN_ID/ */
    char *token;    /* NULL: none yet */
    size_t current; /* the member that has answered last */
    uint64_t renewal_seed;
    uint64_t renewal_count;
};

struct work {
    struct etcd_register *state;
    struct register_request *request;
    struct grpc_call *call;
    struct grpc_call *look;    /* of a watch that goes on: whether the entry was there before */
    struct event_timer *timer; /* between two rounds over all members; until a watch is there */
    struct bytes message;
    size_t attempts;
    size_t member; /* that is being asked */
    bool is_logging_in;
    bool has_logged_in;     /* during this request */
    bool may_have_happened; /* of an append: a member was asked, and its reply did not come */
};

/* Keys. */

static char *numbered_key(const struct etcd_register *state, const char *kind, int64_t number) {
    return text_format("%s%s/%0*" PRId64, state->prefix, kind, NUMBER_DIGITS, number);
}

/* All keys of that kind: '0' follows '/'. */
static char *kind_key(const struct etcd_register *state, const char *kind, char end) {
    return text_format("%s%s%c", state->prefix, kind, end);
}

/* Messages. */

static void write_read(const struct etcd_register *state, struct bytes *out) {
    char *first = kind_key(state, "entry", '/');
    char *end = kind_key(state, "entry", '0');
    etcd_write_range_last((struct etcd_range){first, end}, out);
    free(first);
    free(end);
}

static void write_append(
    const struct etcd_register *state, const struct register_request *request, struct bytes *out) {
    int64_t kept = request->number - KEPT_ENTRIES + 1;
    char *first = kind_key(state, "entry", '/');
    char *end = kind_key(state, "entry", '0');
    char *key = numbered_key(state, "entry", request->number);
    char *before = numbered_key(state, "entry", request->number - 1);
    char *old = numbered_key(state, "entry", kept < 1 ? 1 : kept);
    char *first_renewal = kind_key(state, "renewal", '/');
    char *old_renewal = numbered_key(state, "renewal", request->term > 1 ? request->term - 1 : 1);
    bool is_first = request->number == 1;
    const struct etcd_append append = {
        .absent = is_first ? (struct etcd_range){first, end} : (struct etcd_range){.key = key},
        .present = is_first ? NULL : before,
        .key = key,
        .value = request->text,
        .removed = {{first, old}, {first_renewal, old_renewal}},
        .otherwise = {first, end},
    };
    etcd_write_append(&append, out);
    free(first);
    free(end);
    free(key);
    free(before);
    free(old);
    free(first_renewal);
    free(old_renewal);
}

static void write_watch(const struct work *work, struct bytes *out) {
    const struct etcd_register *state = work->state;
    char *first = numbered_key(state, "entry", work->request->number + 1);
    char *end = kind_key(state, "entry", '0');
    etcd_write_watch((struct etcd_range){first, end}, out);
    free(first);
    free(end);
}

static void write_message(struct work *work) {
    struct etcd_register *state = work->state;
    const struct register_request *request = work->request;
    char *key = numbered_key(state, "renewal", request->term);
    char value[64];
    switch (request->kind) {
    case REGISTER_REQUEST_READ:
        write_read(state, &work->message);
        break;
    case REGISTER_REQUEST_APPEND:
        write_append(state, request, &work->message);
        break;
    case REGISTER_REQUEST_RENEW:
        snprintf(value, sizeof value, "%016" PRIx64 " %" PRIu64, state->renewal_seed,
            ++state->renewal_count);
        etcd_write_put(key, slice_from_string(value), &work->message);
        break;
    case REGISTER_REQUEST_RENEWAL:
        etcd_write_range_last((struct etcd_range){.key = key}, &work->message);
        break;
    case REGISTER_REQUEST_WATCH:
        write_watch(work, &work->message);
        break;
    }
    free(key);
}

static const char *path_of(const struct work *work) {
    if (work->is_logging_in) {
        return "/etcdserverpb.Auth/Authenticate";
    }
    switch (work->request->kind) {
    case REGISTER_REQUEST_APPEND:
        return "/etcdserverpb.KV/Txn";
    case REGISTER_REQUEST_RENEW:
        return "/etcdserverpb.KV/Put";
    case REGISTER_REQUEST_WATCH:
        return "/etcdserverpb.Watch/Watch";
    case REGISTER_REQUEST_READ:
    case REGISTER_REQUEST_RENEWAL:
        break;
    }
    return "/etcdserverpb.KV/Range";
}

/* The end of a request. */

static void stop(struct grpc_call **call) {
    if (*call != NULL) {
        grpc_call_cancel(*call);
        *call = NULL;
    }
}

static void work_free(struct work *work) {
    stop(&work->call);
    stop(&work->look);
    event_timer_free(work->timer);
    bytes_clear(&work->message);
    free(work);
}

static void answer(struct work *work, const struct register_result *result) {
    work->request->answer(work->request, result);
    work_free(work);
}

static void answer_failed(struct work *work, const struct failure *failure) {
    const struct register_result result = {
        .outcome = work->may_have_happened ? REGISTER_OUTCOME_UNKNOWN : REGISTER_OUTCOME_FAILED,
        .failure = failure,
        .is_final = true,
    };
    answer(work, &result);
}

static int64_t number_of_key(struct slice key) {
    char digits[NUMBER_DIGITS + 1] = {0};
    if (key.length < NUMBER_DIGITS) {
        return 0;
    }
    memcpy(digits, key.data + key.length - NUMBER_DIGITS, NUMBER_DIGITS);
    return strtoll(digits, NULL, 10);
}

static void answer_unreadable(struct work *work, enum failure_code code) {
    struct failure failure;
    failure_set(&failure, code == FAILURE_LIMIT ? FAILURE_LIMIT : FAILURE_PROTOCOL,
        "etcd (%s) has sent a reply that %s", work->state->settings.endpoints.items[work->member],
        code == FAILURE_LIMIT ? "takes too much memory" : "cannot be read");
    work->may_have_happened |= work->request->kind == REGISTER_REQUEST_APPEND;
    answer_failed(work, &failure);
}

static void write_place(const struct etcd_reply *reply, struct text *out) {
    text_append(out, "etcd's key ");
    text_append_bytes(out, (const char *)reply->key.data, reply->key.length);
}

/* Patience with one member. */

static struct duration patience_of(const struct work *work) {
    size_t rounds = work->attempts / work->state->settings.endpoints.count + 1;
    rounds = rounds > MEMBER_PATIENCE_ROUNDS ? MEMBER_PATIENCE_ROUNDS : rounds;
    return duration_from_milliseconds((int64_t)rounds * MEMBER_PATIENCE_MILLISECONDS);
}

/* Watching. */

static bool is_later(const struct work *work, const struct etcd_reply *reply) {
    return reply->has_key && number_of_key(reply->key) > work->request->number;
}

static void answer_later(struct work *work, const struct etcd_reply *reply) {
    struct text place = {0};
    write_place(reply, &place);
    answer(work,
        &(struct register_result){
            .outcome = REGISTER_OUTCOME_DONE, .text = reply->value, .place = text_string(&place)});
    text_clear(&place);
}

static void looked(void *context, const struct grpc_result *result);

/* What was put before the watch was there is not told. */
static void look(struct work *work) {
    struct etcd_register *state = work->state;
    struct bytes message = {0};
    write_read(state, &message);
    const struct grpc_question question = {
        .endpoint = state->settings.endpoints.items[work->member],
        .path = "/etcdserverpb.KV/Range",
        .message = bytes_slice(&message),
        .token = state->token,
        .patience = patience_of(work),
        .done = looked,
        .context = work,
    };
    stop(&work->look);
    work->look = grpc_call_start(state->client, &question);
    bytes_clear(&message);
}

static void answer_canceled(struct work *work) {
    struct failure failure;
    failure_set(&failure, FAILURE_UNSUPPORTED, "etcd (%s) does not tell of new entries",
        work->state->settings.endpoints.items[work->member]);
    answer_failed(work, &failure);
}

static bool take_event(void *context, struct slice message) {
    struct work *work = context;
    struct etcd_reply reply = {0};
    enum failure_code code = etcd_read_watch(message, &reply);
    bool goes_on = code == FAILURE_NONE && !reply.is_canceled && !is_later(work, &reply);
    if (!goes_on) {
        work->call = NULL; /* it ends with this */
    }
    if (code != FAILURE_NONE) {
        answer_unreadable(work, code);
    } else if (reply.is_canceled) {
        answer_canceled(work);
    } else if (!goes_on) {
        answer_later(work, &reply);
    } else if (reply.is_created) {
        event_timer_stop(work->timer);
        look(work);
    }
    etcd_reply_clear(&reply);
    return goes_on;
}

/* An entry that was put has won. Otherwise the transaction has read the last one. */
static void answer_append(struct work *work, const struct etcd_reply *reply, const char *place) {
    const struct register_request *request = work->request;
    struct failure failure;
    work->may_have_happened = false; /* this reply tells */
    if (reply->has_succeeded) {
        answer(work, &(struct register_result){.outcome = REGISTER_OUTCOME_DONE});
    } else if (!reply->has_key || number_of_key(reply->key) < request->number) {
        failure_set(&failure, FAILURE_MISSING,
            "entry %" PRId64 " of this job's register is gone from etcd (%s): somebody has removed "
            "it while the job runs",
            request->number - 1, work->state->prefix);
        answer_failed(work, &failure);
    } else {
        answer(work, &(struct register_result){
                         .outcome = REGISTER_OUTCOME_LOST, .text = reply->value, .place = place});
    }
}

static void answer_reply(struct work *work, struct slice message) {
    struct etcd_reply reply = {0};
    struct text place = {0};
    bool is_append = work->request->kind == REGISTER_REQUEST_APPEND;
    enum failure_code code = FAILURE_NONE;
    if (work->request->kind != REGISTER_REQUEST_RENEW) {
        code = is_append ? etcd_read_append(message, &reply) : etcd_read_range(message, &reply);
    }
    write_place(&reply, &place);
    if (code != FAILURE_NONE) {
        answer_unreadable(work, code);
    } else if (is_append) {
        answer_append(work, &reply, text_string(&place));
    } else {
        answer(work, &(struct register_result){.outcome = REGISTER_OUTCOME_DONE,
                         .text = reply.value,
                         .place = text_string(&place)});
    }
    text_clear(&place);
    etcd_reply_clear(&reply);
}

/* Asking one member after the other. */

static void ask(struct work *work);

/* The next member at once; after the last one, all of them again in a moment. */
static void ask_next(struct work *work) {
    struct etcd_register *state = work->state;
    if (state->current == work->member) {
        state->current = (state->current + 1) % state->settings.endpoints.count;
    }
    if (work->attempts % state->settings.endpoints.count != 0) {
        ask(work);
    } else {
        event_timer_set(work->timer, instant_after(event_loop_now(state->loop),
                                         duration_from_milliseconds(ROUND_PAUSE_MILLISECONDS)));
    }
}

static void take_failure(struct work *work, const struct grpc_result *result) {
    struct etcd_register *state = work->state;
    struct failure failure;
    stop(&work->call);
    stop(&work->look);
    failure_set(&failure, result->why->code, "etcd (%s): %s%s",
        state->settings.endpoints.items[work->member], result->why->message,
        etcd_failure_advice(result));
    bool is_old_token = result->is_answered && result->status == GRPC_UNAUTHENTICATED &&
                        state->settings.user != NULL && !work->has_logged_in;
    if (is_old_token) { /* tokens end some minutes after their last use */
        free(state->token);
        state->token = NULL;
        ask(work);
    } else if (etcd_failure_is_final(result)) {
        answer_failed(work, &failure);
    } else {
        work->request->trouble = failure;
        work->may_have_happened |=
            work->request->kind == REGISTER_REQUEST_APPEND && !work->is_logging_in;
        ask_next(work);
    }
}

/* Without an answer nobody knows whether the entry was there before: the watch begins anew. */
static void looked(void *context, const struct grpc_result *result) {
    struct work *work = context;
    struct etcd_reply reply = {0};
    work->look = NULL;
    if (!result->is_answered || result->status != GRPC_OK) {
        take_failure(work, result);
        return;
    }
    enum failure_code code = etcd_read_range(result->message, &reply);
    if (code != FAILURE_NONE) {
        answer_unreadable(work, code);
    } else if (is_later(work, &reply)) {
        answer_later(work, &reply);
    }
    etcd_reply_clear(&reply);
}

static void timer_fired(void *context) {
    struct work *work = context;
    struct failure failure;
    if (work->call == NULL) { /* the next round */
        ask(work);
        return;
    }
    failure_set(&failure, FAILURE_TIMEOUT, "it has not begun to tell of new entries in time");
    take_failure(work, &(struct grpc_result){.why = &failure});
}

static void take_token(struct work *work, struct slice message) {
    char *token = NULL;
    struct failure failure;
    if (etcd_read_token(message, &token) != FAILURE_NONE || strlen(token) > TOKEN_MAXIMUM) {
        failure_set(&failure, FAILURE_PROTOCOL, "etcd (%s) has sent no token for its user",
            work->state->settings.endpoints.items[work->member]);
        free(token);
        answer_failed(work, &failure);
        return;
    }
    free(work->state->token);
    work->state->token = token;
    work->has_logged_in = true;
    ask(work);
}

static void done(void *context, const struct grpc_result *result) {
    struct work *work = context;
    work->call = NULL;
    if (!result->is_answered || result->status != GRPC_OK) {
        take_failure(work, result);
        return;
    }
    work->state->current = work->member;
    if (work->is_logging_in) {
        take_token(work, result->message);
    } else {
        answer_reply(work, result->message);
    }
}

static void ask(struct work *work) {
    struct etcd_register *state = work->state;
    struct bytes login = {0};
    struct instant now = event_loop_now(state->loop);
    struct duration patience = patience_of(work);
    work->is_logging_in = state->settings.user != NULL && state->token == NULL;
    work->member = state->current;
    work->attempts++;
    bool is_stream = work->request->kind == REGISTER_REQUEST_WATCH && !work->is_logging_in;
    if (work->is_logging_in) {
        etcd_write_authenticate(state->settings.user, state->settings.password, &login);
    }
    const struct grpc_question question = {
        .endpoint = state->settings.endpoints.items[work->member],
        .path = path_of(work),
        .message = bytes_slice(work->is_logging_in ? &login : &work->message),
        .token = work->is_logging_in ? NULL : state->token,
        .patience = is_stream ? instant_until(now, work->request->deadline) : patience,
        .heard = is_stream ? take_event : NULL,
        .done = done,
        .context = work,
    };
    event_timer_stop(work->timer);
    if (is_stream) {
        event_timer_set(work->timer, instant_after(now, patience));
    }
    work->call = grpc_call_start(state->client, &question);
    bytes_clear(&login);
}

/* The engine. */

static void etcd_close(void *context) {
    struct etcd_register *state = context;
    grpc_client_free(state->client);
    etcd_settings_clear(&state->settings);
    free(state->prefix);
    free(state->token);
    free(state);
}

static enum failure_code etcd_open(struct event_loop *loop,
    const struct register_settings *settings, void **out_state, struct failure *failure) {
    struct etcd_register *state = memory_allocate(sizeof *state);
    struct text prefix = {0};
    text_append(&prefix, "muster/");
    register_name_write(settings->run_id, &prefix);
    text_append(&prefix, "/");
    state->loop = loop;
    state->prefix = text_take(&prefix);
    state->renewal_seed = random_seed();
    enum failure_code code =
        etcd_settings_read(settings->endpoint, settings->conf, &state->settings, failure);
    if (code == FAILURE_NONE) {
        code = curl_library_load(CURL_LIBRARY_NAME, &state->curl, failure);
    }
    if (code == FAILURE_NONE) {
        code = grpc_client_new(loop, &state->curl, &state->settings.trust, &state->client, failure);
    }
    if (code == FAILURE_NONE) {
        *out_state = state;
    } else {
        etcd_close(state);
    }
    return code;
}

static void etcd_begin(void *context, struct register_request *request) {
    struct work *work = memory_allocate(sizeof *work);
    work->state = context;
    work->request = request;
    work->timer = event_timer_new(work->state->loop, timer_fired, work);
    request->work = work;
    write_message(work);
    ask(work);
}

static void etcd_cancel(void *context, struct register_request *request) {
    (void)context;
    work_free(request->work);
}

const struct register_engine etcd_register_engine = {
    .name = "etcd",
    .watches = true,
    .open = etcd_open,
    .close = etcd_close,
    .begin = etcd_begin,
    .cancel = etcd_cancel,
};
