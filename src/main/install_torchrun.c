/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/install_torchrun.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "main/exit_status.h"

static const char usage[] =
    "usage: muster install-torchrun DIRECTORY\n"
    "\n"
    "Links DIRECTORY/torchrun to this program, which is `muster run` under that name, and says\n"
    "which torchrun comes first in PATH. A torchrun that is there already is left as it is.\n";

static bool is_same_file(const char *left, const char *right) {
    struct stat left_status, right_status;
    return stat(left, &left_status) == 0 && stat(right, &right_status) == 0 &&
           left_status.st_dev == right_status.st_dev && left_status.st_ino == right_status.st_ino;
}

/* The first torchrun that a shell finds, for the caller to free; NULL when there is none. */
static char *first_in_path(const char *path) {
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        char *file = text_format("%.*s/torchrun", (int)length, length > 0 ? path : ".");
        if (access(file, X_OK) == 0) {
            return file;
        }
        free(file);
        path += length + (path[length] == ':');
    }
    return NULL;
}

static void say_what_a_shell_finds(const char *link, const char *directory, const char *path) {
    char *first = first_in_path(path);
    if (first == NULL) {
        printf("%s is not in PATH: add it, or call %s\n", directory, link);
    } else if (is_same_file(first, link)) {
        printf("torchrun is now Muster: %s is the first in PATH\n", first);
    } else {
        printf(
            "%s still comes first in PATH: put %s before it, or call %s\n", first, directory, link);
    }
    free(first);
}

/* Whether the link is there now. */
static bool make_link(const char *program, const char *link) {
    if (symlink(program, link) == 0) {
        printf("%s -> %s\n", link, program);
        return true;
    }
    if (errno == EEXIST && is_same_file(link, program)) {
        printf("%s is this program already\n", link);
        return true;
    }
    if (errno == EEXIST) {
        fprintf(stderr,
            "muster install-torchrun: error: %s is there already, and is another program: remove "
            "it, or name another directory\n",
            link);
    } else {
        fprintf(stderr, "muster install-torchrun: error: cannot make the link %s: %s\n", link,
            strerror(errno));
    }
    return false;
}

static int install_into(const char *directory, const char *path) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) {
        fprintf(stderr,
            "muster install-torchrun: error: cannot find out where this program is "
            "(/proc/self/exe: "
            "%s): link it yourself, with ln -s\n",
            strerror(errno));
        return EXIT_FAILURE;
    }
    program[length] = '\0';
    char *link = text_format("%s/torchrun", directory);
    bool is_linked = make_link(program, link);
    if (is_linked) {
        say_what_a_shell_finds(link, directory, path);
    }
    free(link);
    return is_linked ? EXIT_SUCCESS : EXIT_FAILURE;
}

int install_torchrun_command(
    const struct text_list *arguments, const struct text_list *environment) {
    const char *directory = arguments->count == 1 ? arguments->items[0] : NULL;
    if (directory != NULL && (text_equals(directory, "--help") || text_equals(directory, "-h"))) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    if (directory == NULL || directory[0] == '\0' || directory[0] == '-') {
        fprintf(stderr,
            "muster install-torchrun: error: expected one directory (for example ~/bin)\n%s",
            usage);
        return EXIT_STATUS_USAGE;
    }
    return install_into(directory, text_list_variable(environment, "PATH"));
}
