/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/node_identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MUSTER_MARK INT64_C(0x40000000)
#define RANDOM_MASK UINT32_C(0x0FFFFFFF)

void node_identity_init(
    struct node_identity *identity, const char *address, int64_t pid, int64_t local_id) {
    snprintf(identity->address, sizeof identity->address, "%s", address);
    identity->pid = pid;
    identity->local_id = local_id;
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

bool node_identity_equals(const struct node_identity *left, const struct node_identity *right) {
    return left->local_id == right->local_id && left->pid == right->pid &&
           strcmp(left->address, right->address) == 0;
}

static int compare_numbers(int64_t left, int64_t right) {
    return (left > right) - (left < right);
}

/* strcmp orders UTF-8 text by code point, as Python does. */
int node_identity_compare(const struct node_identity *left, const struct node_identity *right) {
    int order = strcmp(left->address, right->address);
    if (order == 0) {
        order = compare_numbers(left->pid, right->pid);
    }
    return order != 0 ? order : compare_numbers(left->local_id, right->local_id);
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
    int64_t pid;
    int64_t local_id;
    bool is_identity = cut_number(address, &local_id) && cut_number(address, &pid) &&
                       *address != '\0' && strlen(address) < NODE_ADDRESS_SIZE;
    if (is_identity) {
        node_identity_init(out_identity, address, pid, local_id);
    }
    free(address);
    return is_identity;
}
