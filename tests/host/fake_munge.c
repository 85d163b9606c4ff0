/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for munge's client library, in the place of which there are no daemons: what they do
 * is in the name of the socket, KEY.USER or KEY.USER.STATUS. A credential is a text of key, user
 * and payload. Daemons with the same KEY believe each other. STATUS is that of all that is decoded;
 * with 6 nothing can be encoded either. FAKE_MUNGE_STATUS in the environment goes before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define SOCKET_FAILED 6
#define INVALID 14

struct settings {
    char key[32];
    unsigned long user;
    int status;
};

struct settings *munge_ctx_create(void);
void munge_ctx_destroy(struct settings *settings);
int munge_ctx_set(struct settings *settings, int option, const char *socket);
const char *munge_ctx_strerror(const struct settings *settings);
const char *munge_strerror(int status);
int munge_encode(
    char **out_credential, const struct settings *settings, const void *payload, int length);
int munge_decode(const char *credential, struct settings *settings, void **out_payload,
    int *out_length, uid_t *out_user, gid_t *out_group);

struct settings *munge_ctx_create(void) {
    return calloc(1, sizeof(struct settings));
}

void munge_ctx_destroy(struct settings *settings) {
    free(settings);
}

int munge_ctx_set(struct settings *settings, int option, const char *socket) {
    (void)option;
    const char *name = strrchr(socket, '/');
    const char *status = getenv("FAKE_MUNGE_STATUS");
    int count = sscanf(name, "/%31[^.].%lu.%d", settings->key, &settings->user, &settings->status);
    settings->status = status != NULL ? atoi(status) : settings->status;
    return count >= 2 ? 0 : 2;
}

const char *munge_ctx_strerror(const struct settings *settings) {
    return settings->status == SOCKET_FAILED ? "made-up munge is away" : NULL;
}

const char *munge_strerror(int status) {
    (void)status;
    return "made-up munge objects";
}

int munge_encode(
    char **out_credential, const struct settings *settings, const void *payload, int length) {
    const unsigned char *bytes = payload;
    if (settings->status == SOCKET_FAILED) {
        return SOCKET_FAILED;
    }
    char *credential = calloc(1, 128 + 2 * (size_t)length);
    int end = sprintf(credential, "FAKE:%s:%lu:", settings->key, settings->user);
    for (int i = 0; i < length; i++) {
        end += sprintf(credential + end, "%02x", bytes[i]);
    }
    *out_credential = credential;
    return 0;
}

int munge_decode(const char *credential, struct settings *settings, void **out_payload,
    int *out_length, uid_t *out_user, gid_t *out_group) {
    char key[32];
    unsigned long user;
    int start = 0;
    if (settings->status != 0) {
        return settings->status;
    }
    if (sscanf(credential, "FAKE:%31[^:]:%lu:%n", key, &user, &start) != 2 || start == 0 ||
        strcmp(key, settings->key) != 0) {
        return INVALID;
    }
    size_t length = strlen(credential + start) / 2;
    unsigned char *payload = calloc(1, length + 1);
    for (size_t i = 0; i < length; i++) {
        unsigned int byte = 0;
        (void)sscanf(credential + start + 2 * i, "%2x", &byte);
        payload[i] = (unsigned char)byte;
    }
    *out_payload = payload;
    *out_length = (int)length;
    *out_user = (uid_t)user;
    *out_group = 0;
    return 0;
}
