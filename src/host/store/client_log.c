/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/client_log.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

void client_log_init(
    struct client_log *client_log, struct event_loop *loop, const struct log *log) {
    *client_log = (struct client_log){.loop = loop, .log = log};
}

/* The line, which the caller frees; NULL: it is left out. */
static char *compose(struct client_log *client_log, struct log_throttle *throttle,
    const union tcp_address *address, const char *what) {
    struct text line = {0};
    char client[TCP_ADDRESS_TEXT_SIZE];
    uint64_t held_back;
    if (!log_throttle_admits(throttle, event_loop_now(client_log->loop), &held_back)) {
        return NULL;
    }
    tcp_address_describe(address, client);
    text_append_format(&line, "store: client %s: %s", client, what);
    if (held_back > 0) {
        text_append_format(&line, " (%" PRIu64 " more such lines were left out)", held_back);
    }
    return text_take(&line);
}

void client_log_say(
    struct client_log *client_log, const union tcp_address *address, const char *what) {
    char *line = compose(client_log, &client_log->throttle, address, what);
    if (line != NULL) {
        log_warning(client_log->log, "%s", line);
        free(line);
    }
}

void client_log_say_full(
    struct client_log *client_log, const union tcp_address *address, const char *what) {
    char *line = compose(client_log, &client_log->full, address, what);
    if (line != NULL) {
        log_error(client_log->log, "%s; --store-memory gives it more", line);
        free(line);
    }
}
