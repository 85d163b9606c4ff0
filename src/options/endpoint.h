/* SPDX-License-Identifier: BSD-3-Clause */
/* HOST:PORT as the rendezvous options take it. Matches elastic/rendezvous/utils.py
 * parse_rendezvous_endpoint, which takes everything apart at its last colon, but for hosts with
 * colons: they are IPv6 addresses or refused; "::1" is a host without port (there host ":" and port
 * 1); and what is an address both with and without its end ("fe80::1:2940") is refused, as nobody
 * knows which was meant. Resolves nothing. */
#ifndef MUSTER_OPTIONS_ENDPOINT_H
#define MUSTER_OPTIONS_ENDPOINT_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"

#define ENDPOINT_NO_PORT (-1)
/* Longest host in bytes; names of the DNS have at most 253. */
#define ENDPOINT_HOST_MAXIMUM 253

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

/* Whether the host is surely this machine, whichever machine that is: a name that every machine has
 * for itself, 127.0.0.0/8 or ::1. */
bool endpoint_is_loopback(const char *host);

/* Whether the text is an IPv6 address as RFC 4291 writes it, without zone. */
bool endpoint_is_ipv6_address(const char *text);

#endif
