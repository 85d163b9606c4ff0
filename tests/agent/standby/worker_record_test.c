/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/standby/standby_spare.h"

#define WORKER 7

struct scene {
    struct event_loop *loop;
    struct worker_record record;
    struct learned_list learned;
    struct instant now; /* of the next look */
};

static void ending(void *context, pid_t pid, const struct process_exit *how) {
    (void)context;
    (void)pid;
    (void)how;
    fail();
}

static void renew(struct scene *scene) {
    const struct death_notice_events events = {ending, scene};
    assert_true(worker_record_renew(&scene->record, scene->loop, &events));
}

static void set_up(struct scene *scene) {
    worker_record_init(&scene->record);
    learned_list_init(&scene->learned);
    assert_int_equal(event_loop_new(&scene->loop, NULL), FAILURE_NONE);
    renew(scene);
    scene->now = scene->record.grown;
    scene->record.worker = WORKER;
}

static void tear_down(struct scene *scene) {
    worker_record_clear(&scene->record);
    learned_list_clear(&scene->learned);
    assert_true(event_loop_free(scene->loop));
}

static void write_record(const struct scene *scene, const char *text) {
    assert_int_equal(write(scene->record.fd, text, strlen(text)), strlen(text));
}

/* Whether the look brought a hello. */
static bool look(struct scene *scene) {
    scene->now = instant_after(scene->now, duration_from_seconds(1));
    return worker_record_look(&scene->record, &scene->learned, scene->now);
}

#define SCENE_TEST(name) TEST_OF(scene, name, set_up(&fixture), tear_down)

SCENE_TEST(what_was_written_since_the_last_look_is_learned) {
    assert_false(look(fixture));
    write_record(fixture, "hello 1 7\njson\t/lib/json.py\n");
    assert_true(look(fixture));
    assert_int_equal(learned_list_count(&fixture->learned), 1);
    assert_false(look(fixture)); /* nothing was written since */
    write_record(fixture, "csv\t/lib/csv.py\n");
    assert_true(look(fixture));
    assert_int_equal(learned_list_count(&fixture->learned), 2);
}

/* Whatever the clock of the files says meanwhile. */
SCENE_TEST(when_it_has_grown_is_as_exact_as_the_looks) {
    const struct timespec of_another_clock[] = {{.tv_sec = 1}, {.tv_sec = INT32_MAX}};
    struct instant begun = fixture->record.grown;
    assert_false(look(fixture));
    assert_int_equal(fixture->record.grown.nanoseconds, begun.nanoseconds);
    write_record(fixture, "hello 1 7\n");
    assert_int_equal(futimens(fixture->record.fd, of_another_clock), 0);
    assert_true(look(fixture));
    struct instant seen = fixture->now;
    assert_int_equal(fixture->record.grown.nanoseconds, seen.nanoseconds);
    assert_false(look(fixture));
    assert_int_equal(fixture->record.grown.nanoseconds, seen.nanoseconds);
}

SCENE_TEST(the_hello_of_another_process_counts_for_nothing) {
    write_record(fixture, "hello 1 8\njson\t/lib/json.py\n");
    assert_false(look(fixture));
    assert_int_equal(learned_list_count(&fixture->learned), 0);
    assert_false(worker_record_can_answer(&fixture->record, WORKER));
}

SCENE_TEST(only_its_worker_can_answer_and_only_after_its_hello) {
    assert_false(worker_record_can_answer(&fixture->record, WORKER));
    write_record(fixture, "hello 1 7\n");
    assert_true(worker_record_can_answer(&fixture->record, WORKER));
    assert_false(worker_record_can_answer(&fixture->record, WORKER + 1));
    worker_record_clear(&fixture->record);
    assert_false(worker_record_can_answer(&fixture->record, WORKER));
}

SCENE_TEST(a_renewed_record_is_empty_and_nobodys) {
    write_record(fixture, "hello 1 7\n");
    assert_true(look(fixture));
    renew(fixture);
    assert_int_equal(fixture->record.worker, 0);
    assert_false(look(fixture));
}
