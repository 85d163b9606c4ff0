/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Noreturn void give_up(const char *path) {
    perror(path);
    exit(1);
}

void checkpoint_save(const struct checkpoint *checkpoint, const char *path) {
    char temporary[4096];
    if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary)) {
        errno = ENAMETOOLONG;
        give_up(path);
    }
    FILE *file = fopen(temporary, "wb");
    if (file == NULL || fwrite(checkpoint, sizeof(*checkpoint), 1, file) != 1 ||
        fflush(file) != 0 || fsync(fileno(file)) != 0 || fclose(file) != 0 ||
        rename(temporary, path) != 0) {
        give_up(path);
    }
}

void checkpoint_load_or_init(struct checkpoint *out_checkpoint, const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL && errno == ENOENT) {
        out_checkpoint->step = 0;
        model_init(out_checkpoint->parameters);
        return;
    }
    if (file == NULL || fread(out_checkpoint, sizeof(*out_checkpoint), 1, file) != 1) {
        give_up(path);
    }
    fclose(file);
}
