/* SPDX-License-Identifier: BSD-3-Clause */
#include "standby_passage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GO 'G'
#define BODY_IN_FILE 1u
#define HAS_EVIDENCE 2u
#define LENGTH_BYTES 4
#define ALWAYS_DESCRIPTORS 4

static const char own_name[] = "MUSTER_STANDBY=";

static size_t load_number(const char *body) {
    const unsigned char *bytes = (const unsigned char *)body;
    return (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 |
           (size_t)bytes[3] << 24;
}

static size_t count_ends(const char *text, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        count += text[i] == '\0';
    }
    return count;
}

static int is_variable(const char *text) {
    return text[0] != '=' && strchr(text, '=') != NULL &&
           strncmp(text, own_name, sizeof own_name - 1) != 0;
}

int muster_standby_go_read(const char *packet, size_t length, struct standby_go *out_go) {
    if (length < STANDBY_GO_HEAD || packet[0] != GO) {
        return EBADMSG;
    }
    size_t flags = load_number(packet + 1);
    if ((flags & ~(size_t)(BODY_IN_FILE | HAS_EVIDENCE)) != 0) {
        return EBADMSG;
    }
    struct standby_go go = {
        .is_in_file = (flags & BODY_IN_FILE) != 0, .has_evidence = (flags & HAS_EVIDENCE) != 0};
    go.descriptor_count = ALWAYS_DESCRIPTORS + (size_t)go.is_in_file + (size_t)go.has_evidence;
    *out_go = go;
    return 0;
}

int muster_standby_passage_read(char *body, size_t length, struct standby_passage *out_passage) {
    if (length > STANDBY_BODY_MAXIMUM) {
        return E2BIG;
    }
    size_t directory_length = length < LENGTH_BYTES ? 0 : load_number(body);
    if (length < LENGTH_BYTES || directory_length > length - LENGTH_BYTES ||
        memchr(body + LENGTH_BYTES, '\0', directory_length) != NULL) {
        return EBADMSG;
    }
    char *names = body + LENGTH_BYTES + directory_length;
    size_t names_length = length - LENGTH_BYTES - directory_length;
    if (names_length > 0 && names[names_length - 1] != '\0') {
        return EBADMSG;
    }
    char **environment = calloc(count_ends(names, names_length) + 1, sizeof *environment);
    if (environment == NULL) {
        return ENOMEM;
    }
    size_t count = 0;
    for (char *name = names; name < names + names_length; name += strlen(name) + 1) {
        if (is_variable(name)) {
            environment[count++] = name;
        }
    }
    /* The number in front of the directory makes room for the end behind it. */
    memmove(body, body + LENGTH_BYTES, directory_length);
    body[directory_length] = '\0';
    *out_passage = (struct standby_passage){body, environment};
    return 0;
}
