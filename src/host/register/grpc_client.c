/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/grpc_client.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "wire/register/etcd_message.h"

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

static void finish(void *context, const struct http_result *answer) {
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
static bool hear(void *context, struct slice body) {
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

static void take_header(void *context, struct slice line) {
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
    call->exchange =
        http_exchange_start(client->http, &(struct http_question){
                                              .url = url,
                                              .method = "POST",
                                              .headers = &headers,
                                              .body = bytes_slice(&frame),
                                              .version = HTTP_VERSION_2_ONLY,
                                              .ceiling = ETCD_MESSAGE_MAXIMUM,
                                              .patience = question->patience,
                                              .header = take_header,
                                              .heard = question->heard != NULL ? hear : NULL,
                                              .done = finish,
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
