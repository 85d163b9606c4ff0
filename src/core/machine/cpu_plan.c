/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/machine/cpu_plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "base/utf8.h"

/* The most devices of a machine. Every device index is smaller. */
#define VISIBLE_DEVICES_CEILING 4096

/* No device has a larger number. */
#define ORDINAL_CLAMP (INT64_C(1) << 40)

/* Iterates over the entries of a comma-separated list. An empty text has one empty entry. */
struct entries {
    const char *rest; /* NULL: there is no further entry */
};

static struct slice next_entry(struct entries *entries) {
    const char *start = entries->rest;
    const char *comma = strchr(start, ',');
    entries->rest = comma != NULL ? comma + 1 : NULL;
    size_t length = comma != NULL ? (size_t)(comma - start) : strlen(start);
    return (struct slice){.data = (const uint8_t *)start, .length = length};
}

/* The number at the start of an entry; -1 when there is none or it is negative. */
static int64_t ordinal_at_start(struct slice entry) {
    size_t i = 0;
    while (i < entry.length &&
           (entry.data[i] == ' ' || (entry.data[i] >= '\t' && entry.data[i] <= '\r'))) {
        i++;
    }
    if (i < entry.length && entry.data[i] == '+') {
        i++;
    }
    int64_t ordinal = -1;
    for (; i < entry.length && text_is_digit(entry.data[i]); i++) {
        ordinal = (ordinal < 0 ? 0 : ordinal) * 10 + (entry.data[i] - '0');
        if (ordinal > ORDINAL_CLAMP) {
            ordinal = ORDINAL_CLAMP;
        }
    }
    return ordinal;
}

/* The one device whose UUID starts with the entry; -1 when there is none or several. */
static int64_t ordinal_of_uuid(struct slice entry, const struct text_list *uuids) {
    int64_t ordinal = -1;
    for (size_t i = 0; i < uuids->count; i++) {
        if (slice_starts_with(slice_from_string(uuids->items[i]), entry)) {
            if (ordinal >= 0) {
                return -1;
            }
            ordinal = (int64_t)i;
        }
    }
    return ordinal;
}

/* Remembers the key. Returns false when the key was remembered already. */
static bool remember(struct table *seen, struct slice key) {
    if (table_get(seen, key) != NULL) {
        return false;
    }
    table_put(seen, key, seen); /* any pointer but NULL will do */
    return true;
}

static bool remember_ordinal(struct table *seen, int64_t ordinal) {
    return remember(
        seen, (struct slice){.data = (const uint8_t *)&ordinal, .length = sizeof ordinal});
}

/* PyTorch reads the whole list before it compares it with the devices. So an entry that names no
 * device ends the list of visible devices, but a repeated entry after it still means that no device
 * is visible. */
static void select_ordinals(
    const char *value, size_t physical_count, struct visible_devices *visible) {
    struct table *seen = table_new(NULL);
    struct entries entries = {.rest = value};
    bool is_open = true;
    while (entries.rest != NULL) {
        int64_t ordinal = ordinal_at_start(next_entry(&entries));
        if (ordinal < 0) {
            break;
        }
        if (!remember_ordinal(seen, ordinal)) {
            visible->count = 0;
            break;
        }
        is_open = is_open && ordinal < (int64_t)physical_count;
        if (is_open) {
            visible->ordinals[visible->count++] = (int)ordinal;
        }
    }
    table_free(seen);
}

static void select_uuids(
    const char *value, const struct text_list *uuids, struct visible_devices *visible) {
    struct table *seen_entries = table_new(NULL);
    struct table *seen_ordinals = table_new(NULL);
    struct entries entries = {.rest = value};
    bool is_open = true;
    while (entries.rest != NULL) {
        struct slice entry = next_entry(&entries);
        if (!slice_starts_with(entry, slice_from_string("GPU-"))) {
            break;
        }
        int64_t ordinal = is_open ? ordinal_of_uuid(entry, uuids) : -1;
        is_open = ordinal >= 0;
        if (!remember(seen_entries, entry) ||
            (is_open && !remember_ordinal(seen_ordinals, ordinal))) {
            visible->count = 0;
            break;
        }
        if (is_open) {
            visible->ordinals[visible->count++] = (int)ordinal;
        }
    }
    table_free(seen_entries);
    table_free(seen_ordinals);
}

enum failure_code visible_devices_select(const char *value, size_t physical_count,
    const struct text_list *uuids, struct visible_devices *out_visible) {
    if (physical_count > VISIBLE_DEVICES_CEILING) {
        return FAILURE_LIMIT;
    }
    bool names_uuids = value != NULL && text_starts_with(value, "GPU-");
    if (value != NULL && text_starts_with(value, "MIG-")) {
        return FAILURE_UNSUPPORTED;
    }
    if (names_uuids && (uuids == NULL || uuids->count != physical_count)) {
        return FAILURE_MISSING;
    }
    struct visible_devices visible = {
        .ordinals = memory_allocate(physical_count * sizeof *visible.ordinals)};
    if (value == NULL) {
        for (; visible.count < physical_count; visible.count++) {
            visible.ordinals[visible.count] = (int)visible.count;
        }
    } else if (names_uuids) {
        select_uuids(value, uuids, &visible);
    } else {
        select_ordinals(value, physical_count, &visible);
    }
    *out_visible = visible;
    return FAILURE_NONE;
}

void visible_devices_clear(struct visible_devices *visible) {
    free(visible->ordinals);
    *visible = (struct visible_devices){0};
}

/* Kfd properties. */

static struct slice next_line(struct slice *rest) {
    struct slice line = {.data = rest->data};
    while (line.length < rest->length && rest->data[line.length] != '\n') {
        line.length++;
    }
    size_t used = line.length + (line.length < rest->length ? 1 : 0);
    rest->data += used;
    rest->length -= used;
    return line;
}

/* The number after "<name> ", up to the end of the line. */
static bool parse_property(struct slice line, const char *name, uint64_t *out_value) {
    size_t start = strlen(name) + 1;
    if (line.length <= start || memcmp(line.data, name, start - 1) != 0 ||
        line.data[start - 1] != ' ') {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = start; i < line.length; i++) {
        unsigned digit = (unsigned)line.data[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out_value = value;
    return true;
}

struct kfd_properties kfd_properties_parse(struct slice text) {
    struct kfd_properties properties = {0};
    const struct {
        const char *name;
        uint64_t *value;
    } known[] = {
        {"simd_count", &properties.simd_count},
        {"drm_render_minor", &properties.drm_render_minor},
        {"domain", &properties.domain},
        {"location_id", &properties.location_id},
        {"unique_id", &properties.unique_id},
    };
    while (text.length > 0) {
        struct slice line = next_line(&text);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (parse_property(line, known[i].name, known[i].value)) {
                break;
            }
        }
    }
    return properties;
}

/* Cpu plan. */

void machine_description_clear(struct machine_description *machine) {
    free(machine->cpus);
    free(machine->device_nodes);
    *machine = (struct machine_description){0};
}

/* Cpu set. */

#define WORD_BITS 64

void cpu_set_add(struct cpu_set_bits *set, int cpu) {
    set->words[cpu / WORD_BITS] |= UINT64_C(1) << (cpu % WORD_BITS);
}

bool cpu_set_has(const struct cpu_set_bits *set, int cpu) {
    if (cpu < 0 || cpu >= CPU_SET_CEILING) {
        return false;
    }
    return (set->words[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1) != 0;
}

size_t cpu_set_count(const struct cpu_set_bits *set) {
    size_t count = 0;
    for (size_t i = 0; i < CPU_SET_WORDS; i++) {
        for (uint64_t word = set->words[i]; word != 0; word &= word - 1) {
            count++;
        }
    }
    return count;
}

int cpu_set_next(const struct cpu_set_bits *set, int from) {
    for (int cpu = from; cpu < CPU_SET_CEILING; cpu++) {
        if (cpu % WORD_BITS == 0 && set->words[cpu / WORD_BITS] == 0) {
            cpu += WORD_BITS - 1;
        } else if (cpu_set_has(set, cpu)) {
            return cpu;
        }
    }
    return -1;
}

static void cpu_set_unite(struct cpu_set_bits *set, const struct cpu_set_bits *other) {
    for (size_t i = 0; i < CPU_SET_WORDS; i++) {
        set->words[i] |= other->words[i];
    }
}

static bool is_blank(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static void skip_blanks(struct slice *rest) {
    while (rest->length > 0 && is_blank(rest->data[0])) {
        rest->data++;
        rest->length--;
    }
}

/* Takes the byte if it is the next one. */
static bool take(struct slice *rest, char byte) {
    if (rest->length == 0 || rest->data[0] != (uint8_t)byte) {
        return false;
    }
    rest->data++;
    rest->length--;
    return true;
}

static enum failure_code take_number(struct slice *rest, int *out_number) {
    int number = 0;
    size_t digits = 0;
    while (rest->length > 0 && text_is_digit(rest->data[0])) {
        number = number * 10 + (rest->data[0] - '0');
        if (number >= CPU_SET_CEILING) {
            return FAILURE_LIMIT;
        }
        rest->data++;
        rest->length--;
        digits++;
    }
    if (digits == 0) {
        return FAILURE_MALFORMED;
    }
    *out_number = number;
    return FAILURE_NONE;
}

static enum failure_code take_range(struct slice *rest, struct cpu_set_bits *set) {
    int first;
    enum failure_code code = take_number(rest, &first);
    if (code != FAILURE_NONE) {
        return code;
    }
    int last = first;
    if (take(rest, '-')) {
        code = take_number(rest, &last);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    if (last < first) {
        return FAILURE_MALFORMED;
    }
    for (int cpu = first; cpu <= last; cpu++) {
        cpu_set_add(set, cpu);
    }
    return FAILURE_NONE;
}

enum failure_code cpu_set_parse(struct slice list, struct cpu_set_bits *out_set) {
    struct cpu_set_bits set = {0};
    do {
        skip_blanks(&list);
        if (list.length > 0 && list.data[0] != ',') {
            enum failure_code code = take_range(&list, &set);
            if (code != FAILURE_NONE) {
                return code;
            }
            skip_blanks(&list);
        }
    } while (take(&list, ','));
    if (list.length > 0) {
        return FAILURE_MALFORMED;
    }
    *out_set = set;
    return FAILURE_NONE;
}

/* Cpu plan. */

/* The usable CPUs of one physical core, core complex, NUMA node or socket. */
struct cpu_group {
    int node;
    int key; /* identifies what these CPUs share */
    size_t size;
    struct cpu_set_bits cpus;
};

struct cpu_groups {
    struct cpu_group *items;
    size_t count;
    size_t capacity;
};

enum group_by {
    GROUP_BY_NODE,
    GROUP_BY_PACKAGE,
    GROUP_BY_CORE,
    GROUP_BY_CACHE,
};

static int key_of(const struct machine_cpu *cpu, enum group_by by) {
    switch (by) {
    case GROUP_BY_NODE:
        return cpu->node;
    case GROUP_BY_PACKAGE:
        return cpu->package;
    case GROUP_BY_CORE:
        return cpu->core;
    case GROUP_BY_CACHE:
        break;
    }
    return cpu->cache_group;
}

static struct cpu_group *find_or_add_group(struct cpu_groups *groups, int node, int key) {
    for (size_t i = groups->count; i > 0;
         /* Neighbouring CPUs usually share a group, so the search begins at the last group. */
         i--) {
        if (groups->items[i - 1].key == key) {
            return &groups->items[i - 1];
        }
    }
    groups->items =
        memory_reserve(groups->items, &groups->capacity, groups->count + 1, sizeof *groups->items);
    struct cpu_group *group = &groups->items[groups->count++];
    *group = (struct cpu_group){.node = node, .key = key};
    return group;
}

static int compare_numbers(long left, long right) {
    return (left > right) - (left < right);
}

static int compare_by_node_and_key(const void *left, const void *right) {
    const struct cpu_group *a = left;
    const struct cpu_group *b = right;
    int order = compare_numbers(a->node, b->node);
    return order != 0 ? order : compare_numbers(a->key, b->key);
}

static int compare_by_size_and_key(const void *left, const void *right) {
    const struct cpu_group *a = left;
    const struct cpu_group *b = right;
    int order = compare_numbers((long)b->size, (long)a->size);
    return order != 0 ? order : compare_numbers(a->key, b->key);
}

static int compare_by_key(const void *left, const void *right) {
    const struct cpu_group *a = left;
    const struct cpu_group *b = right;
    return compare_numbers(a->key, b->key);
}

/* Groups the CPUs of one NUMA node, or with MACHINE_NODE_UNKNOWN those of the whole machine. The
 * groups are in the order in which ranks take them. */
static struct cpu_groups collect_groups(
    const struct machine_description *machine, int node, enum group_by by) {
    struct cpu_groups groups = {0};
    for (size_t i = 0; i < machine->cpu_count; i++) {
        const struct machine_cpu *cpu = &machine->cpus[i];
        if (node == MACHINE_NODE_UNKNOWN || cpu->node == node) {
            struct cpu_group *group = find_or_add_group(&groups, cpu->node, key_of(cpu, by));
            cpu_set_add(&group->cpus, cpu->cpu);
            group->size++;
        }
    }
    int (*compare)(const void *, const void *) = compare_by_key;
    if (by == GROUP_BY_CORE) {
        compare = compare_by_node_and_key;
    } else if (by == GROUP_BY_CACHE) {
        compare = compare_by_size_and_key;
    }
    if (groups.count > 1) {
        qsort(groups.items, groups.count, sizeof *groups.items, compare);
    }
    return groups;
}

/* The place of one worker: its position among the workers that share a part of the machine. */
struct seat {
    size_t local_rank;
    int node; /* the shared NUMA node; MACHINE_NODE_UNKNOWN: the whole machine */
    size_t position;
    size_t neighbours; /* how many workers share it, with this one */
};

static enum failure_code take_cores(const struct cpu_groups *cores, const struct seat *seat,
    struct cpu_set_bits *set, struct cpu_plan_problem *problem) {
    size_t each = cores->count / seat->neighbours;
    size_t extra = cores->count % seat->neighbours;
    if (each == 0) {
        *problem = (struct cpu_plan_problem){.trouble = CPU_PLAN_TOO_FEW_CORES,
            .local_rank = seat->local_rank,
            .node = seat->node,
            .available = cores->count,
            .wanted = seat->neighbours};
        return FAILURE_INVALID;
    }
    size_t start = seat->position * each + (seat->position < extra ? seat->position : extra);
    size_t end = start + each + (seat->position < extra ? 1 : 0);
    for (size_t i = start; i < end; i++) {
        cpu_set_unite(set, &cores->items[i].cpus);
    }
    return FAILURE_NONE;
}

/* Returns NULL when the node has no usable CPU. */
static const struct machine_cpu *lowest_cpu_of_node(
    const struct machine_description *machine, int node) {
    for (size_t i = 0; i < machine->cpu_count; i++) {
        if (machine->cpus[i].node == node) {
            return &machine->cpus[i];
        }
    }
    return NULL;
}

/* The socket of a NUMA node is the socket of its lowest usable CPU, so that a node is never split.
 */
static void take_socket_of_node(
    const struct machine_description *machine, int node, struct cpu_set_bits *set) {
    int package = lowest_cpu_of_node(machine, node)->package;
    struct cpu_groups nodes = collect_groups(machine, MACHINE_NODE_UNKNOWN, GROUP_BY_NODE);
    for (size_t i = 0; i < nodes.count; i++) {
        if (lowest_cpu_of_node(machine, nodes.items[i].key)->package == package) {
            cpu_set_unite(set, &nodes.items[i].cpus);
        }
    }
    free(nodes.items);
}

static enum failure_code take_group(const struct machine_description *machine, enum group_by by,
    const struct seat *seat, struct cpu_set_bits *set, struct cpu_plan_problem *problem) {
    struct cpu_groups groups = collect_groups(machine, seat->node, by);
    enum failure_code code = FAILURE_NONE;
    if (groups.count == 0) {
        *problem = (struct cpu_plan_problem){
            .trouble = CPU_PLAN_NODE_EMPTY, .local_rank = seat->local_rank, .node = seat->node};
        code = FAILURE_INVALID;
    } else if (by == GROUP_BY_CORE) {
        code = take_cores(&groups, seat, set, problem);
    } else {
        cpu_set_unite(set, &groups.items[seat->position % groups.count].cpus);
    }
    free(groups.items);
    return code;
}

static enum failure_code take_seat(const struct machine_description *machine,
    enum launch_numa_binding binding, const struct seat *seat, struct cpu_set_bits *set,
    struct cpu_plan_problem *problem) {
    switch (binding) {
    case LAUNCH_NUMA_NODE:
        return take_group(machine, GROUP_BY_NODE, seat, set, problem);
    case LAUNCH_NUMA_SOCKET:
        if (seat->node == MACHINE_NODE_UNKNOWN) {
            return take_group(machine, GROUP_BY_PACKAGE, seat, set, problem);
        }
        take_socket_of_node(machine, seat->node, set);
        return FAILURE_NONE;
    case LAUNCH_NUMA_EXCLUSIVE:
        return take_group(machine, GROUP_BY_CORE, seat, set, problem);
    case LAUNCH_NUMA_CORE_COMPLEX:
        return take_group(machine, GROUP_BY_CACHE, seat, set, problem);
    case LAUNCH_NUMA_NONE:
        break;
    }
    return FAILURE_NONE;
}

/* A device whose node is unknown belongs to the only NUMA node, if the machine has just one. */
static int node_of_device(const struct machine_description *machine, size_t device) {
    int node = machine->device_nodes[device];
    if (node != MACHINE_NODE_UNKNOWN) {
        return node;
    }
    for (size_t i = 1; i < machine->cpu_count; i++) {
        if (machine->cpus[i].node != machine->cpus[0].node) {
            return MACHINE_NODE_UNKNOWN;
        }
    }
    return machine->cpus[0].node;
}

/* Finds the seat of a worker near its device. */
static enum failure_code find_seat_at_device(const struct machine_description *machine,
    size_t local_rank, struct seat *out_seat, struct cpu_plan_problem *problem) {
    *problem = (struct cpu_plan_problem){
        .local_rank = local_rank, .node = MACHINE_NODE_UNKNOWN, .available = machine->device_count};
    if (local_rank >= machine->device_count) {
        problem->trouble = CPU_PLAN_NO_DEVICE;
        return FAILURE_INVALID;
    }
    struct seat seat = {.local_rank = local_rank, .node = node_of_device(machine, local_rank)};
    if (seat.node == MACHINE_NODE_UNKNOWN) {
        problem->trouble = CPU_PLAN_DEVICE_NODE_LOST;
        return FAILURE_INVALID;
    }
    if (lowest_cpu_of_node(machine, seat.node) == NULL) {
        problem->trouble = CPU_PLAN_NODE_EMPTY;
        problem->node = seat.node;
        return FAILURE_INVALID;
    }
    for (size_t device = 0; device < machine->device_count; device++) {
        if (node_of_device(machine, device) == seat.node) {
            seat.neighbours++;
            seat.position += device < local_rank ? 1 : 0;
        }
    }
    *out_seat = seat;
    return FAILURE_NONE;
}

static enum failure_code plan_worker(const struct machine_description *machine,
    enum launch_numa_binding binding, size_t local_rank, struct cpu_plan *plan,
    struct cpu_plan_problem *problem) {
    struct seat seat = {.local_rank = local_rank,
        .node = MACHINE_NODE_UNKNOWN,
        .position = local_rank,
        .neighbours = plan->count};
    if (machine->device_count > 0) {
        enum failure_code code = find_seat_at_device(machine, local_rank, &seat, problem);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    return take_seat(machine, binding, &seat, &plan->sets[local_rank], problem);
}

enum failure_code cpu_plan_make(const struct machine_description *machine,
    enum launch_numa_binding binding, size_t worker_count, struct cpu_plan *out_plan,
    struct cpu_plan_problem *out_problem) {
    struct cpu_plan plan = {0};
    struct cpu_plan_problem problem = {.node = MACHINE_NODE_UNKNOWN};
    enum failure_code code = FAILURE_NONE;
    if (binding != LAUNCH_NUMA_NONE && machine->cpu_count == 0) {
        problem.trouble = CPU_PLAN_NO_CPUS;
        code = FAILURE_INVALID;
    } else if (binding != LAUNCH_NUMA_NONE) {
        plan.sets = memory_allocate(worker_count * sizeof *plan.sets);
        plan.count = worker_count;
    }
    for (size_t rank = 0; rank < plan.count && code == FAILURE_NONE; rank++) {
        code = plan_worker(machine, binding, rank, &plan, &problem);
    }
    if (code == FAILURE_NONE) {
        *out_plan = plan;
        return FAILURE_NONE;
    }
    cpu_plan_clear(&plan);
    if (out_problem != NULL) {
        *out_problem = problem;
    }
    return code;
}

void cpu_plan_clear(struct cpu_plan *plan) {
    free(plan->sets);
    *plan = (struct cpu_plan){0};
}

void cpu_plan_explain(const struct cpu_plan_problem *problem, struct text *text) {
    switch (problem->trouble) {
    case CPU_PLAN_NO_TROUBLE:
        break;
    case CPU_PLAN_NO_CPUS:
        text_append(text, "no CPU of this machine may be used");
        break;
    case CPU_PLAN_NO_DEVICE:
        text_append_format(text, "local rank %zu has no device to be near to: devices here: %zu",
            problem->local_rank, problem->available);
        break;
    case CPU_PLAN_DEVICE_NODE_LOST:
        text_append_format(
            text, "the NUMA node of device %zu cannot be found out", problem->local_rank);
        break;
    case CPU_PLAN_NODE_EMPTY:
        text_append_format(text,
            "device %zu is on NUMA node %d, which has no CPU that may be used here",
            problem->local_rank, problem->node);
        break;
    case CPU_PLAN_TOO_FEW_CORES:
        if (problem->node == MACHINE_NODE_UNKNOWN) {
            text_append_format(text, "%zu physical cores cannot be divided among %zu workers",
                problem->available, problem->wanted);
        } else {
            text_append_format(text,
                "%zu physical cores of NUMA node %d cannot be divided among its %zu devices",
                problem->available, problem->node, problem->wanted);
        }
        break;
    }
}

/* Answers. */

#define ANSWER_MARK "\nmuster-devices "

enum device_answer device_answer_read(char *text, int *out_count, const char **out_reason) {
    char *line = NULL;
    int64_t count;
    for (char *found = strstr(text, ANSWER_MARK); found != NULL;
         found = strstr(line, ANSWER_MARK)) {
        line = found + strlen(ANSWER_MARK);
    }
    if (line == NULL) {
        return DEVICE_ANSWER_NONE;
    }
    line[strcspn(line, "\n")] = '\0';
    utf8_make_line_printable(line);
    if (*line == '!' || *line == '?') {
        *out_reason = line + 1;
        return *line == '!' ? DEVICE_ANSWER_TROUBLE : DEVICE_ANSWER_UNKNOWN;
    }
    if (text_parse_integer(line, &count) != FAILURE_NONE || count < 0 || count > INT_MAX) {
        return DEVICE_ANSWER_NONE;
    }
    *out_count = (int)count;
    return DEVICE_ANSWER_COUNT;
}
