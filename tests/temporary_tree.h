/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory of a test's own, with files in it, gone afterwards. */
#ifndef MUSTER_TESTS_TEMPORARY_TREE_H
#define MUSTER_TESTS_TEMPORARY_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "base/text.h"

struct temporary_tree {
    char root[64];
};

static inline void temporary_tree_init(struct temporary_tree *tree) {
    (void)snprintf(tree->root, sizeof tree->root, "/tmp/muster_test_XXXXXX");
    assert_non_null(mkdtemp(tree->root));
}

static inline int temporary_tree_remove_entry(
    const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static inline void temporary_tree_clear(struct temporary_tree *tree) {
    assert_int_equal(nftw(tree->root, temporary_tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A path below the root; the caller frees it. */
static inline char *temporary_tree_path(const struct temporary_tree *tree, const char *name) {
    return text_format("%s/%s", tree->root, name);
}

/* Makes the directories above `name`. */
static inline void temporary_tree_make_parents(
    const struct temporary_tree *tree, const char *name) {
    char *path = temporary_tree_path(tree, name);
    for (char *slash = path + strlen(tree->root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755); /* may be there already; what matters fails below */
        *slash = '/';
    }
    free(path);
}

static inline void temporary_tree_write_bytes(
    const struct temporary_tree *tree, const char *name, const void *data, size_t length) {
    temporary_tree_make_parents(tree, name);
    char *path = temporary_tree_path(tree, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static inline void temporary_tree_write(
    const struct temporary_tree *tree, const char *name, const char *content) {
    temporary_tree_write_bytes(tree, name, content, strlen(content));
}

static inline void temporary_tree_link(
    const struct temporary_tree *tree, const char *name, const char *target) {
    temporary_tree_make_parents(tree, name);
    char *path = temporary_tree_path(tree, name);
    assert_int_equal(symlink(target, path), 0);
    free(path);
}

/* Whether something (a link too) is there. */
static inline bool temporary_tree_has(const struct temporary_tree *tree, const char *name) {
    char *path = temporary_tree_path(tree, name);
    struct stat status;
    bool has = lstat(path, &status) == 0;
    free(path);
    return has;
}

/* A test that is given such a directory. */
#define TREE_TEST(name)                                                                            \
    TEST_OF(temporary_tree, name, temporary_tree_init(&fixture), temporary_tree_clear)

#endif
