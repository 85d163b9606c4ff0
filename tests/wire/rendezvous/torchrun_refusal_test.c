/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/rendezvous/base64.h"
#include "wire/rendezvous/protocol_version.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

TEST(it_is_a_pickle_that_names_one_module_without_packages) {
    CLEARED_BY(text_clear) struct text text = {0};
    struct bytes pickle;
    bytes_init(&pickle, 4096);
    torchrun_refusal_write_of_succession(&text);
    assert_int_equal(base64_decode(slice_from_string(text_string(&text)), &pickle), FAILURE_NONE);
    const char *name = (const char *)pickle.data;
    assert_true(pickle.length > 40 && name[0] == 'c');
    const char *end = memchr(name, '\n', pickle.length);
    assert_non_null(end);
    assert_null(memchr(name, '.', (size_t)(end - name)));
    assert_memory_equal(end, "\nmuster\n.", (size_t)(name + pickle.length - end));
    bytes_clear(&pickle);
}

TEST(it_is_no_record) {
    CLEARED_BY(text_clear) struct text text = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    struct rendezvous_state record = {0};
    bool is_absent;
    torchrun_refusal_write_of_succession(&text);
    assert_int_not_equal(rendezvous_state_read_text(
                             slice_from_string(text_string(&text)), &is_absent, &record, &reason),
        FAILURE_NONE);
}
