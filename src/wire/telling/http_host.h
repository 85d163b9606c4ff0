/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the Host of an HTTP request is one of this machine's. A page of the web can have a
 * browser here ask a server here under a name of the page's own domain, which that domain's name
 * server says to be this machine ("DNS rebinding"), and then may read the answer. Such a request
 * says that name. No address and no name of this machine's own can be such a domain's. */
#ifndef MUSTER_WIRE_TELLING_HTTP_HOST_H
#define MUSTER_WIRE_TELLING_HTTP_HOST_H

#include <stdbool.h>

#include "base/text.h"

/* Adds the names in a text, which are parted by commas or blanks. */
void http_host_add_names(const char *text, struct text_list *names);

/* `host` is the header as it came, perhaps with a port; NULL or empty: there is none, so it comes
 * from no browser. Admitted are addresses, "localhost", each of the names, and what a name begins
 * with that has no dot ("node7" of "node7.cluster.example") or ends with ".svc" (of a name in
 * Kubernetes). A name that begins with a dot, or with "*.", stands for all that end so, and "*" for
 * all. Case does not count, nor does a dot at the end. */
bool http_host_is_admitted(const char *host, const struct text_list *names);

#endif
