/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the API server of Kubernetes is that keeps a job's register, and how it is asked. In a pod
 * that is known from its environment and its service account. With --rdzv-conf k8s_server= it is
 * another one, with k8s_token_file= and k8s_ca=, if given: outside of a pod, or behind `kubectl
 * proxy`. */
#ifndef MUSTER_HOST_REGISTER_KUBERNETES_SETTINGS_H
#define MUSTER_HOST_REGISTER_KUBERNETES_SETTINGS_H

#include "base/failure.h"
#include "base/text.h"
#include "host/register/http_client.h"
#include "options/launch/kubernetes_place.h"

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

/* That of this process. */
struct kubernetes_pod kubernetes_pod_here(void);

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

#endif
