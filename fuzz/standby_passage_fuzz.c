/* SPDX-License-Identifier: BSD-3-Clause */
/* The order to go that an agent sends to a standby worker, with its body behind it: read in place,
 * nothing outside the body is pointed to, and each variable has a name and a value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "standby_passage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void check(int is_true) {
    if (!is_true) {
        abort();
    }
}

static void check_passage(const char *body, size_t length, const struct standby_passage *passage) {
    const char *end = body + length;
    check(passage->directory >= body && passage->directory + strlen(passage->directory) < end);
    for (char **variable = passage->environment; *variable != NULL; variable++) {
        const char *equals = strchr(*variable, '=');
        check(*variable > body && *variable + strlen(*variable) < end);
        check(equals != NULL && equals != *variable);
        check(strncmp(*variable, "MUSTER_STANDBY=", strlen("MUSTER_STANDBY=")) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct standby_go go;
    struct standby_passage passage;
    if (muster_standby_go_read((const char *)data, length, &go) != 0) {
        return 0;
    }
    check(go.descriptor_count >= 4 && go.descriptor_count <= 6);
    /* Exactly as large as the body: what reads beyond it is found. */
    size_t body_length = length - STANDBY_GO_HEAD;
    char *body = malloc(body_length);
    if (body_length > 0) {
        memcpy(body, data + STANDBY_GO_HEAD, body_length);
    }
    if (muster_standby_passage_read(body, body_length, &passage) == 0) {
        check_passage(body, body_length, &passage);
        free(passage.environment);
    }
    free(body);
    return 0;
}
