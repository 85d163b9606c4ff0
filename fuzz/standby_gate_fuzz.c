/* SPDX-License-Identifier: BSD-3-Clause */
/* What a standby worker says at its gate, as one packet; and what a worker records. */
#include <string.h>

#include "core/standby/standby_preparation.h"
#include "fuzz_input.h"
#include "wire/standby/gate_message.h"

static void read_packet(struct slice packet) {
    struct gate_message message;
    if (gate_message_read(packet, &message) != FAILURE_NONE) {
        return;
    }
    if (message.kind == GATE_MESSAGE_DIRTY || message.kind == GATE_MESSAGE_UNSUITED) {
        FUZZ_REQUIRE(message.reason.data + message.reason.length == packet.data + packet.length);
    } else if (message.kind == GATE_MESSAGE_LEFT_OUT) {
        FUZZ_REQUIRE(message.name.data + message.name.length == packet.data + packet.length);
    }
}

/* As if a standby worker had named what stands between the newlines. */
static void leave_out_each(struct learned_list *list, struct slice names) {
    const uint8_t *end;
    while (names.length > 0 && (end = memchr(names.data, '\n', names.length)) != NULL) {
        struct slice name = {names.data, (size_t)(end - names.data)};
        if (learned_list_leave_out(list, name)) {
            FUZZ_REQUIRE(!learned_list_leave_out(list, name));
        }
        names = slice_from(names, name.length + 1);
    }
}

static void read_record(struct slice record) {
    struct learned_list list;
    struct learned_list again;
    struct slice imports = record;
    int64_t pid;
    if (standby_record_read_hello(record, &pid, &imports) == FAILURE_NONE) {
        FUZZ_REQUIRE(pid >= 0);
        FUZZ_REQUIRE(imports.data + imports.length == record.data + record.length);
    }
    learned_list_init(&list);
    learned_list_init(&again);
    size_t count = learned_list_add_text(&list, imports);
    FUZZ_REQUIRE(count == learned_list_count(&list));
    FUZZ_REQUIRE(learned_list_text(&list).length <= LEARNED_LIST_TEXT_MAXIMUM);
    FUZZ_REQUIRE(learned_list_add_text(&list, imports) == 0);
    FUZZ_REQUIRE(learned_list_add_text(&again, learned_list_text(&list)) == count);
    FUZZ_REQUIRE(slice_equals(learned_list_text(&again), learned_list_text(&list)));
    leave_out_each(&list, imports);
    learned_list_clear(&list);
    learned_list_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    read_packet(input);
    read_record(input);
    return 0;
}
