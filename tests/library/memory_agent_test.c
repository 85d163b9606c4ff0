/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent of a program whose memory is limited while it runs, as by `prlimit --pid`: it ends its
 * workers and itself, and the program hears why. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "library/agent_fixture.h"
#include "library/process_look.h"

#define SENTENCE "there is no memory for the agent"
/* What is left in KiB; NOTHING takes also what there is. Whether the agent can end in order then is
 * a matter of what its reserves become free in time for. */
#define NOTHING (-1)

/* Each timer stays in the agent's memory. "$$$$" is "$$" in arguments. */
static const char flood[] = "echo $$$$ >\"$DIR/pid.$RANK\"; : >\"$DIR/ready.$RANK\"; until [ -e "
                            "\"$DIR/go\" ]; do sleep 0.01; done; "
                            "pad=$(printf '%0800d' 0); n=0; while :; do n=$((n + 1)); printf "
                            "'{\"version\": 1, \"pid\": %d, \"scope_id\": \"%d%s\", "
                            "\"expiration_time\": 4e9, \"signal\": 9}\\n' "
                            "$$$$ $n $pad; done >\"$TORCHELASTIC_TIMER_FILE\"";

static void set_up_flood(struct fixture *fixture) {
    set_up(fixture, 2, flood);
    fixture->env[3] = (char *)(uintptr_t) "TORCHELASTIC_ENABLE_FILE_TIMER=1";
}

static char *path_of(const struct fixture *fixture, const char *name, int rank) {
    return text_format("%s/%s.%d", fixture->directory, name, rank);
}

static void wait_for_workers(const struct fixture *fixture) {
    for (int rank = 0; rank < 2; rank++) {
        char *path = path_of(fixture, "ready", rank);
        while (access(path, F_OK) != 0) {
            usleep(5000);
        }
        free(path);
    }
}

static void let_go(const struct fixture *fixture) {
    char *path = text_format("%s/go", fixture->directory);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    free(path);
}

static size_t data_of(pid_t pid) {
    char *path = text_format("/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    char line[256];
    size_t kib = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmData:", 7) == 0) {
            kib = strtoul(line + 7, NULL, 10);
        }
    }
    fclose(file);
    free(path);
    return kib << 10;
}

static void leave(pid_t pid, int left) {
    struct rlimit limit = {0, RLIM_INFINITY};
    limit.rlim_cur = left == NOTHING ? 1 : data_of(pid) + ((size_t)left << 10);
    assert_int_equal(prlimit(pid, RLIMIT_DATA, &limit, NULL), 0);
}

static void assert_workers_are_gone(const struct fixture *fixture) {
    for (int rank = 0; rank < 2; rank++) {
        char *path = path_of(fixture, "pid", rank);
        FILE *file = fopen(path, "r");
        int pid = 0;
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%d", &pid), 1);
        for (int i = 0; i < 2000 && kill(pid, 0) == 0; i++) {
            usleep(5000); /* the guardian ends them where the agent could not */
        }
        assert_int_equal(kill(pid, 0), -1);
        assert_int_equal(errno, ESRCH);
        fclose(file);
        free(path);
    }
}

static const int levels[] = {0, 1024, 8192, NOTHING};
#define LEVELS (sizeof levels / sizeof *levels)

TEST(agent_apart_says_why_it_has_ended) {
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    for (size_t i = 0; i < LEVELS; i++) {
        struct fixture fixture;
        const struct muster_run_result *result;
        long pid;
        set_up_flood(&fixture);
        start(&fixture);
        wait_for_workers(&fixture);
        assert_int_equal(muster_agent_pid(fixture.agent, &pid, NULL), MUSTER_OK);
        leave((pid_t)pid, levels[i]);
        let_go(&fixture);
        while (muster_agent_result(fixture.agent, &result, NULL) == MUSTER_ERROR_STATE) {
            process_once(fixture.agent);
        }
        assert_int_equal(fixture.ended, 1);
        assert_int_equal(result->exit_status, 1);
        if (levels[i] != NOTHING || result->state != MUSTER_WORKER_STATE_UNKNOWN) {
            assert_int_equal(result->state, MUSTER_WORKER_STATE_FAILED);
        }
        assert_non_null(result->message);
        assert_int_equal(strncmp(result->message, SENTENCE, strlen(SENTENCE)), 0);
        assert_workers_are_gone(&fixture);
        fixture.env[3] = NULL;
        tear_down(&fixture);
    }
}

TEST(agent_in_its_program_is_an_error) {
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    for (size_t i = 0; i < LEVELS; i++) {
        struct fixture fixture;
        int end;
        set_up_flood(&fixture);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            enum muster_error error = muster_agent_run(&fixture.settings, NULL, &fixture.failure);
            _exit(error == MUSTER_ERROR_MEMORY && fixture.ended == 1 &&
                          strcmp(fixture.failure.message, SENTENCE) == 0
                      ? 0
                      : 2);
        }
        wait_for_workers(&fixture);
        leave(child, levels[i]);
        let_go(&fixture);
        assert_int_equal(waitpid(child, &end, 0), child);
        assert_true(WIFEXITED(end));
        if (levels[i] != NOTHING || WEXITSTATUS(end) != 1) {
            assert_int_equal(WEXITSTATUS(end), 0);
        }
        assert_workers_are_gone(&fixture);
        fixture.env[3] = NULL;
        tear_down(&fixture);
    }
}
