/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <dirent.h>

#include "host/telling/job_directory.h"
#include "temporary_tree.h"

#define JOB_A "{\"run_id\": \"a\", \"host\": \"h\", \"port\": 1, \"pid\": 1}\n"
#define JOB_A_OF_ANOTHER_AGENT "{\"run_id\": \"a\", \"host\": \"h\", \"port\": 1, \"pid\": 2}\n"
#define JOB_B "{\"run_id\": \"b\", \"host\": \"h\", \"port\": 1, \"pid\": 3}\n"

struct fixture {
    struct temporary_tree tree;
    struct text_list places; /* one: "jobs" in the tree */
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    text_list_add_taken(&fixture->places, temporary_tree_path(&fixture->tree, "jobs"));
}

static void tear_down(struct fixture *fixture) {
    text_list_clear(&fixture->places);
    temporary_tree_clear(&fixture->tree);
}

static struct job_posting post(const struct fixture *fixture, const char *text) {
    struct job_posting posting = {0};
    struct failure failure = {0};
    enum failure_code code = job_directory_post(&fixture->places, NULL, text, &posting, &failure);
    assert_string_equal(failure.message, "");
    assert_int_equal(code, FAILURE_NONE);
    return posting;
}

/* What is found, as "a 1, b 3" (name and agent). */
static void assert_found(const struct fixture *fixture, const char *expected) {
    struct job_list jobs = {0};
    struct text_list refusals = {0};
    struct text found = {0};
    job_directory_find(&fixture->places, &jobs, &refusals);
    for (size_t i = 0; i < jobs.count; i++) {
        text_append_format(
            &found, "%s%s %d", i > 0 ? ", " : "", jobs.items[i].run_id, (int)jobs.items[i].pid);
    }
    assert_string_equal(text_string(&found), expected);
    assert_int_equal(refusals.count, 0);
    text_clear(&found);
    job_list_clear(&jobs);
    text_list_clear(&refusals);
}

FIXTURE_TEST(what_is_posted_is_found_until_it_is_removed) {
    struct stat status;
    assert_found(fixture, ""); /* there is no directory yet */
    struct job_posting second = post(fixture, JOB_B);
    struct job_posting first = post(fixture, JOB_A);
    assert_int_equal(stat(fixture->places.items[0], &status), 0);
    assert_int_equal(status.st_mode, S_IFDIR | 0700);
    assert_int_equal(stat(first.path, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600);
    assert_found(fixture, "a 1, b 3");
    job_posting_remove(&first);
    assert_found(fixture, "b 3");
    job_posting_remove(&second);
    job_posting_remove(&second);
    assert_found(fixture, "");
    assert_int_equal(rmdir(fixture->places.items[0]), 0);
}

FIXTURE_TEST(whoever_posts_looks_too) {
    struct job_posting left = post(fixture, JOB_A);
    close(left.lock_fd);
    struct job_posting running = post(fixture, JOB_B);
    assert_int_equal(access(left.path, F_OK), -1);
    free(left.path);
    job_posting_remove(&running);
}

FIXTURE_TEST(a_posting_is_written_again_in_place) {
    struct job_posting none = {0};
    struct job_posting posting = post(fixture, JOB_A_OF_ANOTHER_AGENT " ");
    assert_true(job_posting_rewrite(&posting, JOB_B));
    assert_found(fixture, "b 3");
    assert_int_equal(unlink(posting.path), 0);
    assert_false(job_posting_rewrite(&posting, JOB_A));
    assert_false(job_posting_rewrite(&none, JOB_A));
    job_posting_remove(&posting);
}

FIXTURE_TEST(what_is_not_whole_or_not_a_job_is_passed_over) {
    struct job_posting torn = post(fixture, "{\"run_id\": ");
    struct job_posting empty = post(fixture, "");
    temporary_tree_write(&fixture->tree, "jobs/other", JOB_A);
    temporary_tree_write(&fixture->tree, "target", JOB_A);
    temporary_tree_link(&fixture->tree, "jobs/job-link", "../target");
    assert_found(fixture, "");
    assert_true(temporary_tree_has(&fixture->tree, "jobs/other"));
    assert_true(temporary_tree_has(&fixture->tree, "jobs/job-link"));
    assert_int_equal(access(torn.path, F_OK), 0);
    job_posting_remove(&torn);
    job_posting_remove(&empty);
}

static void assert_refused(const struct fixture *fixture, const char *words) {
    struct job_posting posting = {0};
    struct failure failure = {0};
    struct job_list jobs = {0};
    struct text_list refusals = {0};
    assert_int_equal(
        job_directory_post(&fixture->places, NULL, JOB_A, &posting, &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, words));
    assert_null(posting.path);
    job_directory_find(&fixture->places, &jobs, &refusals);
    assert_int_equal(jobs.count, 0);
    assert_int_equal(refusals.count, 1);
    assert_non_null(strstr(refusals.items[0], words));
    text_list_clear(&refusals);
}

FIXTURE_TEST(a_link_to_a_directory_is_refused) {
    char *own = temporary_tree_path(&fixture->tree, "own");
    assert_int_equal(mkdir(own, 0700), 0);
    free(own);
    temporary_tree_link(&fixture->tree, "jobs", "own");
    assert_refused(fixture, "is no directory, or a symbolic link");
}

FIXTURE_TEST(a_directory_of_another_user_is_refused) {
    assert_int_equal(mkdir(fixture->places.items[0], 0700), 0);
    if (chown(fixture->places.items[0], 65534, (gid_t)-1) != 0) {
        tear_down(fixture);
        SKIP_BECAUSE("only root can give a directory away");
    }
    assert_refused(fixture, "belongs to user 65534");
}

FIXTURE_TEST(a_place_that_cannot_be_used_leads_to_the_next) {
    struct failure failure = {0};
    struct job_posting posting = {0};
    struct text_list none = {0};
    text_list_add_taken(&none, temporary_tree_path(&fixture->tree, "missing/jobs"));
    assert_int_equal(job_directory_post(&none, NULL, JOB_A, &posting, &failure), FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "missing/jobs: No such file or directory"));
    text_list_add(&none, fixture->places.items[0]);
    assert_int_equal(job_directory_post(&none, NULL, JOB_A, &posting, &failure), FAILURE_NONE);
    assert_found(fixture, "a 1");
    job_posting_remove(&posting);
    text_list_clear(&none);
}

static void assert_places(const char *variable, const char *first, size_t count) {
    struct text_list environment = {0};
    struct text_list places = {0};
    text_list_add(&environment, variable);
    job_directory_places(&environment, &places);
    assert_int_equal(places.count, count);
    assert_string_equal(places.items[0], first);
    text_list_clear(&environment);
    text_list_clear(&places);
}

TEST(places_are_private_ones_first) {
    char *variable = text_format("XDG_RUNTIME_DIR=/run/user/%u", (unsigned)geteuid());
    char *usual = text_format("/run/user/%u/muster", (unsigned)geteuid());
    assert_places("XDG_RUNTIME_DIR=/x", "/x/muster", 3);
    assert_places("XDG_RUNTIME_DIR=relative", usual, 2);
    assert_places(variable, usual, 2);
    assert_places("MUSTER_RUNTIME_DIR=/only", "/only", 1);
    free(usual);
    free(variable);
}

static bool has_died(const struct fixture *fixture, const char *name) {
    struct job_sighting sightings[2] = {{.name = "another"}};
    strcpy(sightings[1].name, name);
    job_directory_look(&fixture->places, sightings, 2);
    assert_false(sightings[0].has_died);
    return sightings[1].has_died;
}

static struct job_posting post_as(const struct fixture *fixture, const char *name) {
    struct job_posting posting = {0};
    struct failure failure = {0};
    assert_int_equal(
        job_directory_post(&fixture->places, name, "", &posting, &failure), FAILURE_NONE);
    return posting;
}

FIXTURE_TEST(of_an_agent_that_has_a_name_it_is_known_that_it_has_died) {
    assert_false(has_died(fixture, "00ff")); /* there is no directory yet */
    struct job_posting posting = post_as(fixture, "00ff");
    assert_string_equal(strrchr(posting.path, '/'), "/job-00ff");
    assert_false(has_died(fixture, "00ff"));
    assert_true(job_posting_rewrite(&posting, JOB_A));
    assert_found(fixture, "a 1");
    assert_false(has_died(fixture, "00ff"));
    close(posting.lock_fd);
    assert_true(has_died(fixture, "00ff"));
    assert_true(has_died(fixture, "00ff")); /* also for who looks next */
    free(posting.path);
}

FIXTURE_TEST(of_an_agent_that_ends_or_has_posted_nothing_nothing_is_known) {
    struct job_posting posting = post_as(fixture, "00ff");
    assert_false(has_died(fixture, "11ff"));
    job_posting_remove(&posting);
    assert_false(has_died(fixture, "00ff"));
}

FIXTURE_TEST(a_posting_that_takes_the_name_of_an_earlier_one_stays) {
    struct job_posting earlier = post_as(fixture, "00ff");
    struct job_posting posting = post_as(fixture, "00ff");
    job_posting_remove(&earlier);
    assert_int_equal(access(posting.path, F_OK), 0);
    assert_false(has_died(fixture, "00ff"));
    job_posting_remove(&posting);
}
