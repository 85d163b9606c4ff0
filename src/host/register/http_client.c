/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/http_client.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/memory.h"

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
