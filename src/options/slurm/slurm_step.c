/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/slurm/slurm_step.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define HOSTLIST_MAXIMUM_LENGTH (1 << 20)
#define HOSTLIST_MAXIMUM_DIGITS 9
#define HOSTLIST_MAXIMUM_BRACKETS 8

/* One walk over a list. The names of an item with brackets are made one after the other: each
 * bracket appends a number to the name and goes on behind itself. */
struct walk {
    const char *end; /* of the item */
    struct text name;
    int brackets; /* that the walk is in */
    struct text_list *hosts;
};

static enum failure_code walk_item(struct walk *walk, const char *from);

/* What a host's name consists of. */
static bool is_name_character(char character) {
    return text_is_digit(character) || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || character == '-' || character == '_' ||
           character == '.';
}

static enum failure_code add_host(struct walk *walk) {
    if (walk->name.length == 0) {
        return FAILURE_MALFORMED;
    }
    if (walk->hosts->count >= HOSTLIST_MAXIMUM_HOSTS) {
        return FAILURE_LIMIT;
    }
    text_list_add(walk->hosts, text_string(&walk->name));
    return FAILURE_NONE;
}

static enum failure_code append_to_name(struct walk *walk, const char *from, size_t length) {
    if (walk->name.length + length > HOSTLIST_MAXIMUM_NAME) {
        return FAILURE_LIMIT;
    }
    text_append_bytes(&walk->name, from, length);
    return FAILURE_NONE;
}

static void shorten_name(struct walk *walk, size_t length) {
    if (walk->name.data != NULL) {
        walk->name.data[length] = '\0';
    }
    walk->name.length = length;
}

/* The name with each number from `first` to `last`, and with what comes behind the bracket. */
static enum failure_code walk_numbers(
    struct walk *walk, long first, long last, int width, const char *behind) {
    size_t length = walk->name.length;
    for (long number = first; number <= last; number++) {
        char *digits = text_format("%0*ld", width, number);
        enum failure_code code = append_to_name(walk, digits, strlen(digits));
        free(digits);
        code = code == FAILURE_NONE ? walk_item(walk, behind) : code;
        shorten_name(walk, length);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    return FAILURE_NONE;
}

/* Reads a number and moves behind it. */
static enum failure_code take_number(
    const char **position, const char *end, long *out_number, int *out_width) {
    long number = 0;
    int width = 0;
    while (*position < end && text_is_digit(**position)) {
        if (++width > HOSTLIST_MAXIMUM_DIGITS) {
            return FAILURE_LIMIT;
        }
        number = number * 10 + (**position - '0');
        (*position)++;
    }
    *out_number = number;
    *out_width = width;
    return width == 0 ? FAILURE_MALFORMED : FAILURE_NONE;
}

/* Reads "7" or "007-012" and moves behind it. As in Slurm, the digits of the first number say how
 * many all have. */
static enum failure_code take_range(
    const char **position, const char *end, long *out_first, long *out_last, int *out_width) {
    int ignored;
    enum failure_code code = take_number(position, end, out_first, out_width);
    *out_last = *out_first;
    if (code == FAILURE_NONE && *position < end && **position == '-') {
        (*position)++;
        code = take_number(position, end, out_last, &ignored);
    }
    return code == FAILURE_NONE && *out_last < *out_first ? FAILURE_MALFORMED : code;
}

/* `position` is behind the opening bracket. */
static enum failure_code walk_bracket(struct walk *walk, const char *position) {
    const char *close = memchr(position, ']', (size_t)(walk->end - position));
    if (close == NULL) {
        return FAILURE_MALFORMED;
    }
    if (walk->brackets == HOSTLIST_MAXIMUM_BRACKETS) {
        return FAILURE_LIMIT;
    }
    walk->brackets++;
    enum failure_code code;
    do {
        long first;
        long last;
        int width;
        code = take_range(&position, close, &first, &last, &width);
        if (code == FAILURE_NONE && position < close && *position != ',') {
            code = FAILURE_MALFORMED;
        }
        if (code == FAILURE_NONE) {
            code = walk_numbers(walk, first, last, width, close + 1);
        }
    } while (code == FAILURE_NONE && position++ < close);
    walk->brackets--;
    return code;
}

/* Goes on with an item from here, with the name as it has become. */
static enum failure_code walk_item(struct walk *walk, const char *from) {
    const char *position = from;
    while (position < walk->end && is_name_character(*position)) {
        position++;
    }
    if (position < walk->end && *position != '[') {
        return FAILURE_MALFORMED;
    }
    size_t length = walk->name.length;
    enum failure_code code = append_to_name(walk, from, (size_t)(position - from));
    if (code == FAILURE_NONE) {
        code = position == walk->end ? add_host(walk) : walk_bracket(walk, position + 1);
    }
    shorten_name(walk, length);
    return code;
}

/* The end of the item that begins here: a comma outside of brackets, or the end of the text. */
static const char *end_of_item(const char *item) {
    bool is_in_bracket = false;
    while (*item != '\0' && (is_in_bracket || *item != ',')) {
        is_in_bracket = *item == '[' || (is_in_bracket && *item != ']');
        item++;
    }
    return item;
}

enum failure_code hostlist_expand(const char *text, struct text_list *out_hosts) {
    struct text_list hosts = {0};
    struct walk walk = {.hosts = &hosts};
    enum failure_code code = FAILURE_NONE;
    if (strlen(text) > HOSTLIST_MAXIMUM_LENGTH) {
        return FAILURE_LIMIT;
    }
    const char *item = text;
    do {
        walk.end = end_of_item(item);
        code = walk_item(&walk, item);
        item = walk.end + 1;
    } while (code == FAILURE_NONE && *walk.end == ',');
    text_clear(&walk.name);
    if (code == FAILURE_NONE) {
        text_list_add_all(out_hosts, &hosts);
    }
    text_list_clear(&hosts);
    return code;
}

/* Step. */

#define LONGEST_TASK_LIST (1 << 16)
/* More digits than any count or number of Slurm has: they have 32 bits. */
#define LONGEST_NUMBER 10
#define QUOTED_LENGTH 100

/* Digits alone: a sign, blanks and underscores, which Python's int() takes, are not Slurm's. */
static bool read_number(const char *text, int64_t *out_number) {
    size_t length = text == NULL ? 0 : strlen(text);
    if (length == 0 || length > LONGEST_NUMBER || strspn(text, "0123456789") != length) {
        return false;
    }
    return text_parse_integer(text, out_number) == FAILURE_NONE;
}

/* The value of the first of two variables that is there: newer versions of Slurm have new names. */
static const char *variable_of(
    const struct text_list *environment, const char *name, const char *older_name) {
    const char *value = text_list_variable(environment, name);
    return value == NULL ? text_list_variable(environment, older_name) : value;
}

static int64_t count_of(
    const struct text_list *environment, const char *name, const char *older_name) {
    int64_t count = 0;
    (void)read_number(variable_of(environment, name, older_name), &count);
    return count;
}

int64_t slurm_step_node_count(const struct text_list *environment) {
    return count_of(environment, "SLURM_STEP_NUM_NODES", "SLURM_STEP_NUM_NODES");
}

int64_t slurm_job_node_count(const struct text_list *environment) {
    return count_of(environment, "SLURM_JOB_NUM_NODES", "SLURM_NNODES");
}

bool slurm_job_is_heterogeneous(const struct text_list *environment) {
    return count_of(environment, "SLURM_HET_SIZE", "SLURM_PACK_SIZE") > 1;
}

/* Reads "2" or "2(x3)" and moves behind it. */
static bool take_tasks(const char **position, int64_t *out_tasks) {
    char number[LONGEST_NUMBER + 1] = {0};
    size_t length = strspn(*position, "0123456789");
    if (length > LONGEST_NUMBER) {
        return false;
    }
    memcpy(number, *position, length);
    *position += length;
    if (text_starts_with(*position, "(x")) {
        size_t digits = strspn(*position + 2, "0123456789");
        if (digits == 0 || (*position)[2 + digits] != ')') {
            return false;
        }
        *position += 2 + digits + 1;
    }
    return read_number(number, out_tasks);
}

/* The largest number in "2(x3),1", Slurm's short form of how many tasks each node has, of at most
 * 64 KiB. FAILURE_MALFORMED for other text. */
static enum failure_code slurm_parse_tasks(const char *text, int64_t *out_largest) {
    int64_t largest = 0;
    if (strlen(text) > LONGEST_TASK_LIST) {
        return FAILURE_MALFORMED;
    }
    for (const char *position = text;; position++) {
        int64_t tasks;
        if (!take_tasks(&position, &tasks) || (*position != ',' && *position != '\0')) {
            return FAILURE_MALFORMED;
        }
        largest = tasks > largest ? tasks : largest;
        if (*position == '\0') {
            *out_largest = largest;
            return FAILURE_NONE;
        }
    }
}

/* A variable that cannot be used: its value, cut where it is long, and what was expected. */
static enum failure_code refuse(
    struct text *reason, const char *name, const char *value, const char *expected) {
    if (value == NULL) {
        text_append_format(reason, "%s is not set: expected %s", name, expected);
    } else {
        text_append_format(reason, "%s='%.*s%s' cannot be used: expected %s", name, QUOTED_LENGTH,
            value, strlen(value) > QUOTED_LENGTH ? "…" : "", expected);
    }
    return FAILURE_INVALID;
}

static enum failure_code read_numbers(
    const struct text_list *environment, struct slurm_step *step, struct text *reason) {
    const char *job = variable_of(environment, "SLURM_JOB_ID", "SLURM_JOBID");
    const char *number = variable_of(environment, "SLURM_STEP_ID", "SLURM_STEPID");
    if (!read_number(job, &step->job)) {
        return refuse(reason, "SLURM_JOB_ID", job, "the number of the job");
    }
    if (!read_number(number, &step->step)) {
        return refuse(reason, "SLURM_STEP_ID", number, "the number of the step");
    }
    return FAILURE_NONE;
}

static enum failure_code read_hosts(
    const struct text_list *environment, struct slurm_step *step, struct text *reason) {
    static const char name[] = "SLURM_STEP_NODELIST";
    const char *list = text_list_variable(environment, name);
    if (list == NULL || hostlist_expand(list, &step->hosts) != FAILURE_NONE) {
        return refuse(reason, name, list, "the names of the nodes, as in node[1-4]");
    }
    if ((int64_t)step->hosts.count != slurm_step_node_count(environment)) {
        char *expected = text_format("%lld names, as SLURM_STEP_NUM_NODES says",
            (long long)slurm_step_node_count(environment));
        enum failure_code code = refuse(reason, name, list, expected);
        free(expected);
        return code;
    }
    step->node_list = memory_duplicate_string(list);
    return FAILURE_NONE;
}

static enum failure_code read_tasks(
    const struct text_list *environment, struct slurm_step *step, struct text *reason) {
    static const char name[] = "SLURM_STEP_TASKS_PER_NODE";
    const char *tasks = text_list_variable(environment, name);
    if (tasks == NULL) {
        bool is_one_node = slurm_step_node_count(environment) == 1;
        const char *asked_by = is_one_node ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS_PER_NODE";
        int64_t asked = count_of(environment, asked_by, asked_by);
        step->tasks_per_node = asked == 0 ? 1 : asked;
        return FAILURE_NONE;
    }
    return slurm_parse_tasks(tasks, &step->tasks_per_node) == FAILURE_NONE
               ? FAILURE_NONE
               : refuse(reason, name, tasks, "numbers of tasks, as in 1(x4)");
}

enum failure_code slurm_step_read(
    const struct text_list *environment, struct slurm_step *out_step, struct text *out_reason) {
    *out_step = (struct slurm_step){0};
    enum failure_code code = read_tasks(environment, out_step, out_reason);
    if (code == FAILURE_NONE) {
        code = read_numbers(environment, out_step, out_reason);
    }
    if (code == FAILURE_NONE) {
        code = read_hosts(environment, out_step, out_reason);
    }
    const char *node = text_list_variable(environment, "SLURMD_NODENAME");
    out_step->node = node == NULL || *node == '\0' ? NULL : memory_duplicate_string(node);
    out_step->gpus = count_of(environment, "SLURM_GPUS_ON_NODE", "SLURM_GPUS_ON_NODE");
    return code;
}

void slurm_step_clear(struct slurm_step *step) {
    text_list_clear(&step->hosts);
    free(step->node_list);
    free(step->node);
    *step = (struct slurm_step){0};
}
