/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/node_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Names. */

/* "gpu-n052.example": what is before its number, the number, and what is behind. */
struct name_parts {
    const char *name;
    size_t before;
    size_t digits; /* 0: it has no number */
    uint64_t number;
};

#define DIGITS_MAXIMUM 18

static bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

/* The last number of the host's own name; that of an address is its last one. */
static struct name_parts split_name(const char *name) {
    struct name_parts parts = {.name = name};
    size_t end = strspn(name, "0123456789.") == strlen(name) ? strlen(name) : strcspn(name, ".");
    while (end > 0 && !is_digit(name[end - 1])) {
        end--;
    }
    size_t start = end;
    while (start > 0 && is_digit(name[start - 1]) && end - start < DIGITS_MAXIMUM) {
        start--;
    }
    parts.before = start;
    parts.digits = end - start;
    for (size_t i = start; i < end; i++) {
        parts.number = parts.number * 10 + (uint64_t)(name[i] - '0');
    }
    return parts;
}

static const char *behind(const struct name_parts *parts) {
    return parts->name + parts->before + parts->digits;
}

static int compare_family(const struct name_parts *one, const struct name_parts *other) {
    size_t shorter = one->before < other->before ? one->before : other->before;
    int order = memcmp(one->name, other->name, shorter);
    if (order == 0) {
        order = (one->before > other->before) - (one->before < other->before);
    }
    return order != 0 ? order : strcmp(behind(one), behind(other));
}

static int compare_names(const char *left, const char *right) {
    struct name_parts one = split_name(left);
    struct name_parts other = split_name(right);
    int order = compare_family(&one, &other);
    if (order == 0) {
        order = (one.number > other.number) - (one.number < other.number);
    }
    if (order == 0) {
        order = (one.digits > other.digits) - (one.digits < other.digits);
    }
    return order != 0 ? order : strcmp(left, right);
}

/* Whether `next` is the number after that of `last`, written with as many digits. */
static bool follows(const struct name_parts *last, const struct name_parts *next) {
    bool is_longer = next->digits == last->digits + 1 && next->name[next->before] != '0';
    return last->digits > 0 && next->digits > 0 && compare_family(last, next) == 0 &&
           next->number == last->number + 1 && (next->digits == last->digits || is_longer);
}

static struct name_parts parts_at(
    const struct chronicle_status *status, const struct node_group *group, size_t index) {
    return split_name(status->nodes[group->members[index]].name);
}

static void append_number(const struct name_parts *parts, struct text *out) {
    text_append_format(out, "%.*s", (int)parts->digits, parts->name + parts->before);
}

/* The range that begins at `from`: the first after it. */
static size_t append_range(const struct chronicle_status *status, const struct node_group *group,
    size_t from, struct text *out) {
    struct name_parts first = parts_at(status, group, from);
    struct name_parts last = first;
    size_t next = from + 1;
    while (next < group->count) {
        struct name_parts parts = parts_at(status, group, next);
        if (!follows(&last, &parts)) {
            break;
        }
        last = parts;
        next++;
    }
    append_number(&first, out);
    if (next > from + 1) {
        text_append(out, "-");
        append_number(&last, out);
    }
    return next;
}

/* How many of a family there are from `from` on. */
static size_t family_size(
    const struct chronicle_status *status, const struct node_group *group, size_t from) {
    struct name_parts first = parts_at(status, group, from);
    size_t next = from + 1;
    while (first.digits > 0 && next < group->count) {
        struct name_parts parts = parts_at(status, group, next);
        if (parts.digits == 0 || compare_family(&first, &parts) != 0) {
            break;
        }
        next++;
    }
    return next - from;
}

void node_groups_append_names(const struct chronicle_status *status, const struct node_group *group,
    size_t most, struct text *out) {
    size_t ranges = 0;
    size_t next = 0;
    while (next < group->count && ranges < most) {
        size_t end = next + family_size(status, group, next);
        struct name_parts first = parts_at(status, group, next);
        bool is_single = end == next + 1;
        text_append_format(out, "%s%.*s%s", next > 0 ? "," : "", (int)first.before, first.name,
            is_single ? "" : "[");
        size_t begin = next;
        while (next < end && (is_single || ranges < most)) {
            text_append(out, next > begin ? "," : "");
            next = append_range(status, group, next, out);
            ranges++;
        }
        text_append_format(out, "%s%s", is_single ? "" : "]", behind(&first));
    }
    if (next < group->count) {
        text_append_format(out, " and %zu more", group->count - next);
    }
}

/* Groups. */

static bool is_one_group(const struct chronicle_node *one, const struct chronicle_node *other) {
    return one->state == other->state && one->failed_first == other->failed_first;
}

/* Of `qsort` no place has a context; so what is sorted has it. */
struct placed {
    const struct chronicle_node *node;
    size_t place;
};

static int compare_placed(const void *left, const void *right) {
    const struct chronicle_node *one = ((const struct placed *)left)->node;
    const struct chronicle_node *other = ((const struct placed *)right)->node;
    if (one->state != other->state) {
        return one->state > other->state ? -1 : 1; /* the lost ones first */
    }
    if (one->failed_first != other->failed_first) {
        return one->failed_first > other->failed_first ? -1 : 1;
    }
    return compare_names(one->name, other->name);
}

/* The smallest first; where they are equal, as they are. */
static void sort_groups(struct node_groups *groups) {
    for (size_t i = 1; i < groups->count; i++) {
        struct node_group moved = groups->groups[i];
        size_t at = i;
        while (at > 0 && groups->groups[at - 1].count > moved.count) {
            groups->groups[at] = groups->groups[at - 1];
            at--;
        }
        groups->groups[at] = moved;
    }
}

static void add(struct node_groups *groups, const struct placed *placed, bool is_new) {
    if (is_new && groups->count < NODE_GROUPS_MAXIMUM) {
        groups->groups[groups->count] = (struct node_group){.state = placed->node->state,
            .failed_first = placed->node->failed_first,
            .said = placed->node->said};
        groups->count++;
    } else if (is_new) {
        groups->groups[groups->count - 1].is_mixed = true;
    }
    struct node_group *group = &groups->groups[groups->count - 1];
    group->count++;
    if (placed->node->said.nanoseconds < group->said.nanoseconds) {
        group->said = placed->node->said;
    }
}

void node_groups_make(const struct chronicle_status *status, struct node_groups *out_groups) {
    size_t count = status->known_nodes;
    struct placed *all = memory_allocate((count + 1) * sizeof *all);
    *out_groups = (struct node_groups){.places = memory_allocate((count + 1) * sizeof(size_t))};
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct placed){&status->nodes[i], i};
    }
    if (count > 1) {
        qsort(all, count, sizeof *all, compare_placed);
    }
    for (size_t i = 0; i < count; i++) {
        add(out_groups, &all[i], i == 0 || !is_one_group(all[i - 1].node, all[i].node));
        out_groups->places[i] = all[i].place;
    }
    size_t place = 0;
    for (size_t i = 0; i < out_groups->count; i++) {
        out_groups->groups[i].members = out_groups->places + place;
        place += out_groups->groups[i].count;
    }
    sort_groups(out_groups);
    free(all);
}

void node_groups_clear(struct node_groups *groups) {
    free(groups->places);
    *groups = (struct node_groups){0};
}
