/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz harness over every file of the given directories, without a fuzzer. So each corpus is
 * a regression test under any compiler. An empty or missing directory is an error. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_file(const char *path, struct bytes *out) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    size_t count = 0;
    do {
        if (bytes_reserve(out, 65536) != FAILURE_NONE) {
            break;
        }
        count = fread(out->data + out->length, 1, 65536, file);
        out->length += count;
    } while (count > 0);
    bool is_read = ferror(file) == 0;
    (void)fclose(file);
    return is_read;
}

static bool replay_file(const char *path) {
    struct bytes contents = {0};
    if (!read_file(path, &contents)) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        bytes_clear(&contents);
        return false;
    }
    /* In a copy of exactly this size, the sanitizers notice a read past its end. */
    uint8_t *data = memory_duplicate(contents.data, contents.length);
    (void)LLVMFuzzerTestOneInput(data, contents.length);
    free(data);
    bytes_clear(&contents);
    return true;
}

/* Returns the number of files that were run, or -1. */
static int replay_directory(const char *directory) {
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        (void)fprintf(stderr, "%s: cannot be opened\n", directory);
        return -1;
    }
    int count = 0;
    struct dirent *item;
    while ((item = readdir(stream)) != NULL) {
        if (item->d_name[0] == '.') {
            continue;
        }
        char *path = text_format("%s/%s", directory, item->d_name);
        bool is_done = replay_file(path);
        free(path);
        if (!is_done) {
            count = -1;
            break;
        }
        count++;
    }
    (void)closedir(stream);
    return count;
}

int main(int argument_count, char **arguments) {
    for (int i = 1; i < argument_count; i++) {
        int count = replay_directory(arguments[i]);
        if (count <= 0) {
            (void)fprintf(stderr, "%s: no inputs were run\n", arguments[i]);
            return EXIT_FAILURE;
        }
        (void)printf("%s: %d inputs\n", arguments[i], count);
    }
    return argument_count > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
