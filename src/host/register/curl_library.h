/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads libcurl when a job's register is in etcd or in Kubernetes. Linking it would add
 * milliseconds and megabytes to every start, and most jobs have no such register. */
#ifndef MUSTER_HOST_REGISTER_CURL_LIBRARY_H
#define MUSTER_HOST_REGISTER_CURL_LIBRARY_H

#include <curl/curl.h>

#include "base/failure.h"

struct curl_library {
    void *handle;
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_version_info) *version_info;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_setopt) *multi_setopt;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_socket_action) *multi_socket_action;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
};

/* `library` is CURL_LIBRARY_NAME except in tests. FAILURE_MISSING when it is not installed, lacks a
 * function, or cannot speak HTTP/2. It stays loaded: what it has started cannot be undone. */
#define CURL_LIBRARY_NAME "libcurl.so.4"
__attribute__((warn_unused_result)) enum failure_code curl_library_load(
    const char *library, struct curl_library *out_library, struct failure *failure);

#endif
