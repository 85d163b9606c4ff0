/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/node_identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MUSTER_MARK INT64_C(0x40000000)
#define RANDOM_MASK UINT32_C(0x0FFFFFFF)
#define HALF_DIGITS 16
static const char HEXADECIMAL[] = "0123456789abcdef";

void node_identity_init(
    struct node_identity *identity, const char *address, int64_t pid, int64_t local_id) {
    snprintf(identity->address, sizeof identity->address, "%s", address);
    identity->pid = pid;
    identity->local_id = local_id;
    identity->process = (struct node_process){0};
}

int64_t node_identity_muster_local_id(uint32_t random) {
    return MUSTER_MARK | (int64_t)(random & RANDOM_MASK);
}

int64_t node_identity_foreign_local_id(uint32_t random) {
    return (int64_t)(random & RANDOM_MASK);
}

bool node_identity_is_muster(const struct node_identity *identity) {
    return (identity->local_id & ~(int64_t)RANDOM_MASK) == MUSTER_MARK;
}

static bool is_same(const struct node_process *left, const struct node_process *right) {
    return left->high == right->high && left->low == right->low;
}

bool node_identity_equals(const struct node_identity *left, const struct node_identity *right) {
    return left->local_id == right->local_id && left->pid == right->pid &&
           is_same(&left->process, &right->process) && strcmp(left->address, right->address) == 0;
}

bool node_process_is_known(const struct node_process *process) {
    return process->high != 0 || process->low != 0;
}

void node_process_write(const struct node_process *process, char out_text[NODE_PROCESS_TEXT_SIZE]) {
    out_text[0] = '\0';
    if (node_process_is_known(process)) {
        snprintf(out_text, NODE_PROCESS_TEXT_SIZE, "%016" PRIx64 "%016" PRIx64, process->high,
            process->low);
    }
}

static uint64_t read_half(const char *digits) {
    uint64_t half = 0;
    for (int i = 0; i < HALF_DIGITS; i++) {
        half = half << 4 | (uint64_t)(strchr(HEXADECIMAL, digits[i]) - HEXADECIMAL);
    }
    return half;
}

bool node_process_parse(const char *text, struct node_process *out_process) {
    if (strlen(text) != NODE_PROCESS_TEXT_SIZE - 1 ||
        strspn(text, HEXADECIMAL) != NODE_PROCESS_TEXT_SIZE - 1) {
        return false;
    }
    *out_process = (struct node_process){read_half(text), read_half(text + HALF_DIGITS)};
    return true;
}

bool node_identity_is_same_process(
    const struct node_identity *left, const struct node_identity *right) {
    return is_same(&left->process, &right->process) &&
           (node_process_is_known(&left->process) ||
               (left->pid == right->pid && text_equals(left->address, right->address)));
}

struct node_identity node_identity_of_process(const struct node_identity *identity) {
    struct node_identity name = {.process = identity->process};
    if (!node_process_is_known(&identity->process)) {
        node_identity_init(&name, identity->address, identity->pid, 0);
    }
    return name;
}

static int compare_numbers(int64_t left, int64_t right) {
    return (left > right) - (left < right);
}

static int compare_bits(uint64_t left, uint64_t right) {
    return (left > right) - (left < right);
}

static int compare_processes(const struct node_process *left, const struct node_process *right) {
    int order = compare_bits(left->high, right->high);
    return order != 0 ? order : compare_bits(left->low, right->low);
}

/* strcmp orders UTF-8 text by code point, as Python does. */
int node_identity_compare(const struct node_identity *left, const struct node_identity *right) {
    int order = strcmp(left->address, right->address);
    if (order == 0) {
        order = compare_numbers(left->pid, right->pid);
    }
    if (order == 0) {
        order = compare_numbers(left->local_id, right->local_id);
    }
    return order != 0 ? order : compare_processes(&left->process, &right->process);
}

static bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

/* Compares the runs of digits at which both pointers stand, and moves the pointers past them. It
 * compares text, since a number may exceed every integer type. */
static int compare_runs(const char **left, const char **right) {
    *left += strspn(*left, "0");
    *right += strspn(*right, "0");
    size_t left_length = strspn(*left, "0123456789");
    size_t right_length = strspn(*right, "0123456789");
    if (left_length != right_length) {
        return left_length < right_length ? -1 : 1;
    }
    int order = memcmp(*left, *right, left_length);
    *left += left_length;
    *right += right_length;
    return order;
}

static int compare_addresses_naturally(const char *left, const char *right) {
    int order = 0;
    while (order == 0 && (*left != '\0' || *right != '\0')) {
        if (is_digit(*left) && is_digit(*right)) {
            order = compare_runs(&left, &right);
        } else {
            order = (int)(unsigned char)*left - (int)(unsigned char)*right;
            left++;
            right++;
        }
    }
    return order;
}

int node_identity_compare_naturally(
    const struct node_identity *left, const struct node_identity *right) {
    int order = compare_addresses_naturally(left->address, right->address);
    return order != 0 ? order : node_identity_compare(left, right);
}

void node_identity_describe(const struct node_identity *identity, struct text *out) {
    text_append_format(
        out, "%s_%" PRId64 "_%" PRId64, identity->address, identity->pid, identity->local_id);
}

void node_identity_write(const struct node_identity *identity, struct text *out) {
    char process[NODE_PROCESS_TEXT_SIZE];
    node_process_write(&identity->process, process);
    node_identity_describe(identity, out);
    text_append_format(out, "%s%s", process[0] == '\0' ? "" : "_", process);
}

/* Cuts off the bits behind the last '_'. A local id has fewer digits. */
static void cut_process(char *text, struct node_process *out_process) {
    char *mark = strrchr(text, '_');
    if (mark != NULL && node_process_parse(mark + 1, out_process)) {
        *mark = '\0';
    }
}

/* Cuts off the number behind the last '_'. */
static bool cut_number(char *text, int64_t *out_number) {
    char *mark = strrchr(text, '_');
    if (mark == NULL || text_parse_integer(mark + 1, out_number) != FAILURE_NONE) {
        return false;
    }
    *mark = '\0';
    return true;
}

bool node_identity_parse(const char *text, struct node_identity *out_identity) {
    char *address = memory_duplicate_string(text);
    struct node_process process = {0};
    int64_t pid;
    int64_t local_id;
    cut_process(address, &process);
    bool is_identity = cut_number(address, &local_id) && cut_number(address, &pid) &&
                       *address != '\0' && strlen(address) < NODE_ADDRESS_SIZE;
    if (is_identity) {
        node_identity_init(out_identity, address, pid, local_id);
        out_identity->process = process;
    }
    free(address);
    return is_identity;
}
