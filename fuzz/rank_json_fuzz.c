/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as another agent's description of its node and its ranks. An accepted
 * description must survive being written and read again. */
#include <stdlib.h>
#include <string.h>

#include "wire/round/round_exchange_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_role_info(struct slice input) {
    struct role_info info;
    if (rank_json_read_role_info(input, &info) != FAILURE_NONE) {
        return;
    }
    struct text text = {0};
    struct role_info again;
    struct node_role node = {info.role, info.local_world_size};
    rank_json_write_role_info(&node, info.addresses, info.group_rank, info.muster_version, &text);
    if (text.length <= RANK_JSON_MAXIMUM_SIZE) {
        if (rank_json_read_role_info(slice_from_string(text_string(&text)), &again) !=
                FAILURE_NONE ||
            strcmp(info.role, again.role) != 0 ||
            (info.addresses != NULL && strcmp(info.addresses, again.addresses) != 0)) {
            abort();
        }
        role_info_clear(&again);
    }
    role_info_clear(&info);
    text_clear(&text);
}

static void check_assignment(struct slice input) {
    struct rank_assignment ranks;
    if (rank_json_read_assignment(input, &ranks) != FAILURE_NONE) {
        return;
    }
    struct text text = {0};
    struct rank_assignment again;
    rank_json_write_assignment(&ranks, &text);
    if (rank_json_read_assignment(slice_from_string(text_string(&text)), &again) != FAILURE_NONE ||
        memcmp(&ranks, &again, sizeof ranks) != 0) {
        abort();
    }
    text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_role_info((struct slice){data, size});
    check_assignment((struct slice){data, size});
    return 0;
}
