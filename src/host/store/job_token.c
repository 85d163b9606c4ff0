/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/job_token.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"

/* Loads OpenSSL's libcrypto when a job has a token. Linking it would add milliseconds and megabytes
 * to every start, and most jobs have none. */

/* The part of libcrypto's stable binary interface that is used here; its headers are often not
 * installed. */
struct crypto_library {
    void *handle;
    const void *(*sha256)(void); /* EVP_sha256 */
    unsigned char *(*hmac)(const void *digest, const void *key, int key_length,
        const unsigned char *data, size_t length, unsigned char *out_code,
        unsigned int *out_length);                                      /* HMAC */
    int (*compare)(const void *left, const void *right, size_t length); /* CRYPTO_memcmp */
};

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(library, member, name)                                                                \
    ((library)->member = (__typeof__((library)->member))dlsym((library)->handle, name))

static void *open_any(void) {
    void *handle = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    return handle != NULL ? handle : dlopen("libcrypto.so.1.1", RTLD_NOW | RTLD_LOCAL);
}

/* libcrypto.so.3, else libcrypto.so.1.1. FAILURE_MISSING when it is not installed or lacks a
 * function. */
static enum failure_code crypto_library_load(
    struct crypto_library *out_library, struct failure *failure) {
    struct crypto_library loaded = {.handle = open_any()};
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
            "libcrypto lacks functions of OpenSSL's, which are needed for a job token");
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

static void crypto_library_unload(struct crypto_library *library) {
    if (library->handle != NULL) {
        (void)dlclose(library->handle);
        library->handle = NULL;
    }
}

/* Job token. */

/* Shorter ones could be guessed by whoever has heard one proof. */
#define JOB_TOKEN_SHORTEST ((size_t)16)

struct job_token {
    struct crypto_library library;
    struct bytes secret;
    struct store_key key;
};

/* Computing. */

static bool authenticate(
    void *context, struct slice message, uint8_t out_code[static STORE_PROOF_CODE_BYTES]) {
    const struct job_token *token = context;
    unsigned int length = 0;
    return token->library.hmac(token->library.sha256(), token->secret.data,
               (int)token->secret.length, message.data, message.length, out_code,
               &length) != NULL &&
           length == STORE_PROOF_CODE_BYTES;
}

static bool equals(void *context, const uint8_t *left, const uint8_t *right) {
    const struct job_token *token = context;
    return token->library.compare(left, right, STORE_PROOF_CODE_BYTES) == 0;
}

static bool draw(void *context, uint8_t out_nonce[static STORE_PROOF_NONCE_BYTES]) {
    (void)context;
    return getrandom(out_nonce, STORE_PROOF_NONCE_BYTES, 0) == STORE_PROOF_NONCE_BYTES;
}

/* Reading. */

/* As a Secret that Kubernetes mounts. */
static bool is_mounted_secret(int fd, const struct stat *status) {
    struct statfs system;
    struct statvfs mount;
    return status->st_uid == 0 && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           fstatfs(fd, &system) == 0 && fstatvfs(fd, &mount) == 0 &&
           (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) &&
           (mount.f_flag & ST_RDONLY) != 0;
}

static enum failure_code check_file(int fd, const char *path, struct failure *failure) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return failure_set_system(failure, errno, "cannot look at the token file '%s'", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID, "the token file '%s' is no file", path);
    }
    if (is_mounted_secret(fd, &status)) {
        return FAILURE_NONE;
    }
    if (status.st_uid != geteuid()) {
        return failure_set(failure, FAILURE_INVALID,
            "the token file '%s' belongs to user %lu and this is user %lu; give a file of this "
            "user's own",
            path, (unsigned long)status.st_uid, (unsigned long)geteuid());
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return failure_set(failure, FAILURE_INVALID,
            "the token file '%s' has mode %04o, so that others may read or write it; chmod 600 it",
            path, (unsigned)status.st_mode & 07777U);
    }
    return FAILURE_NONE;
}

static enum failure_code read_all(
    int fd, const char *path, struct bytes *out_secret, struct failure *failure) {
    bytes_init(out_secret, 0);
    if (bytes_reserve(out_secret, JOB_TOKEN_LONGEST + 1) != FAILURE_NONE) {
        return FAILURE_LIMIT; /* there is no ceiling */
    }
    ssize_t length = 1;
    while (length > 0 && out_secret->length <= JOB_TOKEN_LONGEST) {
        length = read(
            fd, out_secret->data + out_secret->length, JOB_TOKEN_LONGEST + 1 - out_secret->length);
        out_secret->length += length > 0 ? (size_t)length : 0;
    }
    return length >= 0
               ? FAILURE_NONE
               : failure_set_system(failure, errno, "cannot read the token file '%s'", path);
}

static enum failure_code read_file(
    const char *path, struct bytes *out_secret, struct failure *failure) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return failure_set_system(failure, errno, "cannot open the token file '%s'", path);
    }
    enum failure_code code = check_file(fd, path, failure);
    if (code == FAILURE_NONE) {
        code = read_all(fd, path, out_secret, failure);
    }
    close(fd);
    return code;
}

static enum failure_code read_secret(
    const char *text, const char *path, struct bytes *out_secret, struct failure *failure) {
    enum failure_code code = path != NULL ? read_file(path, out_secret, failure)
                                          : bytes_append(out_secret, text, strlen(text));
    while (out_secret->length > 0 && isspace(out_secret->data[out_secret->length - 1])) {
        out_secret->length--;
    }
    if (code == FAILURE_NONE &&
        (out_secret->length < JOB_TOKEN_SHORTEST || out_secret->length > JOB_TOKEN_LONGEST)) {
        bool is_short = out_secret->length < JOB_TOKEN_SHORTEST;
        code = failure_set(failure, FAILURE_INVALID,
            "the job token of %s%s has %s %zu bytes; give a random one of %zu to %zu bytes, as "
            "`openssl rand -hex 32` makes it",
            path != NULL ? "--token-file " : "MUSTER_JOB_TOKEN", path != NULL ? path : "",
            is_short ? "only" : "more than", is_short ? out_secret->length : JOB_TOKEN_LONGEST,
            JOB_TOKEN_SHORTEST, JOB_TOKEN_LONGEST);
    }
    return code;
}

/* Life. */

enum failure_code job_token_open(
    const char *text, const char *path, struct job_token **out_token, struct failure *failure) {
    struct job_token *token = memory_allocate(sizeof *token);
    token->key = (struct store_key){authenticate, equals, draw, token, STORE_KEY_TOKEN};
    enum failure_code code = read_secret(text, path, &token->secret, failure);
    if (code == FAILURE_NONE) {
        code = crypto_library_load(&token->library, failure);
    }
    if (code != FAILURE_NONE) {
        job_token_free(token);
        return code;
    }
    *out_token = token;
    return FAILURE_NONE;
}

void job_token_free(struct job_token *token) {
    if (token == NULL) {
        return;
    }
    if (token->secret.data != NULL) {
        explicit_bzero(token->secret.data, token->secret.capacity);
    }
    bytes_clear(&token->secret);
    crypto_library_unload(&token->library);
    free(token);
}

const struct store_key *job_token_key(const struct job_token *token) {
    return token == NULL ? NULL : &token->key;
}
