/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/http_client.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#include "base/memory.h"
#include "wire/register/etcd_message.h"

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(library, member)                                                                      \
    (((library)->member =                                                                          \
             (__typeof__((library)->member))dlsym((library)->handle, "curl_" #member)) != NULL)

static bool load_all(struct curl_library *library) {
    return LOAD(library, global_init) && LOAD(library, version_info) && LOAD(library, easy_init) &&
           LOAD(library, easy_setopt) && LOAD(library, easy_getinfo) &&
           LOAD(library, easy_cleanup) && LOAD(library, easy_strerror) &&
           LOAD(library, slist_append) && LOAD(library, slist_free_all) &&
           LOAD(library, multi_init) && LOAD(library, multi_setopt) &&
           LOAD(library, multi_add_handle) && LOAD(library, multi_remove_handle) &&
           LOAD(library, multi_socket_action) && LOAD(library, multi_info_read) &&
           LOAD(library, multi_cleanup);
}

enum failure_code curl_library_load(
    const char *library, struct curl_library *out_library, struct failure *failure) {
    struct curl_library loaded = {.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (loaded.handle == NULL) {
        return failure_set(failure, FAILURE_MISSING,
            "libcurl is needed for --rdzv-backend etcd and k8s (Debian: apt install libcurl4): %s",
            dlerror());
    }
    if (!load_all(&loaded)) {
        (void)dlclose(loaded.handle);
        return failure_set(failure, FAILURE_MISSING,
            "%s lacks functions of libcurl, which is needed for --rdzv-backend etcd and k8s",
            library);
    }
    if (loaded.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        (loaded.version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2) == 0) {
        return failure_set(failure, FAILURE_MISSING,
            "%s cannot speak HTTP/2, which is needed for --rdzv-backend etcd and k8s", library);
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

/* Http client. */

struct http_client {
    struct event_loop *loop;
    const struct curl_library *curl;
    struct http_trust trust;
    CURLM *multi;
    struct event_timer *timer;
    struct watched_socket *sockets;
};

struct watched_socket {
    uv_poll_t poll; /* the first member */
    struct http_client *client;
    curl_socket_t socket;
    int events; /* of libuv's, that curl waits for */
    struct watched_socket *next;
};

struct http_exchange {
    struct http_client *client;
    CURL *easy;                  /* NULL: there was no memory for it */
    struct event_timer *refusal; /* then; otherwise NULL */
    struct event_timer *hearing; /* NULL: nobody wants to hear of a part */
    size_t heard_length;         /* of the body */
    struct curl_slist *headers;
    void (*header)(void *context, struct slice line);
    bool (*heard)(void *context, struct slice body);
    void (*done)(void *context, const struct http_result *result);
    void *context;
    struct bytes body;
    char error[CURL_ERROR_SIZE];
};

/* Answers. */

static void exchange_free(struct http_exchange *exchange) {
    const struct curl_library *curl = exchange->client->curl;
    if (exchange->easy != NULL) {
        curl->multi_remove_handle(exchange->client->multi, exchange->easy);
        curl->easy_cleanup(exchange->easy);
    }
    event_timer_free(exchange->refusal);
    event_timer_free(exchange->hearing);
    curl->slist_free_all(exchange->headers);
    bytes_clear(&exchange->body);
    free(exchange);
}

/* A server that ends a connection while TLS is agreed on may be starting, or ending. libcurl has
 * one code for this and for what will be the same again. */
static bool is_cut_short(const struct http_exchange *exchange, CURLcode code) {
    static const char *const words[] = {"SSL_connect: ", "reset by peer", "unexpected eof"};
    bool is_cut = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        is_cut = is_cut || strstr(exchange->error, words[i]) != NULL;
    }
    return code == CURLE_SSL_CONNECT_ERROR && is_cut;
}

static bool is_tls_failure(CURLcode code) {
    return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR;
}

static bool is_unheard(CURLcode code) {
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           is_tls_failure(code);
}

static enum failure_code explain(
    const struct http_exchange *exchange, CURLcode code, struct failure *failure) {
    const char *words =
        *exchange->error != '\0' ? exchange->error : exchange->client->curl->easy_strerror(code);
    return failure_set(failure,
        code == CURLE_OPERATION_TIMEDOUT ? FAILURE_TIMEOUT : FAILURE_DISCONNECTED, "%s%s", words,
        is_cut_short(exchange, code)
            ? "; the server is starting or ending, or speaks no TLS at this port"
            : "");
}

/* A server that refuses a request without having read all of it resets the connection behind its
 * answer: what has come of that counts. */
static bool is_answered(CURLcode code, long status) {
    return code == CURLE_OK || (code == CURLE_RECV_ERROR && status >= 400);
}

static bool has_succeeded(const struct http_exchange *exchange) {
    long status = 0;
    exchange->client->curl->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

/* False: that was enough, and the exchange is gone. */
static bool hear(struct http_exchange *exchange) {
    bool goes_on = true;
    if (exchange->heard != NULL && exchange->heard_length < exchange->body.length &&
        has_succeeded(exchange)) {
        exchange->heard_length = exchange->body.length;
        goes_on = exchange->heard(exchange->context, bytes_slice(&exchange->body));
    }
    if (!goes_on) {
        exchange_free(exchange);
    }
    return goes_on;
}

static void hear_later(void *context) {
    (void)hear(context);
}

static void finish(struct http_exchange *exchange, CURLcode code) {
    struct failure failure = {0};
    struct http_result result = {.why = &failure};
    exchange->client->curl->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &result.status);
    result.is_answered = is_answered(code, result.status);
    if (result.is_answered) {
        result.body = bytes_slice(&exchange->body);
    } else {
        explain(exchange, code, &failure);
        result.is_trust_failure = is_tls_failure(code) && !is_cut_short(exchange, code);
        result.is_unheard = is_unheard(code);
        result.is_strange = code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
                            code != CURLE_OPERATION_TIMEDOUT;
    }
    exchange->done(exchange->context, &result);
    exchange_free(exchange);
}

/* No function of curl runs meanwhile, so that exchanges may be started and cancelled. */
static void finish_all(struct http_client *client) {
    const CURLMsg *message;
    int left;
    while ((message = client->curl->multi_info_read(client->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            char *private = NULL;
            CURLcode code = message->data.result;
            client->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
            struct http_exchange *exchange = (struct http_exchange *)(void *)private;
            if (hear(exchange)) {
                finish(exchange, code);
            }
        }
    }
}

static void act(struct http_client *client, curl_socket_t socket, int events) {
    int running;
    client->curl->multi_socket_action(client->multi, socket, events, &running);
    finish_all(client);
}

/* What curl wants of the loop. */

static void timer_fired(void *context) {
    act(context, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long milliseconds, void *context) {
    struct http_client *client = context;
    (void)multi;
    if (milliseconds < 0) {
        event_timer_stop(client->timer);
    } else {
        event_timer_set(client->timer,
            instant_after(event_loop_now(client->loop), duration_from_milliseconds(milliseconds)));
    }
    return 0;
}

/* A connection that was reset may still hold an answer. So curl reads, and finds the error where
 * there is none; of an error alone it would not. Libuv has stopped to look at the socket. */
static void socket_ready(uv_poll_t *poll, int status, int events) {
    const struct watched_socket *watched = (const struct watched_socket *)(void *)poll;
    int ready = 0;
    if (status < 0) {
        ready = CURL_CSELECT_ERR | CURL_CSELECT_IN | CURL_CSELECT_OUT;
        (void)uv_poll_start(poll, watched->events, socket_ready);
    }
    ready |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    ready |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    act(watched->client, watched->socket, ready);
}

static void free_socket(uv_handle_t *handle) {
    free((struct watched_socket *)(void *)handle);
}

static void unwatch(struct watched_socket *watched) {
    struct watched_socket **link = &watched->client->sockets;
    while (*link != watched) {
        link = &(*link)->next;
    }
    *link = watched->next;
    uv_poll_stop(&watched->poll);
    uv_close((uv_handle_t *)(void *)&watched->poll, free_socket);
}

static struct watched_socket *watch(struct http_client *client, curl_socket_t socket) {
    struct watched_socket *watched = memory_allocate(sizeof *watched);
    if (event_loop_init_poll(client->loop, &watched->poll, socket) != 0) {
        free(watched);
        return NULL;
    }
    watched->client = client;
    watched->socket = socket;
    watched->next = client->sockets;
    client->sockets = watched;
    return watched;
}

static int set_socket(
    CURL *easy, curl_socket_t socket, int wanted, void *context, void *context_of_socket) {
    struct http_client *client = context;
    struct watched_socket *watched = client->sockets;
    (void)easy;
    (void)context_of_socket;
    while (watched != NULL && watched->socket != socket) {
        watched = watched->next;
    }
    if (wanted == CURL_POLL_REMOVE) {
        if (watched != NULL) {
            unwatch(watched);
        }
        return 0;
    }
    watched = watched == NULL ? watch(client, socket) : watched;
    if (watched == NULL) {
        return -1;
    }
    watched->events = (wanted & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    watched->events |= (wanted & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0;
    return uv_poll_start(&watched->poll, watched->events, socket_ready) == 0 ? 0 : -1;
}

/* The client. */

enum failure_code http_client_new(struct event_loop *loop, const struct curl_library *library,
    const struct http_trust *trust, struct http_client **out_client, struct failure *failure) {
    CURLM *multi = library->multi_init();
    if (multi == NULL) {
        return failure_set(failure, FAILURE_SYSTEM, "libcurl does not start");
    }
    struct http_client *client = memory_allocate(sizeof *client);
    client->loop = loop;
    client->curl = library;
    client->trust = *trust;
    client->multi = multi;
    client->timer = event_timer_new(loop, timer_fired, client);
    library->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    library->multi_setopt(multi, CURLMOPT_SOCKETDATA, client);
    library->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
    library->multi_setopt(multi, CURLMOPT_TIMERDATA, client);
    *out_client = client;
    return FAILURE_NONE;
}

void http_client_free(struct http_client *client) {
    if (client == NULL) {
        return;
    }
    client->curl->multi_cleanup(client->multi);
    while (client->sockets != NULL) {
        unwatch(client->sockets);
    }
    event_timer_free(client->timer);
    free(client);
}

/* Exchanges. */

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    struct http_exchange *exchange = context;
    (void)size;                      /* always 1 */
    if (exchange->hearing != NULL) { /* no function of curl runs then */
        event_timer_set(exchange->hearing, event_loop_now(exchange->client->loop));
    }
    return bytes_append(&exchange->body, data, count) == FAILURE_NONE ? count : 0;
}

/* Headers, and trailers as well. */
static size_t take_header(char *data, size_t size, size_t count, void *context) {
    const struct http_exchange *exchange = context;
    (void)size; /* always 1 */
    if (exchange->header != NULL) {
        exchange->header(exchange->context, (struct slice){(const uint8_t *)data, count});
    }
    return count;
}

static void set_trust(struct http_exchange *exchange) {
    const struct curl_library *curl = exchange->client->curl;
    const struct http_trust *trust = &exchange->client->trust;
    if (trust->is_tls && trust->ca != NULL) {
        curl->easy_setopt(exchange->easy, CURLOPT_CAINFO, trust->ca);
    }
    if (trust->is_tls && trust->certificate != NULL) {
        curl->easy_setopt(exchange->easy, CURLOPT_SSLCERT, trust->certificate);
    }
    if (trust->is_tls && trust->key != NULL) {
        curl->easy_setopt(exchange->easy, CURLOPT_SSLKEY, trust->key);
    }
}

static void set_version(struct http_exchange *exchange, enum http_version version) {
    const struct curl_library *curl = exchange->client->curl;
    bool is_tls = exchange->client->trust.is_tls;
    if (version == HTTP_VERSION_1) {
        curl->easy_setopt(exchange->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    } else if (is_tls) {
        curl->easy_setopt(exchange->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    } else {
        curl->easy_setopt(
            exchange->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        /* libcurl 7.88 fails to use such a connection a second time */
        curl->easy_setopt(exchange->easy, CURLOPT_FRESH_CONNECT, 1L);
        curl->easy_setopt(exchange->easy, CURLOPT_FORBID_REUSE, 1L);
    }
}

static void set_question(struct http_exchange *exchange, const struct http_question *question) {
    const struct curl_library *curl = exchange->client->curl;
    CURL *easy = exchange->easy;
    for (size_t i = 0; i < question->headers->count; i++) {
        exchange->headers = curl->slist_append(exchange->headers, question->headers->items[i]);
    }
    curl->easy_setopt(easy, CURLOPT_URL, question->url);
    if (question->body.length > 0) {
        curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)question->body.length);
        curl->easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, (const char *)question->body.data);
    }
    curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, question->method);
    curl->easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
    curl->easy_setopt(
        easy, CURLOPT_TIMEOUT_MS, (long)duration_milliseconds_ceiling(question->patience));
    set_version(exchange, question->version);
}

static void set_up(struct http_exchange *exchange, const struct http_question *question) {
    const struct curl_library *curl = exchange->client->curl;
    CURL *easy = exchange->easy;
    curl->easy_setopt(easy, CURLOPT_PRIVATE, (char *)(void *)exchange);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_PROXY, ""); /* whatever the environment says */
    curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    set_question(exchange, question);
    set_trust(exchange);
}

/* As where no connection could be made: it is asked again later. */
static void refuse(void *context) {
    struct http_exchange *exchange = context;
    struct failure failure = {0};
    failure_set(&failure, FAILURE_SYSTEM, "there is no memory for a request");
    const struct http_result result = {.why = &failure, .is_unheard = true};
    exchange->done(exchange->context, &result);
    exchange_free(exchange);
}

struct http_exchange *http_exchange_start(
    struct http_client *client, const struct http_question *question) {
    struct http_exchange *exchange = memory_allocate(sizeof *exchange);
    *exchange = (struct http_exchange){.client = client,
        .header = question->header,
        .heard = question->heard,
        .done = question->done,
        .context = question->context};
    if (question->heard != NULL) {
        exchange->hearing = event_timer_new(client->loop, hear_later, exchange);
    }
    bytes_init(&exchange->body, question->ceiling);
    exchange->easy = client->curl->easy_init();
    if (exchange->easy == NULL) {
        exchange->refusal = event_timer_new(client->loop, refuse, exchange);
        event_timer_set(exchange->refusal, event_loop_now(client->loop));
        return exchange;
    }
    set_up(exchange, question);
    client->curl->multi_add_handle(client->multi, exchange->easy);
    return exchange;
}

void http_exchange_cancel(struct http_exchange *exchange) {
    exchange_free(exchange);
}

/* Grpc client. */

#define WORDS_MAXIMUM 300
#define NO_STATUS (-1)

struct grpc_client {
    struct http_client *http;
    bool is_tls;
};

struct grpc_call {
    struct grpc_client *client;
    struct http_exchange *exchange;
    size_t heard_length; /* of the reply, in messages that were told */
    bool (*heard)(void *context, struct slice message);
    void (*done)(void *context, const struct grpc_result *result);
    void *context;
    int status;
    struct text words; /* of the status */
};

/* Answers. */

static void call_free(struct grpc_call *call) {
    text_clear(&call->words);
    free(call);
}

/* A server that was reached and speaks no HTTP/2 may be one that expects TLS. */
static enum failure_code explain_transport(
    const struct grpc_call *call, const struct http_result *answer, struct failure *failure) {
    return failure_set(failure, answer->why->code, "%s%s", answer->why->message,
        answer->is_strange && !call->client->is_tls
            ? " (for a server with TLS, say protocol=https in --rdzv-conf)"
            : "");
}

static enum failure_code explain_status(
    const struct grpc_call *call, const struct http_result *answer, struct failure *failure) {
    if (call->status == NO_STATUS) {
        return failure_set(
            failure, FAILURE_PROTOCOL, "it speaks no gRPC (HTTP status %ld)", answer->status);
    }
    return failure_set(failure, FAILURE_SYSTEM, "%s (gRPC status %d)",
        *text_string(&call->words) != '\0' ? text_string(&call->words) : "no reason given",
        call->status);
}

static void grpc_client_finish(void *context, const struct http_result *answer) {
    struct grpc_call *call = context;
    struct failure failure = {0};
    struct grpc_result result = {.why = &failure, .status = call->status};
    if (!answer->is_answered) {
        explain_transport(call, answer, &failure);
        result.is_trust_failure = answer->is_trust_failure;
    } else if (call->status != GRPC_OK) {
        explain_status(call, answer, &failure);
        result.is_answered = call->status != NO_STATUS;
    } else if (call->heard != NULL) {
        failure_set(&failure, FAILURE_DISCONNECTED, "it has ended what it was to go on with");
    } else if (grpc_read_frame(answer->body, &result.message) != FAILURE_NONE) {
        failure_set(&failure, FAILURE_PROTOCOL, "its reply is no message of gRPC");
    } else {
        result.is_answered = true;
    }
    call->done(call->context, &result);
    call_free(call);
}

/* False: the call is gone. A message that makes no sense ends what is told. */
static bool grpc_client_hear(void *context, struct slice body) {
    struct grpc_call *call = context;
    bool goes_on = true;
    struct slice message;
    size_t length;
    while (goes_on && grpc_take_frame(slice_from(body, call->heard_length), &message, &length)) {
        call->heard_length += length;
        goes_on = call->heard(call->context, message);
    }
    if (!goes_on) {
        call_free(call);
    }
    return goes_on;
}

/* Undoes gRPC's percent encoding of the words; what is no such code stays. */
static void take_words(struct grpc_call *call, struct slice value) {
    text_clear(&call->words);
    for (size_t i = 0; i < value.length && call->words.length < WORDS_MAXIMUM; i++) {
        char hexadecimal[3] = {0};
        char *end = hexadecimal;
        char byte = (char)value.data[i];
        if (byte == '%' && value.length - i > 2) {
            memcpy(hexadecimal, value.data + i + 1, 2);
            long code = strtol(hexadecimal, &end, 16);
            if (end == hexadecimal + 2 && code > 0) {
                byte = (char)code;
                i += 2;
            }
        }
        text_append_bytes(&call->words, &byte, 1);
    }
}

static void take_status(struct grpc_call *call, struct slice value) {
    int status = 0;
    for (size_t i = 0; i < value.length; i++) {
        if (!text_is_digit(value.data[i]) || status > 999) {
            return;
        }
        status = status * 10 + (value.data[i] - '0');
    }
    call->status = value.length == 0 ? call->status : status;
}

static bool take_named(struct slice line, const char *name, struct slice *out_value) {
    size_t length = strlen(name);
    if (line.length < length || strncasecmp((const char *)line.data, name, length) != 0) {
        return false;
    }
    struct slice value = slice_from(line, length);
    while (value.length > 0 && value.data[0] == ' ') {
        value = slice_from(value, 1);
    }
    while (value.length > 0 && strchr("\r\n ", value.data[value.length - 1]) != NULL) {
        value.length--;
    }
    *out_value = value;
    return true;
}

static void grpc_client_take_header(void *context, struct slice line) {
    struct grpc_call *call = context;
    struct slice value;
    if (take_named(line, "grpc-status:", &value)) {
        take_status(call, value);
    } else if (take_named(line, "grpc-message:", &value)) {
        take_words(call, value);
    }
}

/* The client. */

enum failure_code grpc_client_new(struct event_loop *loop, const struct curl_library *library,
    const struct http_trust *trust, struct grpc_client **out_client, struct failure *failure) {
    struct grpc_client *client = memory_allocate(sizeof *client);
    client->is_tls = trust->is_tls;
    enum failure_code code = http_client_new(loop, library, trust, &client->http, failure);
    if (code == FAILURE_NONE) {
        *out_client = client;
    } else {
        free(client);
    }
    return code;
}

void grpc_client_free(struct grpc_client *client) {
    if (client != NULL) {
        http_client_free(client->http);
        free(client);
    }
}

/* Calls. */

static void write_headers(const struct grpc_question *question, struct text_list *headers) {
    text_list_add(headers, "content-type: application/grpc");
    text_list_add(headers, "te: trailers");
    text_list_add(headers, "expect:");
    /* etcd: a member without a leader answers so at once */
    text_list_add(headers, "hasleader: true");
    if (question->token != NULL) {
        text_list_add_taken(headers, text_format("token: %s", question->token));
    }
}

struct grpc_call *grpc_call_start(
    struct grpc_client *client, const struct grpc_question *question) {
    struct grpc_call *call = memory_allocate(sizeof *call);
    struct bytes frame = {0};
    struct text_list headers = {0};
    char *url = text_format(
        "%s://%s%s", client->is_tls ? "https" : "http", question->endpoint, question->path);
    *call = (struct grpc_call){.client = client,
        .heard = question->heard,
        .done = question->done,
        .context = question->context,
        .status = NO_STATUS};
    write_headers(question, &headers);
    grpc_write_frame(question->message, &frame);
    call->exchange = http_exchange_start(
        client->http, &(struct http_question){
                          .url = url,
                          .method = "POST",
                          .headers = &headers,
                          .body = bytes_slice(&frame),
                          .version = HTTP_VERSION_2_ONLY,
                          .ceiling = ETCD_MESSAGE_MAXIMUM,
                          .patience = question->patience,
                          .header = grpc_client_take_header,
                          .heard = question->heard != NULL ? grpc_client_hear : NULL,
                          .done = grpc_client_finish,
                          .context = call,
                      });
    bytes_clear(&frame);
    text_list_clear(&headers);
    free(url);
    return call;
}

void grpc_call_cancel(struct grpc_call *call) {
    http_exchange_cancel(call->exchange);
    call_free(call);
}
