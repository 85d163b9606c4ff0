/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_presence.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "base/text.h"

struct store_presence {
    char *prefix;
    size_t prefix_length;
    char *served_key;
    struct table *held; /* name -> key; the same keys are in the lists of their holders */
    struct store_presence_key *first_gone;
    struct store_presence_key *last_gone;
};

static bool free_held(void *context, struct slice name, void *value) {
    (void)context;
    (void)name;
    store_presence_key_free(value);
    return true;
}

struct store_presence *store_presence_new(const char *raw_prefix) {
    struct store_presence *presence = memory_allocate(sizeof *presence);
    presence->prefix = memory_duplicate_string(raw_prefix != NULL ? raw_prefix : "");
    presence->prefix_length = strlen(presence->prefix);
    presence->served_key = presence->prefix_length == 0
                               ? memory_duplicate_string("")
                               : text_format("%s%s", presence->prefix, STORE_PRESENCE_SERVED);
    presence->held = table_new(NULL);
    return presence;
}

void store_presence_free(struct store_presence *presence) {
    if (presence == NULL) {
        return;
    }
    struct store_presence_key *gone;
    while ((gone = store_presence_take_gone(presence)) != NULL) {
        store_presence_key_free(gone);
    }
    table_each(presence->held, free_held, NULL);
    table_free(presence->held);
    free(presence->served_key);
    free(presence->prefix);
    free(presence);
}

const char *store_presence_served_key(const struct store_presence *presence) {
    return presence->served_key;
}

/* Whether a raw key is below the prefix. If so, `out_name` is the part after the prefix. */
static bool is_below(
    const struct store_presence *presence, struct slice raw_key, struct slice *out_name) {
    size_t length = presence->prefix_length;
    if (length == 0 || raw_key.length < length ||
        memcmp(raw_key.data, presence->prefix, length) != 0) {
        return false;
    }
    *out_name = slice_from(raw_key, length);
    return true;
}

static bool is_served(struct slice name) {
    return slice_equals(name, slice_from_string(STORE_PRESENCE_SERVED));
}

/* Whether a raw key is a presence key. */
static bool is_presence(
    const struct store_presence *presence, struct slice raw_key, struct slice *out_name) {
    struct slice name;
    if (!is_below(presence, raw_key, &name) || is_served(name)) {
        return false;
    }
    *out_name = name;
    return true;
}

static bool is_text(struct slice bytes) {
    return bytes.length == 0 || memchr(bytes.data, '\0', bytes.length) == NULL;
}

const char *store_presence_objection(
    const struct store_presence *presence, const struct store_request *request) {
    struct slice name;
    if (request->operation != STORE_SET || !is_presence(presence, request->key, &name)) {
        return NULL;
    }
    if (name.length == 0) {
        return "a presence key without a name";
    }
    if (name.length > STORE_PRESENCE_NAME_BYTES) {
        return "a presence key with a name of more than 512 bytes";
    }
    if (request->value.length > STORE_PRESENCE_VALUE_BYTES) {
        return "a presence key with a value of more than 512 bytes";
    }
    if (!is_text(name) || !is_text(request->value)) {
        return "a presence key that is not text";
    }
    if (table_count(presence->held) >= STORE_PRESENCE_KEYS &&
        table_get(presence->held, name) == NULL) {
        return "a presence key beyond the limit of 65536";
    }
    return NULL;
}

static const char *key_refusal(const struct store_presence *presence,
    const struct store_presence_holder *holder, struct slice raw_key) {
    struct slice name;
    if (!is_below(presence, raw_key, &name)) {
        return NULL;
    }
    if (is_served(name)) {
        return "not carried out: it would write the key by which the store says that it serves "
               "presence";
    }
    const struct store_presence_key *key = table_get(presence->held, name);
    return key != NULL && key->holder != holder
               ? "not carried out: it would write a presence key of another connection"
               : NULL;
}

/* Queues are beside the value of their key. */
static const bool writes[STORE_OPERATION_COUNT] = {
    [STORE_SET] = true,
    [STORE_COMPARE_SET] = true,
    [STORE_ADD] = true,
    [STORE_DELETE] = true,
    [STORE_APPEND] = true,
    [STORE_MULTI_SET] = true,
    [STORE_BARRIER] = true,
};

const char *store_presence_refusal(const struct store_presence *presence,
    const struct store_presence_holder *holder, const struct store_request *request) {
    if (!writes[request->operation]) {
        return NULL;
    }
    const char *refusal = request->count == 0 ? key_refusal(presence, holder, request->key) : NULL;
    for (size_t i = 0; i < request->count && refusal == NULL; i++) {
        refusal = key_refusal(presence, holder, request->keys[i]);
    }
    return refusal;
}

static char *copy_text(struct slice bytes) {
    char *text = memory_allocate(bytes.length + 1);
    if (bytes.length > 0) {
        memcpy(text, bytes.data, bytes.length);
    }
    return text;
}

static void unlink_key(struct store_presence_key *key) {
    if (key->previous != NULL) {
        key->previous->next = key->next;
    } else {
        key->holder->first = key->next;
    }
    if (key->next != NULL) {
        key->next->previous = key->previous;
    }
    key->holder = NULL;
    key->next = NULL;
    key->previous = NULL;
}

static void link_key(struct store_presence_holder *holder, struct store_presence_key *key) {
    key->holder = holder;
    key->next = holder->first;
    if (holder->first != NULL) {
        holder->first->previous = key;
    }
    holder->first = key;
}

static struct store_presence_key *bind(struct store_presence *presence,
    struct store_presence_holder *holder, const struct store_request *request, struct slice name) {
    struct store_presence_key *key = table_get(presence->held, name);
    if (key == NULL) {
        key = memory_allocate(sizeof *key);
        key->raw_key = copy_text(request->key);
        key->name = key->raw_key + presence->prefix_length;
        (void)table_put(presence->held, name, key);
    } else {
        unlink_key(key);
    }
    free(key->value);
    key->value = copy_text(request->value);
    link_key(holder, key);
    return key;
}

/* Only the connection that holds the key unbinds it. */
static void unbind(struct store_presence *presence, const struct store_presence_holder *holder,
    struct slice name) {
    struct store_presence_key *key = table_get(presence->held, name);
    if (key != NULL && key->holder == holder) {
        unlink_key(key);
        (void)table_remove(presence->held, name);
        store_presence_key_free(key);
    }
}

const struct store_presence_key *store_presence_note(struct store_presence *presence,
    struct store_presence_holder *holder, const struct store_request *request) {
    struct slice name;
    bool is_set = request->operation == STORE_SET;
    if ((!is_set && request->operation != STORE_DELETE) ||
        !is_presence(presence, request->key, &name)) {
        return NULL;
    }
    if (is_set) {
        return bind(presence, holder, request, name);
    }
    unbind(presence, holder, name);
    return NULL;
}

static void push_gone(struct store_presence *presence, struct store_presence_key *key) {
    if (presence->last_gone != NULL) {
        presence->last_gone->next = key;
    } else {
        presence->first_gone = key;
    }
    presence->last_gone = key;
}

void store_presence_leave(struct store_presence *presence, struct store_presence_holder *holder) {
    while (holder->first != NULL) {
        struct store_presence_key *key = holder->first;
        unlink_key(key);
        (void)table_remove(presence->held, slice_from_string(key->name));
        push_gone(presence, key);
    }
}

struct store_presence_key *store_presence_take_gone(struct store_presence *presence) {
    struct store_presence_key *key = presence->first_gone;
    if (key == NULL) {
        return NULL;
    }
    presence->first_gone = key->next;
    if (presence->first_gone == NULL) {
        presence->last_gone = NULL;
    }
    key->next = NULL;
    return key;
}

void store_presence_key_free(struct store_presence_key *key) {
    if (key == NULL) {
        return;
    }
    free(key->raw_key);
    free(key->value);
    free(key);
}

struct store_presence_holder *store_presence_find(
    const struct store_presence *presence, const char *name) {
    const struct store_presence_key *key = table_get(presence->held, slice_from_string(name));
    return key != NULL ? key->holder : NULL;
}
