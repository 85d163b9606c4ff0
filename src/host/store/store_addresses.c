/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_addresses.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void store_addresses_init(struct store_addresses *addresses, const char *host, int port) {
    *addresses = (struct store_addresses){.host = memory_duplicate_string(host), .port = port};
}

void store_addresses_clear(struct store_addresses *addresses) {
    free(addresses->host);
    free(addresses->items);
    addresses->host = NULL;
    addresses->items = NULL;
    addresses->count = 0;
}

/* Returns the result of an earlier attempt with this address, even if the name was resolved again
 * since. */
static struct failure failure_of(
    const struct store_addresses *addresses, const union tcp_address *address) {
    for (size_t i = 0; i < addresses->count; i++) {
        if (tcp_address_is_same_host(&addresses->items[i].address, address)) {
            return addresses->items[i].failure;
        }
    }
    return (struct failure){0};
}

/* Adds the addresses of one name that are not there yet. A name that is not known counts only where
 * none is. */
static size_t resolve_name(struct store_addresses *addresses, const char *name,
    union tcp_address found[static STORE_ADDRESSES_MOST], size_t count) {
    union tcp_address more[STORE_ADDRESSES_MOST] = {0};
    struct failure failure = {0};
    size_t more_count = 0;
    if (tcp_address_resolve(name, addresses->port, more, STORE_ADDRESSES_MOST, &more_count,
            &failure) != FAILURE_NONE) {
        addresses->unresolved = failure;
        return count;
    }
    for (size_t i = 0; i < more_count && count < STORE_ADDRESSES_MOST; i++) {
        size_t same = 0;
        while (same < count && !tcp_address_is_same_host(&found[same], &more[i])) {
            same++;
        }
        found[same] = more[i];
        count += same == count ? 1 : 0;
    }
    return count;
}

static size_t resolve_names(
    struct store_addresses *addresses, union tcp_address found[static STORE_ADDRESSES_MOST]) {
    char *names = memory_duplicate_string(addresses->host);
    char *rest = NULL;
    size_t count = 0;
    for (char *name = strtok_r(names, " ", &rest); name != NULL;
         name = strtok_r(NULL, " ", &rest)) {
        count = resolve_name(addresses, name, found, count);
    }
    free(names);
    return count;
}

static void resolve(struct store_addresses *addresses) {
    union tcp_address found[STORE_ADDRESSES_MOST] = {0};
    struct failure failures[STORE_ADDRESSES_MOST];
    addresses->next = 0;
    addresses->unresolved = (struct failure){0};
    size_t count = resolve_names(addresses, found);
    if (count > 0) {
        addresses->unresolved = (struct failure){0};
    }
    for (size_t i = 0; i < count; i++) {
        failures[i] = failure_of(addresses, &found[i]);
    }
    addresses->items = memory_reallocate(addresses->items, count * sizeof *addresses->items);
    for (size_t i = 0; i < count; i++) {
        addresses->items[i] = (struct store_address){found[i], failures[i]};
    }
    addresses->count = count;
}

const union tcp_address *store_addresses_next(struct store_addresses *addresses) {
    addresses->attempts++;
    if (!store_addresses_has_more(addresses)) {
        resolve(addresses);
    }
    if (addresses->count == 0) {
        return NULL;
    }
    return &addresses->items[addresses->next++].address;
}

bool store_addresses_has_more(const struct store_addresses *addresses) {
    return addresses->next < addresses->count;
}

void store_addresses_note(struct store_addresses *addresses, const struct failure *failure) {
    if (addresses->next > 0) {
        addresses->items[addresses->next - 1].failure = *failure;
    }
}

void store_addresses_note_unfinished(
    struct store_addresses *addresses, const struct failure *failure) {
    if (addresses->next > 0 && addresses->items[addresses->next - 1].failure.code == FAILURE_NONE) {
        store_addresses_note(addresses, failure);
    }
}

static void describe_address(const struct store_address *item, struct text *text) {
    char address[TCP_ADDRESS_TEXT_SIZE];
    tcp_address_describe(&item->address, address);
    text_append_format(text, "%s: ", address);
    if (item->failure.code == FAILURE_NONE) {
        text_append(text, "no attempt was finished");
        return;
    }
    text_append(text, item->failure.message);
    if (item->failure.system_error != 0) {
        text_append_format(text, " (errno %d)", item->failure.system_error);
    }
}

void store_addresses_describe(const struct store_addresses *addresses, struct text *text) {
    text_append_format(text, "after %" PRIu64 " attempt%s: ", addresses->attempts,
        addresses->attempts == 1 ? "" : "s");
    if (addresses->unresolved.code != FAILURE_NONE) {
        text_append(text, addresses->unresolved.message);
    } else if (addresses->count == 0) {
        text_append(text, "its name was never looked up");
    }
    for (size_t i = 0; i < addresses->count; i++) {
        text_append(text, i > 0 ? "; " : "");
        describe_address(&addresses->items[i], text);
    }
}
