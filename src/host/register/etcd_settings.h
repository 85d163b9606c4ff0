/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a job's etcd is and how it is asked: from --rdzv-endpoint and --rdzv-conf, whose keys are
 * torchrun's (etcd_rendezvous.py and etcd_rendezvous_backend.py in torch/distributed/elastic):
 * protocol, ca_cert or cacert, ssl_cert or cert, ssl_cert_key or key, user, password; and
 * password_file, because a password on a command line is seen by all users of a machine. */
#ifndef MUSTER_HOST_REGISTER_ETCD_SETTINGS_H
#define MUSTER_HOST_REGISTER_ETCD_SETTINGS_H

#include "base/failure.h"
#include "base/text.h"
#include "host/register/http_client.h"

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

#endif
