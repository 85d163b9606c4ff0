/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses arbitrary bytes as values that another node published. The first byte chooses the question;
 * the lines after it are the values. An accepted address, port, name or rank must be valid. */
#include <string.h>

#include "fuzz_input.h"
#include "wire/round/round_exchange_store.h"

#define BLOBS_MAXIMUM 8

static const enum round_key_kind asked[] = {ROUND_KEY_ADDRESS, ROUND_KEY_PUBLICATION,
    ROUND_KEY_PUBLISHER, ROUND_KEY_WORLD, ROUND_KEY_ALL_ROLE_INFOS, ROUND_KEY_LAST_MEMBER,
    ROUND_KEY_ASSIGNED_RANKS, ROUND_KEY_END, ROUND_KEY_CLAIM};

static size_t split_lines(struct slice input, struct slice *blobs) {
    size_t count = 0;
    while (input.length > 0 && count < BLOBS_MAXIMUM) {
        const uint8_t *end = memchr(input.data, '\n', input.length);
        size_t length = end != NULL ? (size_t)(end - input.data) : input.length;
        size_t taken = end != NULL ? length + 1 : length;
        blobs[count++] = (struct slice){input.data, length};
        input = (struct slice){input.data + taken, input.length - taken};
    }
    return count;
}

static void check_values(const struct round_values *values) {
    FUZZ_REQUIRE(values->port >= 0 && values->port <= 65535);
    if (values->address != NULL) {
        FUZZ_REQUIRE(values->address[0] != '\0' && strlen(values->address) < NODE_ADDRESS_SIZE);
        FUZZ_REQUIRE(strpbrk(values->address, "\r\n\t\033") == NULL);
    }
    if (values->publisher != NULL) {
        FUZZ_REQUIRE(values->publisher[0] != '\0');
    }
    if (values->claim != NULL) {
        FUZZ_REQUIRE(values->claim[0] != '\0' && strpbrk(values->claim, "\r\n\t\033") == NULL);
    }
    if (values->decision != NULL) {
        FUZZ_REQUIRE(values->decision[0] != '\0' && strlen(values->decision) < ROUND_DECISION_SIZE);
    }
    if (values->has_ranks) {
        FUZZ_REQUIRE(values->ranks.base_rank < values->ranks.world_size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct slice blobs[BLOBS_MAXIMUM];
    uint8_t choice = fuzz_take_byte(&input);
    size_t count = split_lines(input, blobs);
    struct round_question question = {.kind = ROUND_EFFECT_GET,
        .key = {.kind = asked[choice % (sizeof asked / sizeof *asked)], .node = (int)count}};
    struct store_reply reply = {.kind = STORE_REPLY_BLOBS, .list = {blobs, count}};
    struct round_answer answer;
    if (round_answer_read(&question, &reply, &answer) != FAILURE_NONE) {
        return 0;
    }
    FUZZ_REQUIRE(question.key.kind != ROUND_KEY_LAST_MEMBER);
    if (answer.event.kind == ROUND_EVENT_ROLE_INFOS) {
        FUZZ_REQUIRE(answer.event.role_infos.count == count);
    } else {
        check_values(&answer.event.values);
    }
    round_answer_clear(&answer);
    return 0;
}
