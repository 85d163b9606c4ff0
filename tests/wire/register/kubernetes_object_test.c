/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/register/register_entry_text.h"

#define CONFIG_MAP                                                                                 \
    "{\"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"n\", \"resourceVersion\": \"12\", "      \
    "\"labels\": {\"app.kubernetes.io/managed-by\": \"muster\"}, "                                 \
    "\"ownerReferences\": [{\"uid\": \"u\"}]}, "                                                   \
    "\"data\": {\"entry.a\": \"A\", \"entry.b\": \"B\"}, \"immutable\": false}"

static struct kubernetes_object *read_object(const char *text, enum kubernetes_kind kind) {
    struct kubernetes_object *object = NULL;
    assert_int_equal(kubernetes_object_read(slice_from_string(text), kind, &object), FAILURE_NONE);
    return object;
}

static void expect_text(struct kubernetes_object *object, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    kubernetes_object_write(object, &text);
    assert_string_equal(text_string(&text), expected);
    kubernetes_object_free(object);
}

TEST(new_config_map_has_our_label_and_no_version) {
    struct kubernetes_object *object = kubernetes_object_new(KUBERNETES_CONFIG_MAP, "train");
    assert_true(kubernetes_object_has_label(object));
    assert_null(kubernetes_object_value(object, "entry.a"));
    kubernetes_object_set_value(object, "entry.a", "the \"text\"\n");
    expect_text(object, "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", "
                        "\"metadata\": {\"name\": \"train\", "
                        "\"labels\": {\"app.kubernetes.io/managed-by\": \"muster\"}}, "
                        "\"data\": {\"entry.a\": \"the \\\"text\\\"\\n\"}}");
}

TEST(new_lease_keeps_renewals_beside_its_holder) {
    struct kubernetes_object *object = kubernetes_object_new(KUBERNETES_LEASE, "train");
    kubernetes_object_set_value(object, "renewal.a.1", "x");
    kubernetes_object_set_holder(object, "node1");
    assert_string_equal(kubernetes_object_value(object, "renewal.a.1"), "x");
    expect_text(object, "{\"apiVersion\": \"coordination.k8s.io/v1\", \"kind\": \"Lease\", "
                        "\"metadata\": {\"name\": \"train\", "
                        "\"labels\": {\"app.kubernetes.io/managed-by\": \"muster\"}, "
                        "\"annotations\": {\"renewal.a.1\": \"x\"}}, "
                        "\"spec\": {\"holderIdentity\": \"node1\"}}");
}

TEST(old_numbers_are_removed_of_one_name) {
    struct kubernetes_object *object =
        read_object("{\"kind\": \"Lease\", \"metadata\": {\"resourceVersion\": \"1\", "
                    "\"annotations\": {\"r.a.9\": \"1\", \"r.a.10\": \"2\", \"r.a.11\": \"3\", "
                    "\"r.b.1\": \"4\", \"r.a.x\": \"5\", \"r.a.-1\": \"6\", \"r.a.\": \"7\"}}}",
            KUBERNETES_LEASE);
    kubernetes_object_remove_below(object, "r.a.", 11);
    expect_text(object,
        "{\"kind\": \"Lease\", \"metadata\": {\"resourceVersion\": \"1\", \"annotations\": "
        "{\"r.a.11\": \"3\", \"r.b.1\": \"4\", \"r.a.x\": \"5\", \"r.a.-1\": \"6\", "
        "\"r.a.\": \"7\"}}}");
}

TEST(other_objects_are_refused) {
    static const char *const wrong[] = {"", "[]", "{}", "<html>",
        "{\"kind\": \"Lease\", \"metadata\": {\"resourceVersion\": \"1\"}}",
        "{\"kind\": \"ConfigMap\", \"metadata\": {}}", "{\"kind\": \"ConfigMap\"}",
        "{\"kind\": \"ConfigMap\", \"metadata\": {\"resourceVersion\": \"\"}}",
        "{\"kind\": \"ConfigMap\", \"metadata\": {\"resourceVersion\": 1}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct kubernetes_object *object = NULL;
        assert_int_equal(
            kubernetes_object_read(slice_from_string(wrong[i]), KUBERNETES_CONFIG_MAP, &object),
            FAILURE_MALFORMED);
    }
}

TEST(a_watch_tells_of_changes) {
    static const char *const types[] = {"ADDED", "MODIFIED"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct kubernetes_object *object = NULL;
        FREED char *line = text_format("{\"type\": \"%s\", \"object\": %s}", types[i], CONFIG_MAP);
        assert_int_equal(
            kubernetes_event_read(slice_from_string(line), KUBERNETES_CONFIG_MAP, &object),
            KUBERNETES_EVENT_CHANGED);
        assert_string_equal(kubernetes_object_value(object, "entry.a"), "A");
        assert_string_equal(kubernetes_object_version(object), "12");
        kubernetes_object_free(object);
    }
}

TEST(a_watch_that_tells_of_no_change_goes_on_or_is_over) {
    static const struct {
        const char *line;
        enum kubernetes_event event;
    } lines[] = {
        {"{\"type\": \"BOOKMARK\", \"object\": {\"kind\": \"ConfigMap\"}}",
            KUBERNETES_EVENT_NOTHING},
        {"{\"type\": \"DELETED\", \"object\": " CONFIG_MAP "}", KUBERNETES_EVENT_OVER},
        {"{\"type\": \"ERROR\", \"object\": {\"kind\": \"Status\", \"code\": 410}}",
            KUBERNETES_EVENT_OVER},
        {"{\"type\": \"ADDED\"}", KUBERNETES_EVENT_OVER},
        {"{\"type\": \"ADDED\", \"object\": {\"kind\": \"Lease\"}}", KUBERNETES_EVENT_OVER},
        {"{\"type\": \"ADDED\", \"object\"", KUBERNETES_EVENT_OVER},
        {"[]", KUBERNETES_EVENT_OVER},
        {"", KUBERNETES_EVENT_OVER},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct kubernetes_object *object = NULL;
        assert_int_equal(
            kubernetes_event_read(slice_from_string(lines[i].line), KUBERNETES_CONFIG_MAP, &object),
            lines[i].event);
        assert_null(object);
    }
}

TEST(a_version_has_digits) {
    struct kubernetes_object *object = kubernetes_object_new(KUBERNETES_LEASE, "train");
    assert_string_equal(kubernetes_object_version(object), "");
    kubernetes_object_free(object);
    object = read_object(
        "{\"kind\": \"Lease\", \"metadata\": {\"resourceVersion\": \"1&x=2\"}}", KUBERNETES_LEASE);
    assert_string_equal(kubernetes_object_version(object), "");
    kubernetes_object_free(object);
}

static void expect_status(const char *text, const char *words, int64_t seconds) {
    CLEARED_BY(text_clear) struct text found = {0};
    assert_int_equal(kubernetes_status_read(slice_from_string(text), &found), seconds);
    assert_string_equal(text_string(&found), words);
}

TEST(status_says_why_and_when_to_ask_again) {
    expect_status("{\"kind\": \"Status\", \"message\": \"too many\", "
                  "\"details\": {\"retryAfterSeconds\": 2}}",
        "too many", 2);
    expect_status("{\"kind\": \"Status\", \"message\": 7}", "", 0);
    expect_status("{\"kind\": \"Secret\", \"message\": \"x\"}", "", 0);
    expect_status("{\"details\": {\"retryAfterSeconds\": -2}}", "", 0);
    expect_status("Client sent an HTTP request to an HTTPS server.", "", 0);
}

TEST(long_words_are_cut) {
    CLEARED_BY(text_clear) struct text words = {0};
    FREED char *text = text_format("{\"kind\": \"Status\", \"message\": \"%01000d\"}", 0);
    assert_int_equal(kubernetes_status_read(slice_from_string(text), &words), 0);
    assert_int_equal(words.length, 300);
}
