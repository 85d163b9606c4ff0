/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PATH_VARIABLE "PYTHONPATH"
#define ERROR_FILE_VARIABLE "TORCHELASTIC_ERROR_FILE"
#define MARK_VARIABLE "MUSTER_WORKER"

/* What worker_environment sets from the place of the node in a round. */
static const char *const round_names[] = {"RANK", "WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
    "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"};

static bool is_named(const char *entry, const char *name) {
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_of_round(const char *entry) {
    for (size_t i = 0; i < sizeof round_names / sizeof *round_names; i++) {
        if (is_named(entry, round_names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_said_to_another(const char *entry) {
    return is_named(entry, STANDBY_VARIABLE) || is_named(entry, PROGRESS_VARIABLE);
}

static void drop(struct text_list *environment, bool (*is_unwanted)(const char *entry)) {
    struct text_list kept = {0};
    for (size_t i = 0; i < environment->count; i++) {
        if (!is_unwanted(environment->items[i])) {
            text_list_add(&kept, environment->items[i]);
        }
    }
    text_list_clear(environment);
    *environment = kept;
}

static bool is_of_rank(const char *entry) {
    return is_named(entry, "LOCAL_RANK");
}

void standby_environment_drop_rank(struct text_list *environment) {
    drop(environment, is_of_rank);
}

void standby_environment_undress(struct text_list *environment) {
    if (text_list_variable(environment, STANDBY_VARIABLE) != NULL ||
        text_list_variable(environment, PROGRESS_VARIABLE) != NULL) {
        drop(environment, is_said_to_another);
    }
}

static const char *name_of_role(enum standby_role role) {
    static const char *const names[] = {
        [STANDBY_RECORD] = "record", [STANDBY_SPARE] = "spare", [STANDBY_STEPS] = "steps"};
    return names[role];
}

void standby_environment_dress(struct text_list *environment, const struct standby_dress *dress) {
    const char *path = text_list_variable(environment, PATH_VARIABLE);
    bool had_path = path != NULL;
    struct text value = {0};
    text_append_format(
        &value, "fd=3;role=%s;pythonpath=%d", name_of_role(dress->role), had_path ? 1 : 0);
    if (dress->evidence_signal != 0 && dress->hook_directory != NULL) {
        text_append_format(&value, ";signal=%d", dress->evidence_signal);
    }
    if (dress->role == STANDBY_SPARE) {
        text_append_format(&value, ";rest=%g%s", dress->rest, dress->is_alone ? ";alone=1" : "");
        drop(environment, is_of_round);
    }
    if (dress->parent_of != 0) {
        text_append_format(&value, ";parent=%d", dress->parent_of);
        standby_environment_drop_rank(environment);
    }
    if (dress->hook_directory != NULL) {
        path = text_list_variable(environment, PATH_VARIABLE);
        char *paths = path == NULL ? text_format("%s", dress->hook_directory)
                                   : text_format("%s:%s", dress->hook_directory, path);
        text_list_set_variable(environment, PATH_VARIABLE, paths);
        free(paths);
    }
    text_list_set_variable(environment, STANDBY_VARIABLE, text_string(&value));
    text_clear(&value);
}

/* The error file is another one in each attempt, and nothing reads its name early. A worker without
 * one has a mark in its place. */
static bool is_free_to_differ(const char *entry) {
    return is_of_round(entry) || is_named(entry, ERROR_FILE_VARIABLE) ||
           is_named(entry, MARK_VARIABLE);
}

static int compare_entries(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorted, and borrowed from the list; the caller frees the array. */
static const char **list_lasting(const struct text_list *environment, size_t *out_count) {
    const char **entries = memory_allocate((environment->count + 1) * sizeof *entries);
    *out_count = 0;
    for (size_t i = 0; i < environment->count; i++) {
        if (!is_free_to_differ(environment->items[i])) {
            entries[(*out_count)++] = environment->items[i];
        }
    }
    qsort(entries, *out_count, sizeof *entries, compare_entries);
    return entries;
}

static const char *first_difference(
    const char **before, size_t before_count, const char **now, size_t now_count) {
    for (size_t i = 0; i < before_count && i < now_count; i++) {
        int order = strcmp(before[i], now[i]);
        if (order != 0) {
            return order < 0 ? before[i] : now[i];
        }
    }
    if (before_count == now_count) {
        return NULL;
    }
    return before_count > now_count ? before[now_count] : now[before_count];
}

const char *standby_environment_difference(
    const struct text_list *before, const struct text_list *now) {
    size_t before_count;
    size_t now_count;
    const char **old = list_lasting(before, &before_count);
    const char **new = list_lasting(now, &now_count);
    const char *difference = first_difference(old, before_count, new, now_count);
    free((void *)old);
    free((void *)new);
    return difference;
}
