/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "hang_fixture.h"
#include "host/failure/hang_evidence.h"
#include "host/loop/clock.h"
#include "host/standby/memory_file.h"

static void learn(void *context, const struct hang_summary *summary) {
    hang_summary_clear(context);
    hang_summary_copy(summary, context);
}

static void collect(
    struct hang_fixture *fixture, const char *output, struct hang_summary *summary) {
    struct duration a_minute = {60000000000};
    struct hang_evidence_request request = {
        .pid = fixture->process.pid,
        .reason = "the test wants it",
        .path = fixture->path,
        .outputs = {output},
        .end = instant_after(clock_now(), a_minute),
        .learnt = learn,
        .context = summary,
    };
    *summary = (struct hang_summary){0};
    hang_evidence_collect(&request);
}

TEST(the_report_has_all_sections) {
    struct hang_fixture fixture;
    struct hang_summary summary;
    hang_fixture_init(&fixture, "exec 7</dev/zero; sh -c 'echo; kill -STOP $$' & wait");
    collect(&fixture, NULL, &summary);
    char *heading = text_format("=== process %d before it is ended, ", (int)fixture.process.pid);
    hang_fixture_expect(&fixture, heading);
    hang_fixture_expect(&fixture, ": the test wants it\n");
    hang_fixture_expect(&fixture, ": sh -c exec 7</dev/zero;");
    hang_fixture_expect(&fixture, "  thread ");
    hang_fixture_expect(&fixture, "  7 -> /dev/zero\n");
    hang_fixture_expect(&fixture, "child, or child's child: process ");
    hang_fixture_expect(&fixture, ": sh -c echo; kill -STOP $$\n");
    assert_true(summary.state == 'S' || summary.state == 'R');
    assert_int_equal(summary.thread_count, 1);
    free(heading);
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

TEST(the_last_lines_of_the_output_are_kept) {
    struct hang_fixture fixture;
    struct hang_summary summary;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    char *output = temporary_tree_path(&fixture.tree, "stdout.log");
    FILE *file = fopen(output, "w");
    for (int i = 1; i <= 5000; i++) {
        fprintf(file, "line %d\n", i);
    }
    fclose(file);
    collect(&fixture, output, &summary);
    hang_fixture_expect(&fixture, "stdout.log:\nline 4981\n");
    hang_fixture_expect(&fixture, "\nline 5000\n");
    free(output);
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

TEST(a_dead_process_leaves_a_report_that_says_so) {
    struct hang_fixture fixture;
    struct hang_summary summary;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    struct process process = fixture.process;
    fixture.process = processes_start_shell("exit 0", -1, -1);
    kill(process.pid, SIGKILL);
    processes_wait(&process);
    struct process replacement = fixture.process;
    fixture.process.pid = process.pid;
    collect(&fixture, NULL, &summary);
    hang_fixture_expect(&fixture, "the process is gone");
    fixture.process = replacement;
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

/* Whatever Python is on the PATH: when its memory cannot be read, it is asked. */
TEST(a_python_is_told_of_by_its_line) {
    struct hang_fixture fixture;
    struct hang_summary summary = {0};
    struct failure failure;
    struct hang_evidence_request request = {.reason = "the test wants it",
        .dump = {.signal = 50},
        .learnt = learn,
        .context = &summary};
    assert_int_equal(
        memory_file_new("muster-test", true, &request.dump.fd, &failure), FAILURE_NONE);
    char *script =
        text_format("exec python3 -c 'import faulthandler, os, time\n"
                    "fd = os.open(f\"/proc/{os.getppid()}/fd/%d\", os.O_WRONLY | os.O_APPEND)\n"
                    "faulthandler.register(50, file=fd, all_threads=True)\n"
                    "def step():\n    print(flush=True); time.sleep(1000)\nstep()'",
            request.dump.fd);
    hang_fixture_init(&fixture, script);
    request.pid = fixture.process.pid;
    request.path = fixture.path;
    request.end = fixture.report.end;
    assert_true(hang_evidence_collect(&request));
    assert_non_null(summary.place);
    assert_string_equal(summary.place, "<string>:5 in step");
    hang_fixture_expect(&fixture, "    <string>:6 in <module>\n");
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
    close(request.dump.fd);
    free(script);
}
