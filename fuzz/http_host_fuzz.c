/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary text as the Host of a request. What is admitted without any name is no name of
 * the Domain Name System but localhost; and each name is admitted where it is given. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/telling/http_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *host = memory_allocate(size + 1);
    struct text_list none = {0};
    struct text_list names = {0};
    if (size > 0) {
        memcpy(host, data, size);
    }
    size_t name_length = strcspn(host, ":");
    const char *last_dot = memrchr(host, '.', name_length);
    bool is_domain = host[0] != '[' && last_dot != NULL && last_dot[1] >= 'a' && last_dot[1] <= 'z';
    if (is_domain && http_host_is_admitted(host, &none)) {
        abort();
    }
    http_host_add_names(host, &names);
    (void)http_host_is_admitted("a.example:80", &names);
    if (names.count == 1 && strcmp(names.items[0], host) == 0 && strcspn(host, ":[*.") > 0 &&
        name_length == size && !http_host_is_admitted(host, &names)) {
        abort();
    }
    text_list_clear(&names);
    free(host);
    return 0;
}
