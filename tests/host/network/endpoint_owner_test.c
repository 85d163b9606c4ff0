/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "base/text.h"
#include "host/network/local_address.h"

/* No name server is asked for this name, because a part of it is longer than allowed. */
#define UNKNOWN "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test"

struct fixture {
    struct event_loop *loop;
    struct endpoint_owner *owner;
    int answer_count;
    bool is_own;
    bool frees_itself;
};

static void answered(void *context, bool is_own) {
    struct fixture *fixture = context;
    fixture->answer_count++;
    fixture->is_own = is_own;
    if (fixture->frees_itself) {
        endpoint_owner_free(fixture->owner);
        fixture->owner = NULL;
    }
    event_loop_stop(fixture->loop);
}

static void set_up(struct fixture *fixture, const char *host) {
    *fixture = (struct fixture){0};
    struct endpoint_owner_settings settings = {
        .host = host, .answered = answered, .context = fixture};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        endpoint_owner_new(fixture->loop, &settings, &fixture->owner, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    endpoint_owner_free(fixture->owner);
    assert_true(event_loop_free(fixture->loop));
}

static bool ask(struct fixture *fixture) {
    assert_int_equal(endpoint_owner_ask(fixture->owner, NULL), FAILURE_NONE);
    assert_int_equal(fixture->answer_count, 0); /* no answer comes from inside the call */
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->answer_count, 1);
    fixture->answer_count = 0;
    return fixture->is_own;
}

static bool is_own(const char *host) {
    struct fixture fixture;
    set_up(&fixture, host);
    bool is_own = ask(&fixture);
    tear_down(&fixture);
    return is_own;
}

TEST(names_everybody_has_for_himself_are_this_machine) {
    static const char *const hosts[] = {"localhost", "127.0.0.1", "127.9.9.9", "::1"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_true(endpoint_owner_is_plain(hosts[i], NULL));
        assert_true(is_own(hosts[i]));
    }
}

TEST(own_host_name_is_this_machine) {
    char *name;
    assert_int_equal(local_address_host_name(&name, NULL), FAILURE_NONE);
    assert_true(endpoint_owner_is_plain(name, NULL));
    assert_true(is_own(name));
    free(name);
}

TEST(the_address_that_was_given_is_this_machine) {
    assert_true(endpoint_owner_is_plain(UNKNOWN, UNKNOWN));
    assert_true(endpoint_owner_is_plain("192.0.2.1", "192.0.2.1"));
    assert_false(endpoint_owner_is_plain("192.0.2.1", "192.0.2.2"));
}

TEST(addresses_of_all_interfaces_are_this_machine) {
    struct address_list list = address_list_of_interfaces();
    assert_true(list.count > 0);
    for (size_t i = 0; i < list.count; i++) {
        struct text text = {0};
        network_address_format(&list.items[i], &text);
        assert_true(endpoint_owner_is_plain(text_string(&text), NULL));
        text_clear(&text);
    }
    address_list_clear(&list);
}

TEST(others_are_not_this_machine) {
    static const char *const hosts[] = {"192.0.2.1", "2001:db8::1", UNKNOWN, "0.0.0.0", "::"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_false(endpoint_owner_is_plain(hosts[i], NULL));
        assert_false(is_own(hosts[i]));
    }
}

FIXTURE_TEST_AFTER(it_can_be_asked_again, set_up(&fixture, UNKNOWN)) {
    assert_false(ask(fixture));
    assert_false(ask(fixture));
}

FIXTURE_TEST_AFTER(one_question_at_a_time_is_answered_once, set_up(&fixture, "127.0.0.1")) {
    assert_int_equal(endpoint_owner_ask(fixture->owner, NULL), FAILURE_NONE);
    assert_true(ask(fixture));
    (void)event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->answer_count, 0);
}

TEST(a_question_under_way_can_be_forgotten) {
    for (int i = 0; i < 50; i++) {
        struct fixture fixture;
        set_up(&fixture, "127.0.0.1");
        assert_int_equal(endpoint_owner_ask(fixture.owner, NULL), FAILURE_NONE);
        tear_down(&fixture);
    }
}

FIXTURE_TEST_AFTER(whoever_is_answered_may_free_it, set_up(&fixture, "127.0.0.1")) {
    fixture->frees_itself = true;
    assert_true(ask(fixture));
    assert_null(fixture->owner);
}
