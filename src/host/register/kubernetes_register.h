/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `k8s` of a job's register: two objects that the API server of Kubernetes keeps, both
 * of the name that --rdzv-endpoint gives.
 *
 *     ConfigMap    data: entry.RUN_ID                         the last entry of that job
 *     Lease        metadata.annotations: renewal.RUN_ID.TERM  its renewals; spec.holderIdentity
 *
 * An append is an update with the version (resourceVersion) of the ConfigMap that was read, so it
 * is done only if nobody has changed the ConfigMap since. One entry is enough: what is appended
 * must follow it. The API server is asked again when it is not there or wants to be left alone;
 * what became of an update whose reply was lost is read. The Lease does not run out: a term ends by
 * an append, and not by a time that passes. */
#ifndef MUSTER_HOST_REGISTER_KUBERNETES_REGISTER_H
#define MUSTER_HOST_REGISTER_KUBERNETES_REGISTER_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/loop/event_loop.h"
#include "host/register/http_client.h"
#include "host/register/register.h"
#include "options/launch/rendezvous_options.h"
#include "wire/register/kubernetes_object.h"

/* Where the API server of Kubernetes is that keeps a job's register, and how it is asked. In a pod
 * that is known from its environment and its service account. With --rdzv-conf k8s_server= it is
 * another one, with k8s_token_file= and k8s_ca=, if given: outside of a pod, or behind `kubectl
 * proxy`. */

/* What Kubernetes gives to each process of a pod. */
struct kubernetes_pod {
    const char *host; /* of the API server; NULL: this is no pod */
    const char *port;
    const char *directory; /* of the service account: token, ca.crt, namespace */
};

struct kubernetes_settings {
    char *server; /* http://… or https://…, without a slash at its end */
    struct kubernetes_place place;
    char *token_file;        /* NULL: none */
    struct http_trust trust; /* its strings are owned here */
};

/* `conf` may be NULL. FAILURE_INVALID with a message for the user; FAILURE_SYSTEM and
 * FAILURE_MISSING for a file that cannot be read. */
__attribute__((warn_unused_result)) enum failure_code kubernetes_settings_read(const char *endpoint,
    const struct text_list *conf, const struct kubernetes_pod *pod,
    struct kubernetes_settings *out_settings, struct failure *failure);
void kubernetes_settings_clear(struct kubernetes_settings *settings);

/* Reads the token file: Kubernetes replaces it from time to time. The caller frees the token, which
 * is NULL where there is no token file. FAILURE_MALFORMED for what cannot be a token; no message
 * quotes it. */
__attribute__((warn_unused_result)) enum failure_code kubernetes_settings_read_token(
    const struct kubernetes_settings *settings, char **out_token, struct failure *failure);

/* Asks the API server of Kubernetes for one object, to create one, to take a changed one, or to
 * tell of its changes, and says what its answer means. It knows nothing of what the objects hold.
 */

struct kubernetes_client;
struct kubernetes_question;

enum kubernetes_verb { KUBERNETES_GET, KUBERNETES_UPDATE, KUBERNETES_CREATE, KUBERNETES_WATCH };

enum kubernetes_outcome {
    KUBERNETES_DONE,     /* `object`: as it is now */
    KUBERNETES_MISSING,  /* there is no such object */
    KUBERNETES_CONFLICT, /* somebody has changed or created it meanwhile */
    KUBERNETES_FAILED,   /* `why` */
};

/* Borrowed for the call that gets it. */
struct kubernetes_answer {
    enum kubernetes_outcome outcome;
    struct kubernetes_object *object; /* the caller's from now on */
    const struct failure *why;        /* it names the server */
    bool is_final;                    /* it will be the same until somebody has done something */
    bool may_pass;         /* all the same: a server that has just started says so, too */
    bool is_undone;        /* the server has not done what it was asked */
    struct duration pause; /* how long it wants to be left alone; 0: it does not say */
};

/* Called on the loop, never from inside a call of this module. */
typedef void kubernetes_answered(void *context, const struct kubernetes_answer *answer);

/* The settings and the library are borrowed as long as the client lives. FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code kubernetes_client_new(struct event_loop *loop,
    const struct curl_library *library, const struct kubernetes_settings *settings,
    struct kubernetes_client **out_client, struct failure *failure);
/* All questions must have been answered or cancelled. Not from inside `answered`. Accepts NULL. */
void kubernetes_client_free(struct kubernetes_client *client);

/* `object` is borrowed for the call; NULL with KUBERNETES_GET. NULL, and a message that names the
 * file, when the token cannot be read; otherwise the question is valid until it is answered. */
struct kubernetes_question *kubernetes_ask(struct kubernetes_client *client,
    enum kubernetes_verb verb, enum kubernetes_kind kind, const struct kubernetes_object *object,
    struct duration patience, kubernetes_answered *answered, void *context,
    struct failure *failure);
/* Waits for changes of the object since the version of this one. `heard` is called as `answered`
 * is, with each change: the object is the callee's from then on; NULL: it is gone, or the server
 * does not know any more what has changed. When it returns false, the question is gone and not
 * answered. Otherwise the answer is KUBERNETES_FAILED at last. NULL as above. */
struct kubernetes_question *kubernetes_watch(struct kubernetes_client *client,
    enum kubernetes_kind kind, const struct kubernetes_object *object, struct duration patience,
    bool (*heard)(void *context, struct kubernetes_object *object_or_null),
    kubernetes_answered *answered, void *context, struct failure *failure);
void kubernetes_question_cancel(struct kubernetes_question *question);

extern const struct register_engine kubernetes_register_engine;

#endif
