/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/http_library.h"

#include <dlfcn.h>
#include <stdbool.h>

#define LOAD(library, name)                                                                        \
    (((library)->name = (__typeof__((library)->name))dlsym((library)->handle, "MHD_" #name)) !=    \
        NULL)

static bool load_functions(struct http_library *library) {
    return LOAD(library, start_daemon) && LOAD(library, stop_daemon) &&
           LOAD(library, get_daemon_info) && LOAD(library, get_connection_info) &&
           LOAD(library, lookup_connection_value) && LOAD(library, run) &&
           LOAD(library, get_timeout) && LOAD(library, create_response_from_buffer) &&
           LOAD(library, add_response_header) && LOAD(library, queue_response) &&
           LOAD(library, destroy_response);
}

enum failure_code http_library_load(
    const char *library, struct http_library *out_library, struct failure *failure) {
    struct http_library loaded = {.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (loaded.handle == NULL) {
        return failure_set(
            failure, FAILURE_MISSING, "libmicrohttpd is needed for it: %s", dlerror());
    }
    if (!load_functions(&loaded)) {
        (void)dlclose(loaded.handle);
        return failure_set(
            failure, FAILURE_MISSING, "%s lacks functions of libmicrohttpd", library);
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

void http_library_unload(struct http_library *library) {
    if (library->handle != NULL) {
        (void)dlclose(library->handle);
        library->handle = NULL;
    }
}
