/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/workers/log_plan.h"

static const struct log_worker worker = {
    .role_name = "trainer", .hostname = "node7", .local_rank = 3, .rank = 11};

static struct launch_config config_with(int redirects, int tee) {
    return (struct launch_config){.redirects = {.for_all = redirects}, .tee = {.for_all = tee}};
}

static enum log_destination out_of(const struct launch_config *config, int local_rank) {
    return log_plan_stream(config, local_rank, LAUNCH_STREAM_STDOUT).destination;
}

static enum log_destination error_of(const struct launch_config *config, int local_rank) {
    return log_plan_stream(config, local_rank, LAUNCH_STREAM_STDERR).destination;
}

TEST(ranks_have_settings_of_their_own) {
    int redirects[] = {-1, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2};
    int tee[] = {3};
    struct launch_config config = {
        .redirects = {.by_rank = redirects, .rank_count = 13},
        .tee = {.by_rank = tee, .rank_count = 1},
    };
    assert_int_equal(out_of(&config, 0), LOG_DESTINATION_FILE_AND_CONSOLE);
    assert_int_equal(out_of(&config, 1), LOG_DESTINATION_FILE);
    assert_int_equal(error_of(&config, 1), LOG_DESTINATION_INHERIT);
    assert_int_equal(out_of(&config, 12), LOG_DESTINATION_INHERIT);
    assert_int_equal(error_of(&config, 12), LOG_DESTINATION_FILE);
    assert_int_equal(out_of(&config, 13), LOG_DESTINATION_INHERIT);
}

TEST(ranks_outside_the_filter_are_kept_off_the_console) {
    int ranks[] = {1, 12};
    struct launch_config config = config_with(0, 0);
    config.has_local_ranks_filter = true;
    config.local_ranks_filter = ranks;
    config.local_ranks_filter_count = 2;
    assert_int_equal(out_of(&config, 0), LOG_DESTINATION_DISCARD);
    assert_int_equal(out_of(&config, 1), LOG_DESTINATION_INHERIT);
    assert_int_equal(out_of(&config, 12), LOG_DESTINATION_INHERIT);
    config.tee.for_all = LAUNCH_STREAM_STDERR;
    assert_int_equal(error_of(&config, 0), LOG_DESTINATION_FILE);
    assert_int_equal(error_of(&config, 1), LOG_DESTINATION_FILE_AND_CONSOLE);
    config.redirects.for_all = LAUNCH_STREAM_STDOUT;
    assert_int_equal(out_of(&config, 0), LOG_DESTINATION_FILE);
}

TEST(only_shown_streams_feed_the_filtered_file) {
    int ranks[] = {0};
    struct launch_config config = config_with(LAUNCH_STREAM_STDERR, LAUNCH_STREAM_STDOUT);
    text_list_add(&config.duplicate_stdout_filters, "loss");
    text_list_add(&config.duplicate_stderr_filters, "error");
    assert_true(log_plan_stream(&config, 1, LAUNCH_STREAM_STDOUT).is_filtered);
    assert_false(log_plan_stream(&config, 1, LAUNCH_STREAM_STDERR).is_filtered);
    config.has_local_ranks_filter = true;
    config.local_ranks_filter = ranks;
    config.local_ranks_filter_count = 1;
    assert_false(log_plan_stream(&config, 1, LAUNCH_STREAM_STDOUT).is_filtered);
    assert_true(log_plan_stream(&config, 0, LAUNCH_STREAM_STDOUT).is_filtered);
    text_list_clear(&config.duplicate_stdout_filters);
    text_list_clear(&config.duplicate_stderr_filters);
}

TEST(without_a_directory_nothing_is_redirected) {
    char discarded[] = "/dev/null";
    int ranks[] = {0};
    struct launch_config config = config_with(3, 3);
    config.log_dir = discarded;
    config.has_local_ranks_filter = true;
    config.local_ranks_filter = ranks;
    config.local_ranks_filter_count = 1;
    assert_false(log_plan_has_directory(&config));
    assert_int_equal(out_of(&config, 0), LOG_DESTINATION_INHERIT);
    assert_int_equal(error_of(&config, 1), LOG_DESTINATION_INHERIT);
}

static void assert_header(char *template, const char *expected) {
    struct launch_config config = {.log_line_prefix_template = template};
    FREED char *header = log_plan_header(&config, &worker);
    assert_string_equal(header, expected);
}

TEST(headers_follow_the_template) {
    char empty[] = "";
    char all[] = "${hostname}/$host/$rank/$local_rank/${role_name} $$ ${other}> ";
    assert_header(NULL, "[trainer3]:");
    assert_header(empty, "[trainer3]:");
    assert_header(all, "node7/node7/11/3/trainer $ ${other}> ");
}

TEST(where_one_console_shows_several_nodes_headers_name_the_node) {
    char template[] = "$rank> ";
    struct launch_config config = {0};
    struct log_worker named = worker;
    named.node = "n3";
    char *header = log_plan_header(&config, &named);
    assert_string_equal(header, "[n3.trainer3]:");
    free(header);
    config.log_line_prefix_template = template;
    header = log_plan_header(&config, &named);
    assert_string_equal(header, "11> ");
    free(header);
}

static void assert_run_name(struct launch_config config, const char *expected) {
    FREED char *name = log_plan_run_name(&config, "job", "node7");
    assert_string_equal(name, expected);
}

TEST(where_nodes_may_share_a_directory_the_name_below_it_has_the_host) {
    char given[] = "logs";
    char own[] = "logs/${host}";
    char slurms[] = "n3";
    assert_run_name((struct launch_config){.maximum_nodes = 1, .log_dir = given}, "job");
    assert_run_name((struct launch_config){.maximum_nodes = 2}, "job"); /* of this machine */
    assert_run_name((struct launch_config){.maximum_nodes = 2, .log_dir = own}, "job");
    assert_run_name((struct launch_config){.maximum_nodes = 2, .log_dir = given}, "job_node7");
    assert_run_name(
        (struct launch_config){.maximum_nodes = 2, .log_dir = given, .shown_node = slurms},
        "job_n3");
}

TEST(names_that_mean_nothing_are_listed) {
    char template[] = "$rank ${RANK} $role";
    struct launch_config config = {.log_line_prefix_template = template};
    CLEARED_BY(text_list_clear) struct text_list names = {0};
    log_plan_unknown_names(&config, &names);
    assert_int_equal(names.count, 2);
    assert_string_equal(names.items[0], "RANK");
    assert_string_equal(names.items[1], "role");
}

static void assert_directory(char *given, const char *expected) {
    struct launch_config config = {.log_dir = given};
    FREED char *directory = log_plan_directory(&config, "node7");
    assert_string_equal(directory, expected);
}

TEST(directory_may_have_the_name_of_the_host) {
    char by_name[] = "/shared/${hostname}/logs";
    char by_short_name[] = "logs-${host}";
    char nothing[] = "/shared/$hostname/$$/${rank}";
    assert_directory(by_name, "/shared/node7/logs");
    assert_directory(by_short_name, "logs-node7");
    assert_directory(nothing, nothing);
    struct launch_config config = {0};
    assert_null(log_plan_directory(&config, "node7"));
}
