/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/grpc_client.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#include "base/memory.h"
#include "base/text.h"
#include "wire/register/etcd_message.h"

#define WORDS_MAXIMUM 300
#define NO_STATUS (-1)

struct grpc_client {
    struct event_loop *loop;
    const struct curl_library *curl;
    struct grpc_settings settings;
    CURLM *multi;
    struct event_timer *timer;
    struct watched_socket *sockets;
};

struct watched_socket {
    uv_poll_t poll; /* the first member */
    struct grpc_client *client;
    curl_socket_t socket;
    struct watched_socket *next;
};

struct grpc_call {
    struct grpc_client *client;
    CURL *easy;
    struct curl_slist *headers;
    struct grpc_question question;
    struct bytes reply;
    int status;
    struct text words; /* of the status */
    char error[CURL_ERROR_SIZE];
};

/* Answers. */

static void call_free(struct grpc_call *call) {
    const struct curl_library *curl = call->client->curl;
    curl->multi_remove_handle(call->client->multi, call->easy);
    curl->easy_cleanup(call->easy);
    curl->slist_free_all(call->headers);
    bytes_clear(&call->reply);
    text_clear(&call->words);
    free(call);
}

static bool is_trust_failure(CURLcode code) {
    return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR;
}

/* The server was reached, and did not speak HTTP/2: as one does that expects TLS. */
static bool is_strange_server(CURLcode code) {
    return code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
           code != CURLE_OPERATION_TIMEDOUT;
}

static enum failure_code explain_transport(
    const struct grpc_call *call, CURLcode code, struct failure *failure) {
    const char *words =
        *call->error != '\0' ? call->error : call->client->curl->easy_strerror(code);
    bool hints = is_strange_server(code) && !call->client->settings.is_tls;
    return failure_set(failure,
        code == CURLE_OPERATION_TIMEDOUT ? FAILURE_TIMEOUT : FAILURE_DISCONNECTED, "%s%s", words,
        hints ? " (for a server with TLS, say protocol=https in --rdzv-conf)" : "");
}

static enum failure_code explain_status(struct grpc_call *call, struct failure *failure) {
    long http = 0;
    call->client->curl->easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &http);
    if (call->status == NO_STATUS) {
        return failure_set(failure, FAILURE_PROTOCOL, "it speaks no gRPC (HTTP status %ld)", http);
    }
    return failure_set(failure, FAILURE_SYSTEM, "%s (gRPC status %d)",
        *text_string(&call->words) != '\0' ? text_string(&call->words) : "no reason given",
        call->status);
}

static void finish(struct grpc_call *call, CURLcode code) {
    struct failure failure = {0};
    struct grpc_result result = {.why = &failure, .status = call->status};
    if (code != CURLE_OK) {
        explain_transport(call, code, &failure);
        result.is_trust_failure = is_trust_failure(code);
    } else if (call->status != GRPC_OK) {
        explain_status(call, &failure);
        result.is_answered = call->status != NO_STATUS;
    } else if (grpc_read_frame(bytes_slice(&call->reply), &result.message) != FAILURE_NONE) {
        failure_set(&failure, FAILURE_PROTOCOL, "its reply is no message of gRPC");
    } else {
        result.is_answered = true;
    }
    call->question.done(call->question.context, &result);
    call_free(call);
}

/* No function of curl runs meanwhile, so that calls may be started and cancelled. */
static void finish_all(struct grpc_client *client) {
    const CURLMsg *message;
    int left;
    while ((message = client->curl->multi_info_read(client->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            char *private = NULL;
            CURLcode code = message->data.result;
            client->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
            finish((struct grpc_call *)(void *)private, code);
        }
    }
}

static void act(struct grpc_client *client, curl_socket_t socket, int events) {
    int running;
    client->curl->multi_socket_action(client->multi, socket, events, &running);
    finish_all(client);
}

/* What curl wants of the loop. */

static void timer_fired(void *context) {
    act(context, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long milliseconds, void *context) {
    struct grpc_client *client = context;
    (void)multi;
    if (milliseconds < 0) {
        event_timer_stop(client->timer);
    } else {
        event_timer_set(client->timer,
            instant_after(event_loop_now(client->loop), duration_from_milliseconds(milliseconds)));
    }
    return 0;
}

static void socket_ready(uv_poll_t *poll, int status, int events) {
    const struct watched_socket *watched = (const struct watched_socket *)(void *)poll;
    int ready = status < 0 ? CURL_CSELECT_ERR : 0;
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

static struct watched_socket *watch(struct grpc_client *client, curl_socket_t socket) {
    struct watched_socket *watched = memory_allocate(sizeof *watched);
    if (uv_poll_init(event_loop_uv(client->loop), &watched->poll, socket) != 0) {
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
    struct grpc_client *client = context;
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
    int events = (wanted & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    events |= (wanted & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0;
    return uv_poll_start(&watched->poll, events, socket_ready) == 0 ? 0 : -1;
}

/* The client. */

enum failure_code grpc_client_new(struct event_loop *loop, const struct curl_library *library,
    const struct grpc_settings *settings, struct grpc_client **out_client,
    struct failure *failure) {
    CURLM *multi = library->multi_init();
    if (multi == NULL) {
        return failure_set(failure, FAILURE_SYSTEM, "libcurl does not start");
    }
    struct grpc_client *client = memory_allocate(sizeof *client);
    client->loop = loop;
    client->curl = library;
    client->settings = *settings;
    client->multi = multi;
    client->timer = event_timer_new(loop, timer_fired, client);
    library->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    library->multi_setopt(multi, CURLMOPT_SOCKETDATA, client);
    library->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
    library->multi_setopt(multi, CURLMOPT_TIMERDATA, client);
    *out_client = client;
    return FAILURE_NONE;
}

void grpc_client_free(struct grpc_client *client) {
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

/* Calls. */

static size_t take_body(char *data, size_t size, size_t count, void *context) {
    struct grpc_call *call = context;
    (void)size; /* always 1 */
    return bytes_append(&call->reply, data, count) == FAILURE_NONE ? count : 0;
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

/* Headers, and trailers as well. */
static size_t take_header(char *data, size_t size, size_t count, void *context) {
    struct grpc_call *call = context;
    struct slice value;
    (void)size; /* always 1 */
    if (take_named((struct slice){(const uint8_t *)data, count}, "grpc-status:", &value)) {
        take_status(call, value);
    } else if (take_named((struct slice){(const uint8_t *)data, count}, "grpc-message:", &value)) {
        take_words(call, value);
    }
    return count;
}

static void add_header(struct grpc_call *call, const char *header) {
    call->headers = call->client->curl->slist_append(call->headers, header);
}

static void add_headers(struct grpc_call *call) {
    add_header(call, "content-type: application/grpc");
    add_header(call, "te: trailers");
    add_header(call, "expect:");
    /* etcd: a member without a leader answers so at once */
    add_header(call, "hasleader: true");
    if (call->question.token != NULL) {
        char *header = text_format("token: %s", call->question.token);
        add_header(call, header);
        free(header);
    }
}

static void set_trust(struct grpc_call *call) {
    const struct curl_library *curl = call->client->curl;
    const struct grpc_settings *settings = &call->client->settings;
    if (!settings->is_tls) {
        curl->easy_setopt(
            call->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        /* libcurl 7.88 fails to use such a connection a second time */
        curl->easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, 1L);
        curl->easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
        return;
    }
    curl->easy_setopt(call->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    if (settings->ca != NULL) {
        curl->easy_setopt(call->easy, CURLOPT_CAINFO, settings->ca);
    }
    if (settings->certificate != NULL) {
        curl->easy_setopt(call->easy, CURLOPT_SSLCERT, settings->certificate);
    }
    if (settings->key != NULL) {
        curl->easy_setopt(call->easy, CURLOPT_SSLKEY, settings->key);
    }
}

static void set_up(struct grpc_call *call, struct bytes *frame) {
    const struct curl_library *curl = call->client->curl;
    const struct grpc_question *question = &call->question;
    CURL *easy = call->easy;
    char *url = text_format("%s://%s%s", call->client->settings.is_tls ? "https" : "http",
        question->endpoint, question->path);
    curl->easy_setopt(easy, CURLOPT_URL, url);
    free(url);
    curl->easy_setopt(easy, CURLOPT_PRIVATE, (char *)(void *)call);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_PROXY, ""); /* whatever the environment says */
    curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)frame->length);
    curl->easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, (const char *)frame->data);
    curl->easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    curl->easy_setopt(
        easy, CURLOPT_TIMEOUT_MS, (long)duration_milliseconds_ceiling(question->patience));
    curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, call);
    set_trust(call);
}

struct grpc_call *grpc_call_start(
    struct grpc_client *client, const struct grpc_question *question) {
    struct grpc_call *call = memory_allocate(sizeof *call);
    struct bytes frame = {0};
    *call = (struct grpc_call){.client = client, .question = *question, .status = NO_STATUS};
    bytes_init(&call->reply, ETCD_MESSAGE_MAXIMUM);
    call->easy = client->curl->easy_init();
    if (call->easy == NULL) {
        abort(); /* without memory */
    }
    add_headers(call);
    grpc_write_frame(question->message, &frame);
    set_up(call, &frame);
    bytes_clear(&frame);
    client->curl->multi_add_handle(client->multi, call->easy);
    return call;
}

void grpc_call_cancel(struct grpc_call *call) {
    call_free(call);
}
