/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads libmicrohttpd when it is needed. Linking it would load a TLS library at every start, which
 * would take longer than the rest of the start, and most launchers serve no HTTP. */
#ifndef MUSTER_HOST_NETWORK_HTTP_LIBRARY_H
#define MUSTER_HOST_NETWORK_HTTP_LIBRARY_H

#include <microhttpd.h>

#include "base/failure.h"

struct http_library {
    void *handle;
    __typeof__(MHD_start_daemon) *start_daemon;
    __typeof__(MHD_stop_daemon) *stop_daemon;
    __typeof__(MHD_get_daemon_info) *get_daemon_info;
    __typeof__(MHD_get_connection_info) *get_connection_info;
    __typeof__(MHD_lookup_connection_value) *lookup_connection_value;
    __typeof__(MHD_run) *run;
    __typeof__(MHD_get_timeout) *get_timeout;
    __typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
    __typeof__(MHD_add_response_header) *add_response_header;
    __typeof__(MHD_queue_response) *queue_response;
    __typeof__(MHD_destroy_response) *destroy_response;
};

/* `library` is HTTP_LIBRARY_NAME except in tests. FAILURE_MISSING when it is not installed or lacks
 * a function. */
#define HTTP_LIBRARY_NAME "libmicrohttpd.so.12"
__attribute__((warn_unused_result)) enum failure_code http_library_load(
    const char *library, struct http_library *out_library, struct failure *failure);

void http_library_unload(struct http_library *library);

#endif
