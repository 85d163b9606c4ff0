/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as another node's description of its failed worker. An accepted description
 * must survive being written and read again. */
#include <stdlib.h>
#include <string.h>

#include "wire/failure/failure_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same_text(const char *left, const char *right) {
    if ((left == NULL) != (right == NULL) || (left != NULL && strcmp(left, right) != 0)) {
        abort();
    }
}

static void check_line(const struct failure_account *account) {
    struct text line = {0};
    failure_account_describe(account, &line);
    if (line.length == 0 || line.length > FAILURE_ACCOUNT_LINE_MAXIMUM ||
        strchr(text_string(&line), '\n') != NULL) {
        abort();
    }
    text_clear(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct failure_account account;
    struct failure_account again;
    if (failure_json_read((struct slice){data, size}, &account) != FAILURE_NONE) {
        return 0;
    }
    struct text text = {0};
    failure_json_write(&account, &text);
    if (failure_json_read(slice_from_string(text_string(&text)), &again) != FAILURE_NONE) {
        abort();
    }
    check_same_text(account.host, again.host);
    check_same_text(account.message, again.message);
    check_same_text(account.summary, again.summary);
    if (account.exit.value != again.exit.value || account.rank != again.rank) {
        abort();
    }
    check_line(&account);
    text_clear(&text);
    failure_account_clear(&account);
    failure_account_clear(&again);
    return 0;
}
