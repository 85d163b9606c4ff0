/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses HOST:PORT for the rendezvous options. Matches elastic/rendezvous/utils.py
 * parse_rendezvous_endpoint, which splits at the last colon, except for hosts with colons. Here
 * these are IPv6 addresses or are refused. "::1" is a host without port (in PyTorch it is host ":"
 * and port 1). A text like "fe80::1:2940" is refused, because it is a valid address with and
 * without its last group. Does not resolve names. */
#ifndef MUSTER_OPTIONS_LAUNCH_ENDPOINT_H
#define MUSTER_OPTIONS_LAUNCH_ENDPOINT_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"

#define ENDPOINT_NO_PORT (-1)
/* The maximum length of a host in bytes; DNS names have at most 253. */
#define ENDPOINT_HOST_MAXIMUM 253

struct endpoint {
    char *host; /* without brackets */
    int port;   /* 0-65535 or ENDPOINT_NO_PORT */
};

/* Blanks around the text are ignored; "" is localhost. FAILURE_INVALID with a reason appended when
 * the text is not an endpoint. */
__attribute__((warn_unused_result)) enum failure_code endpoint_parse(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason);
void endpoint_clear(struct endpoint *endpoint);

/* Parses a host alone, with or without brackets; the caller frees it. FAILURE_INVALID as above. */
__attribute__((warn_unused_result)) enum failure_code endpoint_parse_host(
    const char *text, char **out_host, struct text *out_reason);

/* Whether the host certainly is the machine itself, on every machine: localhost and its variants,
 * 127.0.0.0/8 or ::1. */
bool endpoint_is_loopback(const char *host);

/* Parses HOST:PORT,HOST:PORT,… of the members of a job's etcd, for the options and for the engine.
 * Each member may begin with http:// or https://, which is cut off, and may end with a slash.
 * A member without a port has etcd's own, as in etcd_rendezvous.py _create_etcd_client. */

struct endpoint_list {
    struct text_list members; /* HOST:PORT, an IPv6 address in brackets */
    bool is_https;            /* all of them begin with https:// */
};

/* FAILURE_INVALID with a reason appended when the text is no such list. */
__attribute__((warn_unused_result)) enum failure_code endpoint_list_parse(
    const char *text, struct endpoint_list *out_list, struct text *out_reason);
void endpoint_list_clear(struct endpoint_list *list);

#endif
