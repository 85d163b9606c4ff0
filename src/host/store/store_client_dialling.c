/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_client_dialling.h"

#include <errno.h>

/* The time for one attempt to connect, handshake included. Then the next address is tried, or the
 * same again. Where there are several, one may lead nowhere: the others do not wait long until it
 * is connected, but longer each time all were tried. */
#define ATTEMPT_MILLISECONDS 10000
#define FIRST_ATTEMPTS 3
static const int first_attempts_milliseconds[FIRST_ATTEMPTS] = {250, 1000, 4000};

/* Another machine may have one of the addresses, too, and refuse. So all have to. */
static bool is_refused_everywhere(const struct store_client *client) {
    return client->is_refused && client->vain_attempts >= client->addresses.count;
}

struct instant store_client_refusals_end(const struct store_client *client) {
    struct duration patience = client->settings.refusal_patience;
    bool is_accepted = client->link != NULL && store_link_is_connected(client->link);
    bool is_limited = is_refused_everywhere(client) && !is_accepted && patience.nanoseconds > 0;
    return instant_after(client->refused_since, is_limited ? patience : DURATION_FOREVER);
}

static void give_up_connecting(struct store_client *client, bool is_refused) {
    struct failure failure = {0};
    struct text tried = {0};
    struct duration patience =
        is_refused ? client->settings.refusal_patience : client->settings.connect_timeout;
    store_addresses_describe(&client->addresses, &tried);
    failure_set(&failure, FAILURE_TIMEOUT, "no store at %s port %d within %g s, %s",
        client->addresses.host, client->addresses.port, duration_seconds_told(patience),
        text_string(&tried));
    text_clear(&tried);
    failure.system_error = is_refused ? ECONNREFUSED : 0;
    store_client_give_up(client, &failure);
}

/* An address of a network to which this machine has no way says nothing about the server: another
 * address of it may refuse connections. A machine that is silent may be there. */
static bool has_no_way(int system_error) {
    return system_error == ENETUNREACH || system_error == ENETDOWN;
}

/* Notes how an attempt has ended. */
static void note_refusal(struct store_client *client, const struct failure *failure) {
    bool is_refusal = failure->system_error == ECONNREFUSED;
    bool is_nobody = is_refusal || has_no_way(failure->system_error);
    if (is_refusal && !client->is_refused) {
        client->refused_since = event_loop_now(client->loop);
    }
    client->vain_attempts = is_nobody ? client->vain_attempts + 1 : 0;
    client->is_refused = is_refusal || (client->is_refused && is_nobody);
}

void store_client_retry(struct store_client *client, const struct failure *failure) {
    note_refusal(client, failure);
    store_addresses_note(&client->addresses, failure);
    store_link_free(client->link);
    client->link = NULL;
    client->phase = STORE_CLIENT_PAUSING;
    struct duration delay = store_addresses_has_more(&client->addresses)
                                ? (struct duration){0}
                                : backoff_next(&client->backoff);
    client->next_attempt = instant_after(event_loop_now(client->loop), delay);
}

static struct duration attempt_time(const struct store_addresses *addresses) {
    uint64_t earlier = addresses->count > 0 ? (addresses->attempts - 1) / addresses->count : 0;
    bool is_first = addresses->count > 1 && earlier < FIRST_ATTEMPTS;
    return duration_from_milliseconds(
        is_first ? first_attempts_milliseconds[earlier] : ATTEMPT_MILLISECONDS);
}

static void begin_attempt(struct store_client *client) {
    struct failure failure = {0};
    struct store_link_settings settings = {
        .address = store_addresses_next(&client->addresses),
        .limits = &client->settings.limits,
        .key = client->settings.key,
        .silence_timeout = client->settings.silence_timeout,
        .is_watched = client->settings.is_watched,
        .owner = &store_client_link_owner,
        .context = client,
    };
    if (settings.address == NULL ||
        store_link_open(client->loop, &settings, &client->link, &failure) != FAILURE_NONE) {
        store_client_retry(client, &failure);
        return;
    }
    client->phase = STORE_CLIENT_CONNECTING;
    client->attempt_began = event_loop_now(client->loop);
    client->next_attempt = instant_after(client->attempt_began, attempt_time(&client->addresses));
}

static void give_up_attempt(struct store_client *client) {
    struct failure failure;
    failure_set(&failure, FAILURE_TIMEOUT, "%s",
        store_link_is_connected(client->link) ? "it accepts connections, but does not answer"
                                              : "it does not answer");
    store_client_retry(client, &failure);
}

/* The time for the current attempt is up. A server that is there may have much to do. */
static void end_attempt(struct store_client *client, struct instant now) {
    struct instant end =
        instant_after(client->attempt_began, duration_from_milliseconds(ATTEMPT_MILLISECONDS));
    if (store_link_is_connected(client->link) && instant_is_before(now, end)) {
        client->next_attempt = end;
    } else {
        give_up_attempt(client);
    }
}

/* The time for all attempts is up, but maybe not for the current one. If an earlier attempt failed,
 * its error says more than that the current one has no answer yet. */
static void cut_off_attempt(struct store_client *client) {
    struct failure failure;
    if (store_link_is_connected(client->link)) {
        give_up_attempt(client);
        return;
    }
    failure_set(&failure, FAILURE_TIMEOUT, "it does not answer");
    store_addresses_note_unfinished(&client->addresses, &failure);
}

void store_client_dial_due(struct store_client *client, struct instant now) {
    bool is_refused = !instant_is_before(now, store_client_refusals_end(client));
    bool is_over = is_refused || !instant_is_before(now, client->connect_deadline);
    bool is_due = !instant_is_before(now, client->next_attempt);
    if (is_over && client->phase == STORE_CLIENT_CONNECTING) {
        cut_off_attempt(client);
    } else if (is_due && client->phase == STORE_CLIENT_CONNECTING) {
        end_attempt(client, now);
    } else if (is_due && !is_over) {
        begin_attempt(client);
    }
    if (is_over) {
        give_up_connecting(client, is_refused);
    }
}
