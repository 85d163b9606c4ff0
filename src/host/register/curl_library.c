/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/curl_library.h"

#include <dlfcn.h>
#include <stdbool.h>

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(library, member)                                                                      \
    (((library)->member =                                                                          \
             (__typeof__((library)->member))dlsym((library)->handle, "curl_" #member)) != NULL)

static bool load_all(struct curl_library *library) {
    return LOAD(library, global_init) && LOAD(library, version_info) && LOAD(library, easy_init) &&
           LOAD(library, easy_setopt) && LOAD(library, easy_getinfo) &&
           LOAD(library, easy_cleanup) && LOAD(library, easy_strerror) &&
           LOAD(library, slist_append) && LOAD(library, slist_free_all) &&
           LOAD(library, multi_init) && LOAD(library, multi_setopt) &&
           LOAD(library, multi_add_handle) && LOAD(library, multi_remove_handle) &&
           LOAD(library, multi_socket_action) && LOAD(library, multi_info_read) &&
           LOAD(library, multi_cleanup);
}

enum failure_code curl_library_load(
    const char *library, struct curl_library *out_library, struct failure *failure) {
    struct curl_library loaded = {.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (loaded.handle == NULL) {
        return failure_set(failure, FAILURE_MISSING,
            "libcurl is needed for --rdzv-backend etcd and k8s (Debian: apt install libcurl4): %s",
            dlerror());
    }
    if (!load_all(&loaded)) {
        (void)dlclose(loaded.handle);
        return failure_set(failure, FAILURE_MISSING,
            "%s lacks functions of libcurl, which is needed for --rdzv-backend etcd and k8s",
            library);
    }
    if (loaded.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        (loaded.version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2) == 0) {
        return failure_set(failure, FAILURE_MISSING,
            "%s cannot speak HTTP/2, which is needed for --rdzv-backend etcd and k8s", library);
    }
    *out_library = loaded;
    return FAILURE_NONE;
}
