/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/temporary_directory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PLACE "/tmp"
#define WORKING_DIRECTORY "."

static const char *const variables[] = {"TMPDIR", "TEMP", "TMP"};
static const char *const places[] = {DEFAULT_PLACE, "/var/tmp", "/usr/tmp", WORKING_DIRECTORY};

static const char *variable(const struct text_list *environment, const char *name) {
    const char *value = environment == NULL ? getenv(name) : text_list_variable(environment, name);
    return value == NULL || *value == '\0' ? NULL : value;
}

const char *temporary_directory_candidate(const struct text_list *environment, size_t index) {
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = variable(environment, variables[i]);
        if (value != NULL && index == 0) {
            return value;
        }
        index -= value != NULL ? 1 : 0;
    }
    return index < sizeof places / sizeof *places ? places[index] : NULL;
}

const char *temporary_directory_usable(const struct text_list *environment) {
    const char *path;
    for (size_t i = 0; (path = temporary_directory_candidate(environment, i)) != NULL; i++) {
        if (strcmp(path, WORKING_DIRECTORY) != 0 && access(path, W_OK | X_OK) == 0) {
            return path;
        }
    }
    return DEFAULT_PLACE;
}
