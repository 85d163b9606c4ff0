/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/munge_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Of munge.h. */
#define OPTION_SOCKET 8
enum munge_status {
    MUNGE_SUCCESS = 0,
    MUNGE_BAD_CREDENTIAL = 8, /* and up to the last: about the credential, not about the daemon */
    MUNGE_INVALID = 14,
    MUNGE_EXPIRED = 15,
    MUNGE_REWOUND = 16,
    MUNGE_REPLAYED = 17,
    MUNGE_UNAUTHORIZED = 18,
};

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(library, member, name)                                                                \
    ((library)->member = (__typeof__((library)->member))dlsym((library)->handle, name))

static bool is_complete(const struct munge_library *library) {
    return library->encode != NULL && library->decode != NULL && library->settings_new != NULL &&
           library->settings_free != NULL && library->settings_set != NULL &&
           library->settings_error != NULL && library->error != NULL;
}

enum failure_code munge_library_load(
    const char *library, struct munge_library *out_library, struct failure *failure) {
    const char *name = library != NULL ? library : "libmunge.so.2";
    struct munge_library loaded = {.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (loaded.handle == NULL) {
        return failure_set(failure, FAILURE_MISSING,
            "munge's library is not installed here (Debian: apt install libmunge2): %s", dlerror());
    }
    LOAD(&loaded, encode, "munge_encode");
    LOAD(&loaded, decode, "munge_decode");
    LOAD(&loaded, settings_new, "munge_ctx_create");
    LOAD(&loaded, settings_free, "munge_ctx_destroy");
    LOAD(&loaded, settings_set, "munge_ctx_set");
    LOAD(&loaded, settings_error, "munge_ctx_strerror");
    LOAD(&loaded, error, "munge_strerror");
    if (!is_complete(&loaded)) {
        (void)dlclose(loaded.handle);
        return failure_set(
            failure, FAILURE_MISSING, "%s lacks functions of munge's client library", name);
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

/* Also where the library has no memory for settings: it says so itself when it is asked. */
static void *settings_for(const struct munge_library *library, const char *socket) {
    void *settings = library->settings_new();
    if (settings != NULL) {
        (void)library->settings_set(settings, OPTION_SOCKET, socket);
    }
    return settings;
}

static void explain(
    const struct munge_library *library, void *settings, int status, struct failure *failure) {
    const char *words = settings != NULL ? library->settings_error(settings) : NULL;
    words = words != NULL ? words : library->error(status);
    (void)failure_set(failure, FAILURE_SYSTEM, "%s", words != NULL ? words : "munge has failed");
}

static void end_settings(const struct munge_library *library, void *settings) {
    if (settings != NULL) {
        library->settings_free(settings);
    }
}

enum failure_code munge_library_encode(const struct munge_library *library, const char *socket,
    struct slice payload, struct bytes *out_credential, struct failure *failure) {
    char *credential = NULL;
    void *settings = settings_for(library, socket);
    int status = library->encode(&credential, settings, payload.data, (int)payload.length);
    enum failure_code code = FAILURE_NONE;
    if (status == MUNGE_SUCCESS && credential != NULL) {
        bytes_init(out_credential, 0);
        code = bytes_append(out_credential, credential, strlen(credential));
    } else {
        explain(library, settings, status, failure);
        code = FAILURE_SYSTEM;
    }
    free(credential);
    end_settings(library, settings);
    return code;
}

static enum store_credential_verdict verdict_of(int status) {
    switch (status) {
    case MUNGE_SUCCESS:
        return STORE_CREDENTIAL_ACCEPTED;
    case MUNGE_EXPIRED:
        return STORE_CREDENTIAL_OLD;
    case MUNGE_REWOUND:
        return STORE_CREDENTIAL_FUTURE;
    case MUNGE_REPLAYED:
        return STORE_CREDENTIAL_USED;
    case MUNGE_UNAUTHORIZED:
        return STORE_CREDENTIAL_OTHER_USER;
    default:
        return status >= MUNGE_BAD_CREDENTIAL && status <= MUNGE_INVALID
                   ? STORE_CREDENTIAL_OTHER_KEY
                   : STORE_CREDENTIAL_UNCHECKED;
    }
}

/* munge gives the payload also with some credentials that it refuses. */
enum store_credential_verdict munge_library_decode(const struct munge_library *library,
    const char *socket, struct slice credential, struct bytes *out_payload, uid_t *out_user,
    struct failure *failure) {
    char *text = memory_allocate(credential.length + 1); /* zeroed, so it ends */
    memcpy(text, credential.data, credential.length);
    void *payload = NULL;
    int length = 0;
    uid_t user = (uid_t)-1;
    gid_t group = (gid_t)-1;
    void *settings = settings_for(library, socket);
    int status = library->decode(text, settings, &payload, &length, &user, &group);
    enum store_credential_verdict verdict = verdict_of(status);
    if (verdict == STORE_CREDENTIAL_ACCEPTED) {
        bytes_init(out_payload, 0);
        (void)!bytes_append(out_payload, payload, length > 0 ? (size_t)length : 0);
        *out_user = user;
    } else {
        explain(library, settings, status, failure);
    }
    free(payload);
    free(text);
    end_settings(library, settings);
    return verdict;
}
