/* SPDX-License-Identifier: BSD-3-Clause */
/* HOST:PORT as the rendezvous options take it. Matches elastic/rendezvous/utils.py
 * parse_rendezvous_endpoint, but for one thing: an IPv6 address without brackets is a host without
 * port there taken apart at its last colon ("::1" became host ":" and port 1). Resolves nothing. */
#ifndef MUSTER_OPTIONS_ENDPOINT_H
#define MUSTER_OPTIONS_ENDPOINT_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"

#define ENDPOINT_NO_PORT (-1)

struct endpoint {
    char *host; /* without brackets */
    int port;   /* 0-65535 or ENDPOINT_NO_PORT */
};

/* FAILURE_INVALID with a reason appended when it is no endpoint. Blanks around it are dropped; ""
 * is localhost. */
__attribute__((warn_unused_result)) enum failure_code endpoint_parse(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason);
void endpoint_clear(struct endpoint *endpoint);

/* A host alone, with or without brackets; the caller frees it. FAILURE_INVALID as above. */
__attribute__((warn_unused_result)) enum failure_code endpoint_parse_host(
    const char *text, char **out_host, struct text *out_reason);

/* Whether the text is an IPv6 address as RFC 4291 writes it, without zone. */
bool endpoint_is_ipv6_address(const char *text);

#endif
