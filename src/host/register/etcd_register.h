/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `etcd` (and `etcd-v3`) of a job's register: keys in etcd, asked over gRPC.
 *
 *     muster/RUN_ID/entry/000000000001      one entry each; the last few are kept
 *     muster/RUN_ID/renewal/000000000001    of a term
 *
 * An append is one transaction: it puts an entry if there is none of that number and the one before
 * it is there. So a number whose entry was removed as old cannot be won again. A member that does
 * not answer is left for the next one at once. There is no lease: a term ends by an append, and not
 * by a time that passes. */
#ifndef MUSTER_HOST_REGISTER_ETCD_REGISTER_H
#define MUSTER_HOST_REGISTER_ETCD_REGISTER_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"
#include "host/register/grpc_client.h"
#include "host/register/http_client.h"
#include "host/register/register.h"

/* What a refusal of an etcd member, or its silence, means for who asks: whether asking on is of
 * use, and what the user can do about it. */

/* Whether it will be the same at every member, until the user has done something. */
bool etcd_failure_is_final(const struct grpc_result *result);
/* What the user can do about the member's words, to be appended to them; or "". etcd has one status
 * for several mistakes. */
const char *etcd_failure_advice(const struct grpc_result *result);

/* Where a job's etcd is and how it is asked: from --rdzv-endpoint and --rdzv-conf, whose keys are
 * torchrun's (etcd_rendezvous.py and etcd_rendezvous_backend.py in torch/distributed/elastic):
 * protocol, ca_cert or cacert, ssl_cert or cert, ssl_cert_key or key, user, password; and
 * password_file, because a password on a command line is seen by all users of a machine. */

struct etcd_settings {
    struct text_list endpoints; /* HOST:PORT */
    struct http_trust trust;    /* its strings are owned here */
    char *user;                 /* NULL: none */
    char *password;
};

/* `conf` may be NULL. FAILURE_INVALID with a message for the user; FAILURE_SYSTEM and
 * FAILURE_MISSING for a file that cannot be read. */
__attribute__((warn_unused_result)) enum failure_code etcd_settings_read(const char *endpoint,
    const struct text_list *conf, struct etcd_settings *out_settings, struct failure *failure);
void etcd_settings_clear(struct etcd_settings *settings);

extern const struct register_engine etcd_register_engine;

#endif
