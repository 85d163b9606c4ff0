/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/machine/cpu_set.h"

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

void cpu_set_unite(struct cpu_set_bits *set, const struct cpu_set_bits *other) {
    for (size_t i = 0; i < CPU_SET_WORDS; i++) {
        set->words[i] |= other->words[i];
    }
}

bool cpu_set_equals(const struct cpu_set_bits *left, const struct cpu_set_bits *right) {
    for (size_t i = 0; i < CPU_SET_WORDS; i++) {
        if (left->words[i] != right->words[i]) {
            return false;
        }
    }
    return true;
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

void cpu_set_format(const struct cpu_set_bits *set, struct text *text) {
    const char *separator = "";
    int first = cpu_set_next(set, 0);
    while (first >= 0) {
        int last = first;
        while (cpu_set_has(set, last + 1)) {
            last++;
        }
        text_append_format(text, "%s%d", separator, first);
        if (last > first) {
            text_append_format(text, "-%d", last);
        }
        separator = ",";
        first = cpu_set_next(set, last + 1);
    }
}
