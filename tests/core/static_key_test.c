/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/static_key.h"

static void check(struct static_key key, const char *on_the_wire, const char *described) {
    struct text text = {0};
    static_key_write(&key, "none", &text);
    assert_string_equal(text_string(&text), on_the_wire);
    text_clear(&text);
    static_key_describe(&key, &text);
    assert_string_equal(text_string(&text), described);
    text_clear(&text);
}

static void torchruns_keys_are_spelled_as_torchrun_spells_them(void **state) {
    (void)state;
    check((struct static_key){.kind = STATIC_KEY_INIT}, "init/", "init");
    check((struct static_key){.kind = STATIC_KEY_ROLE_INFO, .node = 1},
        "/none/torchelastic/role_info/1", "role_info/1");
    check((struct static_key){.kind = STATIC_KEY_ASSIGNED_RANKS, .node = 12},
        "/none/torchelastic/assigned_ranks/12", "assigned_ranks/12");
    check((struct static_key){.kind = STATIC_KEY_NUM_MEMBERS},
        "/none/torchelastic/agent/terminal_state/num_members", "num_members");
    check((struct static_key){.kind = STATIC_KEY_LAST_MEMBER},
        "/none/torchelastic/agent/terminal_state/last_member", "last_member");
}

static void musters_keys_are_counted_by_attempt(void **state) {
    (void)state;
    check((struct static_key){.kind = STATIC_KEY_COORDINATED}, "/none/muster/coordinated",
        "coordinated");
    check((struct static_key){.kind = STATIC_KEY_READY, .attempt = 2}, "/none/muster/ready/2",
        "ready/2");
    check(
        (struct static_key){.kind = STATIC_KEY_FINISHED}, "/none/muster/finished/0", "finished/0");
    check((struct static_key){.kind = STATIC_KEY_GATHERED, .attempt = 1}, "/none/muster/gathered/1",
        "gathered/1");
    check((struct static_key){.kind = STATIC_KEY_START, .attempt = 1}, "/none/muster/start/1",
        "start/1");
    check((struct static_key){.kind = STATIC_KEY_END, .attempt = 1}, "/none/muster/end/1", "end/1");
}

static void the_agents_keys_share_a_prefix(void **state) {
    (void)state;
    struct text prefix = {0};
    static_key_write_prefix("job", &prefix);
    assert_string_equal(text_string(&prefix), "/job/");
    text_clear(&prefix);
}

static void keys_are_equal_by_all_their_parts(void **state) {
    (void)state;
    struct static_key key = {.kind = STATIC_KEY_END, .attempt = 1};
    struct static_key same = key;
    struct static_key later = {.kind = STATIC_KEY_END, .attempt = 2};
    struct static_key other = {.kind = STATIC_KEY_START, .attempt = 1};
    assert_true(static_key_equals(&key, &same));
    assert_false(static_key_equals(&key, &later));
    assert_false(static_key_equals(&key, &other));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(torchruns_keys_are_spelled_as_torchrun_spells_them),
    cmocka_unit_test(musters_keys_are_counted_by_attempt),
    cmocka_unit_test(the_agents_keys_share_a_prefix),
    cmocka_unit_test(keys_are_equal_by_all_their_parts),
};

TEST_MAIN(tests)
