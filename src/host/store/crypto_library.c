/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/crypto_library.h"

#include <dlfcn.h>

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(library, member, name)                                                                \
    ((library)->member = (__typeof__((library)->member))dlsym((library)->handle, name))

static void *open_any(const char *library) {
    if (library != NULL) {
        return dlopen(library, RTLD_NOW | RTLD_LOCAL);
    }
    void *handle = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    return handle != NULL ? handle : dlopen("libcrypto.so.1.1", RTLD_NOW | RTLD_LOCAL);
}

enum failure_code crypto_library_load(
    const char *library, struct crypto_library *out_library, struct failure *failure) {
    struct crypto_library loaded = {.handle = open_any(library)};
    if (loaded.handle == NULL) {
        return failure_set(failure, FAILURE_MISSING,
            "OpenSSL's libcrypto is needed for a job token (Debian: apt install libssl3): %s",
            dlerror());
    }
    LOAD(&loaded, sha256, "EVP_sha256");
    LOAD(&loaded, hmac, "HMAC");
    LOAD(&loaded, compare, "CRYPTO_memcmp");
    if (loaded.sha256 == NULL || loaded.hmac == NULL || loaded.compare == NULL) {
        (void)dlclose(loaded.handle);
        return failure_set(failure, FAILURE_MISSING,
            "%s lacks functions of OpenSSL's libcrypto, which is needed for a job token",
            library != NULL ? library : "libcrypto");
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

void crypto_library_unload(struct crypto_library *library) {
    if (library->handle != NULL) {
        (void)dlclose(library->handle);
        library->handle = NULL;
    }
}
