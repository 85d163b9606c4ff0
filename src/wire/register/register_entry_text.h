/* SPDX-License-Identifier: BSD-3-Clause */
/* An entry of a register as text: one JSON object, whose record is in base64. The text is what an
 * engine keeps. Members that a later version of Muster may add are skipped; a text of a later
 * "version" is refused. */
#ifndef MUSTER_WIRE_REGISTER_REGISTER_ENTRY_TEXT_H
#define MUSTER_WIRE_REGISTER_REGISTER_ENTRY_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/register/register_entry.h"

/* Every entry that register_entry_check accepts has a shorter text. */
#define REGISTER_ENTRY_TEXT_MAXIMUM ((size_t)1 << 20)

/* Appends the text. The entry must have passed register_entry_check. */
void register_entry_write(const struct register_entry *entry, struct text *out);

/* FAILURE_MALFORMED or FAILURE_LIMIT for what is no entry, FAILURE_UNSUPPORTED for an entry of a
 * later version; then `out_reason` (may be NULL) gets a few words that continue "it ". Otherwise
 * the caller clears the entry. */
__attribute__((warn_unused_result)) enum failure_code register_entry_read(
    struct slice input, struct register_entry *out_entry, struct text *out_reason);

/* The objects of the Kubernetes API by which a register is kept, as the API server writes them in
 * JSON: a ConfigMap for entries, a Lease for renewals, and the Status that says why a request was
 * not done. What others have put into an object is kept when it is written again. */

/* The API server keeps at most 1 MiB in a ConfigMap. Written as JSON it may be longer. */
#define KUBERNETES_OBJECT_MAXIMUM ((size_t)4 << 20)
/* The objects that Muster makes or may use have this label with this value. */
#define KUBERNETES_LABEL "app.kubernetes.io/managed-by"
#define KUBERNETES_LABEL_VALUE "muster"

enum kubernetes_kind {
    KUBERNETES_CONFIG_MAP, /* its values are its data */
    KUBERNETES_LEASE,      /* its values are annotations */
};

struct kubernetes_object;

/* A new one, for the API server to create. */
struct kubernetes_object *kubernetes_object_new(enum kubernetes_kind kind, const char *name);
/* FAILURE_MALFORMED for what is no such object with a version, FAILURE_LIMIT for too long a one. */
__attribute__((warn_unused_result)) enum failure_code kubernetes_object_read(
    struct slice input, enum kubernetes_kind kind, struct kubernetes_object **out_object);
/* Accepts NULL. */
void kubernetes_object_free(struct kubernetes_object *object);

/* What a watch tells of an object. */
enum kubernetes_event {
    KUBERNETES_EVENT_CHANGED, /* it is so now; also of one that was there before */
    KUBERNETES_EVENT_NOTHING, /* of the watch itself */
    KUBERNETES_EVENT_OVER,    /* the object is gone, or the watch has ended */
};

/* One line of a watch, without its end. `out_object` is the caller's, of CHANGED alone. What makes
 * no sense is OVER. */
enum kubernetes_event kubernetes_event_read(
    struct slice line, enum kubernetes_kind kind, struct kubernetes_object **out_object);

/* The version that it was read with, of digits; "" for a new one, and for other characters. It
 * belongs to the object. */
const char *kubernetes_object_version(const struct kubernetes_object *object);

bool kubernetes_object_has_label(const struct kubernetes_object *object);
/* Belongs to the object; NULL: it has none of that name. */
const char *kubernetes_object_value(const struct kubernetes_object *object, const char *name);
void kubernetes_object_set_value(
    struct kubernetes_object *object, const char *name, const char *value);
/* Removes the values that are named `start` and a number below this one. */
void kubernetes_object_remove_below(
    struct kubernetes_object *object, const char *start, int64_t number);
/* Of a Lease, for people who look there. */
void kubernetes_object_set_holder(struct kubernetes_object *object, const char *holder);

/* Appends the object with the version that it was read with: the API server takes it only if
 * nobody has changed it since. */
void kubernetes_object_write(const struct kubernetes_object *object, struct text *out);

/* Why a request was not done: appends what the API server says, in a few words, or nothing. Returns
 * after how many seconds it wants to be asked again, or 0. */
int64_t kubernetes_status_read(struct slice input, struct text *out_words);

#endif
