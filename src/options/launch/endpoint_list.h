/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses HOST:PORT,HOST:PORT,… of the members of a job's etcd, for the options and for the engine.
 * Each member may begin with http:// or https://, which is cut off, and may end with a slash.
 * A member without a port has etcd's own, as in etcd_rendezvous.py _create_etcd_client. */
#ifndef MUSTER_OPTIONS_LAUNCH_ENDPOINT_LIST_H
#define MUSTER_OPTIONS_LAUNCH_ENDPOINT_LIST_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"

#define ENDPOINT_LIST_MAXIMUM 16
#define ENDPOINT_LIST_DEFAULT_PORT 2379

struct endpoint_list {
    struct text_list members; /* HOST:PORT, an IPv6 address in brackets */
    bool is_https;            /* all of them begin with https:// */
};

/* FAILURE_INVALID with a reason appended when the text is no such list. */
__attribute__((warn_unused_result)) enum failure_code endpoint_list_parse(
    const char *text, struct endpoint_list *out_list, struct text *out_reason);
void endpoint_list_clear(struct endpoint_list *list);

#endif
