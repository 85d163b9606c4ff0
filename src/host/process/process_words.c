/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_words.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/number_directory.h"

/* Of a command line, for people. */
#define COMMAND_SHOWN 100

size_t process_words_read(pid_t pid, const char *file, char *buffer, size_t size) {
    char path[NUMBER_PATH_SIZE];
    size_t used = 0;
    number_path_format(path, "/proc/", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length;
    while (used < size && (length = read(fd, buffer + used, size - used)) > 0) {
        used += (size_t)length;
    }
    close(fd);
    return used;
}

const char *process_words_variable(
    const char *start, const char *environment, size_t length, size_t *out_rest_length) {
    size_t start_length = strlen(start);
    for (size_t offset = 0; offset < length;) {
        size_t entry_length = strnlen(environment + offset, length - offset);
        if (entry_length >= start_length &&
            memcmp(environment + offset, start, start_length) == 0) {
            *out_rest_length = entry_length - start_length;
            return environment + offset + start_length;
        }
        offset += entry_length + 1;
    }
    return NULL;
}

bool process_words_find(pid_t pid, const char *start, char *out_rest, size_t size) {
    char *environment = memory_allocate(PROCESS_WORDS_ENVIRONMENT_CEILING);
    size_t length =
        process_words_read(pid, "/environ", environment, PROCESS_WORDS_ENVIRONMENT_CEILING);
    size_t rest_length = 0;
    const char *rest = process_words_variable(start, environment, length, &rest_length);
    if (rest != NULL) {
        size_t copied = rest_length < size - 1 ? rest_length : size - 1;
        memcpy(out_rest, rest, copied);
        out_rest[copied] = '\0';
    }
    free(environment);
    return rest != NULL;
}

/* A character of several bytes is left whole. */
static size_t cut(const char *words, size_t length) {
    if (length <= COMMAND_SHOWN) {
        return length;
    }
    length = COMMAND_SHOWN;
    while (length > 0 && ((unsigned char)words[length] & 0xc0) == 0x80) {
        length--;
    }
    return length;
}

char *process_words_command(pid_t pid) {
    char words[COMMAND_SHOWN + 1];
    struct text command = {0};
    size_t length = process_words_read(pid, "/cmdline", words, sizeof words);
    while (length > 0 && words[length - 1] == '\0') {
        length--;
    }
    if (length == 0) {
        length = process_words_read(pid, "/comm", words, sizeof words);
        length -= length > 0; /* the newline */
    }
    size_t shown = cut(words, length);
    for (size_t i = 0; i < shown; i++) {
        bool is_printable = (unsigned char)words[i] > ' ' && words[i] != 0x7f;
        text_append_bytes(&command, is_printable ? &words[i] : " ", 1);
    }
    text_append(&command, length == 0 ? "?" : shown < length ? "…" : "");
    return text_take(&command);
}
