/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent calls of its program: hooks, and a rendezvous of the program's own. Both are called
 * in the agent's process, so what they have to say goes into files. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <muster/rendezvous.h>

#include "library/agent_fixture.h"

/* A node that the program places. */

struct placed {
    struct fixture fixture; /* the first, so that it is the context, too */
    int asked;
    int restarts;
    bool is_done;
};

static void ask_for_round(void *context, int restarts) {
    struct placed *placed = context;
    placed->asked++;
    placed->restarts = restarts;
}

static void say_done(void *context) {
    struct placed *placed = context;
    placed->is_done = true;
}

static void start_placed(struct placed *placed, int workers, const char *command) {
    *placed = (struct placed){.asked = 0};
    set_up(&placed->fixture, workers, command);
    placed->fixture.settings.next_rendezvous = ask_for_round;
    placed->fixture.settings.exit_barrier = say_done;
    placed->fixture.settings.run_id = "own";
    placed->fixture.settings.rdzv_backend = "mine";
    placed->fixture.settings.max_restarts = 1;
    start(&placed->fixture);
}

static void process_until_asked(struct placed *placed, int count) {
    while (placed->asked < count) {
        process_once(placed->fixture.agent);
    }
}

/* The last nodes of a world. */
static void place(struct placed *placed, int world_size) {
    struct muster_agent_round round = MUSTER_AGENT_ROUND;
    int workers = placed->fixture.settings.local_world_size;
    round.group_rank = 1;
    round.group_world_size = 2;
    round.global_rank = world_size - workers;
    round.world_size = world_size;
    round.role_world_size = workers;
    round.master_addr = "node0";
    round.master_port = 29400;
    process_until_asked(placed, placed->asked > 0 ? placed->asked : 1);
    assert_int_equal(muster_agent_set_round(placed->fixture.agent, &round, NULL), MUSTER_OK);
}

#define TELL                                                                                       \
    "printf \"$RANK $WORLD_SIZE $GROUP_RANK $ROLE_RANK $MASTER_ADDR $MASTER_PORT "                 \
    "$TORCHELASTIC_RUN_ID $TORCHELASTIC_RESTART_COUNT\" > $DIR/new; mv $DIR/new "                  \
    "$DIR/$WORLD_SIZE; "

static void assert_told(const struct placed *placed, const char *name, const char *expected) {
    char path[128];
    char told[256] = "";
    wait_for_file(placed->fixture.directory, name);
    snprintf(path, sizeof path, "%s/%s", placed->fixture.directory, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    told[fread(told, 1, sizeof told - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(told, expected);
}

TEST(program_places_its_node_in_one_round_after_the_other) {
    struct placed placed;
    start_placed(&placed, 1, TELL "while test $WORLD_SIZE = 5; do sleep 0.01; done");
    place(&placed, 5);
    assert_told(&placed, "5", "4 5 1 0 node0 29400 own 0");
    assert_int_equal(
        muster_agent_end_round(placed.fixture.agent, "a node has come", NULL), MUSTER_OK);
    process_until_asked(&placed, 2);
    assert_int_equal(placed.restarts, 0);
    place(&placed, 7);
    while (!placed.is_done) {
        process_once(placed.fixture.agent);
    }
    assert_told(&placed, "7", "6 7 1 0 node0 29400 own 0");
    assert_int_equal(muster_agent_end_round(placed.fixture.agent, "all are done", NULL), MUSTER_OK);
    const struct muster_run_result *result = wait_for_end(&placed.fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_int_equal(result->workers[0].global_rank, 6);
    assert_int_equal(placed.fixture.rendezvous_events, 0); /* the program has its own */
    tear_down(&placed.fixture);
}

TEST(failed_worker_costs_a_restart_and_a_round_that_never_comes_the_job) {
    struct placed placed;
    start_placed(&placed, 1, "exit 3");
    place(&placed, 2);
    process_until_asked(&placed, 2);
    assert_int_equal(placed.restarts, 1);
    assert_int_equal(
        muster_agent_end_round(placed.fixture.agent, "too few nodes are left", NULL), MUSTER_OK);
    const struct muster_run_result *result = wait_for_end(&placed.fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_STOPPED);
    assert_string_equal(result->message, "cannot join the job: too few nodes are left");
    tear_down(&placed.fixture);
}

TEST(program_that_has_no_exit_barrier_is_not_asked) {
    struct placed placed;
    start_placed(&placed, 2, "exit 0");
    placed.fixture.settings.exit_barrier = NULL;
    muster_agent_free(placed.fixture.agent);
    start(&placed.fixture);
    place(&placed, 4);
    assert_int_equal(wait_for_end(&placed.fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    tear_down(&placed.fixture);
}

/* A whole command line. */

FIXTURE_TEST_AFTER(
    options_may_be_a_whole_command_line, set_up(&fixture, 1, "echo $WORLD_SIZE $0 > $DIR/told")) {
    const char *const line[] = {"--nproc-per-node=2", "--no-python", "sh", "-c",
        "echo $WORLD_SIZE $0 > $DIR/$RANK", "word", NULL};
    fixture->settings.entrypoint = NULL;
    fixture->settings.args = NULL;
    fixture->settings.options = line;
    start(fixture);
    assert_int_equal(wait_for_end(fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    wait_for_file(fixture->directory, "0");
    wait_for_file(fixture->directory, "1");
}

/* Hooks. */

/* One line for each moment, in the order in which they came. */
static void note(
    const struct fixture *fixture, const char *moment, const struct muster_worker_group *group) {
    char path[128];
    snprintf(path, sizeof path, "%s/moments", fixture->directory);
    FILE *file = fopen(path, "a");
    if (file != NULL) {
        fprintf(
            file, "%s %d/%zu:%d ", moment, group->restarts, group->worker_count, (int)group->state);
        fclose(file);
    }
}

static void assert_moments(const struct fixture *fixture, const char *expected) {
    char path[128];
    char moments[1024] = "";
    snprintf(path, sizeof path, "%s/moments", fixture->directory);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    moments[fread(moments, 1, sizeof moments - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(moments, expected);
}

static enum muster_error start_workers(
    void *context, const struct muster_worker_group *group, struct muster_failure *failure) {
    (void)failure;
    note(context, "start", group);
    return MUSTER_OK;
}

static enum muster_error restart_workers(
    void *context, const struct muster_worker_group *group, struct muster_failure *failure) {
    (void)failure;
    note(context, "restart", group);
    return MUSTER_OK;
}

static void stop_workers(void *context, const struct muster_worker_group *group, int signal) {
    assert_int_equal(signal, SIGTERM);
    note(context, "stop", group);
}

static void shut_down(void *context, const struct muster_worker_group *group, int signal) {
    (void)signal;
    note(context, "shutdown", group);
}

static void set_hooks(struct fixture *fixture) {
    fixture->settings.start_workers = start_workers;
    fixture->settings.restart_workers = restart_workers;
    fixture->settings.stop_workers = stop_workers;
    fixture->settings.shutdown = shut_down;
}

FIXTURE_TEST_AFTER(
    hooks_come_at_their_moments, set_up(&fixture, 2, "exit $TORCHELASTIC_RESTART_COUNT")) {
    set_hooks(fixture);
    start(fixture);
    assert_int_equal(wait_for_end(fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_moments(fixture, "start 0/2:4 shutdown 0/2:2 ");
}

FIXTURE_TEST_AFTER(restart_is_between_a_stop_and_a_start,
    set_up(&fixture, 2, "test $TORCHELASTIC_RESTART_COUNT = 1 || test $RANK = 0")) {
    set_hooks(fixture);
    fixture->settings.max_restarts = 1;
    start(fixture);
    assert_int_equal(wait_for_end(fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_moments(fixture, "start 0/2:4 stop 1/2:1 restart 1/2:1 start 1/2:4 shutdown 1/2:2 ");
}

TEST(signal_stops_the_workers_and_shuts_down) {
    struct fixture fixture;
    set_up(&fixture, 1, ": > $DIR/runs; exec sleep 1000");
    set_hooks(&fixture);
    start(&fixture);
    wait_for_file(fixture.directory, "runs");
    assert_int_equal(muster_agent_stop(fixture.agent, 0, NULL), MUSTER_OK);
    assert_int_equal(wait_for_end(&fixture)->state, MUSTER_WORKER_STATE_STOPPED);
    assert_moments(&fixture, "start 0/1:4 stop 0/1:1 shutdown 0/1:1 ");
    tear_down(&fixture);
}

static enum muster_error refuse(
    void *context, const struct muster_worker_group *group, struct muster_failure *failure) {
    (void)context;
    (void)group;
    strcpy(failure->message, "GPU 3 has fallen off the bus");
    return MUSTER_ERROR_SYSTEM;
}

FIXTURE_TEST_AFTER(start_that_is_refused_ends_the_node_before_its_workers_run,
    set_up(&fixture, 1, ": > $DIR/runs")) {
    fixture->settings.start_workers = refuse;
    fixture->settings.max_restarts = 3;
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_FAILED);
    assert_int_equal(result->exit_status, 1);
    assert_string_equal(result->message, "start_workers: GPU 3 has fallen off the bus");
    char *path = text_format("%s/runs", fixture->directory);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
}

TEST(restart_that_is_refused_ends_the_node_with_its_failure) {
    struct fixture fixture;
    set_up(&fixture, 1, "echo x >> $DIR/runs; exit 7");
    fixture.settings.restart_workers = refuse;
    fixture.settings.max_restarts = 3;
    start(&fixture);
    const struct muster_run_result *result = wait_for_end(&fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_FAILED);
    assert_string_equal(result->message, "restart_workers: GPU 3 has fallen off the bus");
    assert_int_equal(result->failure_count, 1);
    assert_int_equal(result->failures[0].exitcode, 7);
    char *path = text_format("%s/runs", fixture.directory);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 2); /* it was written once */
    free(path);
    tear_down(&fixture);
}

static enum muster_error name_logs(void *context, const struct muster_worker_group *group,
    struct muster_worker_logs *out_logs, struct muster_failure *failure) {
    static char paths[2][3][128];
    const struct fixture *fixture = context;
    (void)failure;
    for (size_t i = 0; i < group->worker_count; i++) {
        static const char *const kinds[] = {"out", "err", "error"};
        for (int kind = 0; kind < 3; kind++) {
            snprintf(paths[i][kind], sizeof paths[i][kind], "%s/%s.%d.%d", fixture->directory,
                kinds[kind], group->workers[i].global_rank, group->restarts);
        }
        out_logs[i] = (struct muster_worker_logs){paths[i][0], paths[i][1], paths[i][2]};
    }
    return MUSTER_OK;
}

static void assert_file(const struct fixture *fixture, const char *name, const char *expected) {
    char path[128];
    char text[64] = "";
    snprintf(path, sizeof path, "%s/%s", fixture->directory, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

TEST(workers_write_where_the_program_says) {
    struct fixture fixture;
    set_up(&fixture, 2,
        "echo $RANK; echo x$RANK >&2; test $RANK = 0 || "
        "{ echo '{\"message\": \"why\"}' > $TORCHELASTIC_ERROR_FILE; exit 3; }");
    fixture.settings.reify_logs = name_logs;
    fixture.settings.redirects = "3";
    start(&fixture);
    const struct muster_run_result *result = wait_for_end(&fixture);
    assert_string_equal(result->root_cause->message, "why");
    assert_non_null(strstr(result->root_cause->error_file, "/error.1.0"));
    assert_file(&fixture, "out.1.0", "1\n");
    assert_file(&fixture, "err.1.0", "x1\n");
    tear_down(&fixture);
}

static int end_the_second(
    void *context, const struct muster_worker_group *group, struct muster_failure *failure) {
    struct fixture *fixture = context;
    fixture->ended++; /* in the agent's copy, where nobody counts ends */
    if (group->restarts > 0 || fixture->ended < 3) {
        return -1;
    }
    strcpy(failure->message, "its loss is no number");
    return group->workers[1].pid > 0 ? 1 : -1;
}

FIXTURE_TEST_AFTER(worker_that_the_program_finds_wrong_is_killed_and_counts_as_failed,
    set_up(&fixture, 2, "test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 1000")) {
    fixture->settings.monitor_workers = end_the_second;
    fixture->settings.monitor_interval = 0.01;
    fixture->settings.max_restarts = 1;
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_int_equal(result->restarts, 1);
}

FIXTURE_TEST_AFTER(
    report_says_why_the_program_has_killed_a_worker, set_up(&fixture, 2, "exec sleep 1000")) {
    fixture->settings.monitor_workers = end_the_second;
    fixture->settings.monitor_interval = 0.01;
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_FAILED);
    assert_int_equal(result->root_cause->local_rank, 1);
    assert_int_equal(result->root_cause->exitcode, -SIGKILL);
    assert_non_null(strstr(result->root_cause->evidence, "its loss is no number"));
}

TEST(program_looks_at_its_workers_while_they_run) {
    struct fixture fixture;
    const struct muster_worker_group *group = NULL;
    const struct muster_worker_group *later = NULL;
    set_up(&fixture, 2, "until test -e $DIR/go; do sleep 0.01; done");
    fixture.settings.role = "trainer";
    start(&fixture);
    assert_int_equal(muster_agent_worker_group(fixture.agent, &group, NULL), MUSTER_ERROR_STATE);
    do {
        process_once(fixture.agent);
    } while (muster_agent_worker_group(fixture.agent, &group, NULL) != MUSTER_OK ||
             group->state != MUSTER_WORKER_STATE_HEALTHY);
    assert_int_equal(group->worker_count, 2);
    assert_int_equal(group->group_rank, 0);
    assert_int_equal(group->group_world_size, 1);
    assert_string_equal(group->role, "trainer");
    assert_int_equal(group->workers[1].global_rank, 1);
    assert_int_equal(group->workers[1].role_world_size, 2);
    assert_int_equal(kill((pid_t)group->workers[1].pid, 0), 0);
    assert_true(group->master_port > 0);
    char *path = text_format("%s/go", fixture.directory);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    free(path);
    assert_int_equal(wait_for_end(&fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_int_equal(muster_agent_worker_group(fixture.agent, &later, NULL), MUSTER_OK);
    assert_int_equal(later->state, MUSTER_WORKER_STATE_SUCCEEDED);
    tear_down(&fixture);
}

/* A rendezvous whose record is a file. Whoever is there holds a lock of a file with its name. */

#define RECORD_MAXIMUM 65536

struct files {
    const char *directory;
    long version;
    char record[RECORD_MAXIMUM]; /* what was read last: a version, and the state */
    size_t length;
    int present; /* the file that is locked; 0: none */
};

static int open_in(const struct files *files, const char *name, int flags) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", files->directory, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

static enum muster_error get_state(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    struct files *files = context;
    int fd = open_in(files, "record", O_RDONLY);
    (void)failure;
    files->version = 0;
    if (fd < 0) {
        return MUSTER_OK;
    }
    ssize_t length = read(fd, files->record, sizeof files->record);
    close(fd);
    if (length < (ssize_t)sizeof files->version) {
        return MUSTER_ERROR_PROTOCOL;
    }
    memcpy(&files->version, files->record, sizeof files->version);
    *record = (struct muster_rendezvous_record){1, files->record + sizeof files->version,
        (size_t)length - sizeof files->version, &files->version, sizeof files->version, 0};
    return MUSTER_OK;
}

static void replace(const struct files *files, long version, const void *given, size_t length) {
    char old_path[512];
    char new_path[512];
    int fd = open_in(files, "record.new", O_WRONLY | O_CREAT | O_TRUNC);
    snprintf(old_path, sizeof old_path, "%s/record.new", files->directory);
    snprintf(new_path, sizeof new_path, "%s/record", files->directory);
    if (write(fd, &version, sizeof version) == (ssize_t)sizeof version &&
        write(fd, given, length) == (ssize_t)length) {
        (void)rename(old_path, new_path);
    }
    close(fd);
}

static enum muster_error set_state(void *context, const void *given, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    struct files *files = context;
    long expected = 0;
    int lock = open_in(files, "record.lock", O_RDWR | O_CREAT);
    if (token_length == sizeof expected) {
        memcpy(&expected, token, sizeof expected);
    }
    (void)flock(lock, LOCK_EX);
    (void)get_state(context, record, failure);
    if (files->version == expected) {
        replace(files, expected + 1, given, length);
        (void)get_state(context, record, failure);
        record->is_set = 1;
    }
    close(lock);
    return MUSTER_OK;
}

static enum muster_error present(void *context, const char *node, struct muster_failure *failure) {
    struct files *files = context;
    (void)failure;
    if (files->present > 0) {
        close(files->present);
        files->present = 0;
    }
    if (node != NULL) {
        files->present = open_in(files, node, O_RDWR | O_CREAT);
        (void)flock(files->present, LOCK_EX);
    }
    return MUSTER_OK;
}

static int is_gone(void *context, const char *node) {
    int fd = open_in(context, node, O_RDWR);
    int is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_free;
}

static void fill_in_backend(struct files *files, struct muster_rendezvous_backend *out_backend) {
    out_backend->name = "files";
    out_backend->get_state = get_state;
    out_backend->set_state = set_state;
    out_backend->present = present;
    out_backend->is_gone = is_gone;
    out_backend->context = files;
}

/* Three nodes in one directory. */

#define NODES 3

struct cluster {
    struct fixture nodes[NODES];
    struct files files;
    char store[128];
    struct muster_rendezvous *rendezvous;
};

/* Each worker says in what world it is, and waits for the end. */
static const char meet[] = ": > $HOME/$WORLD_SIZE.$RANK; until test -e $HOME/go; do sleep 0.01; "
                           "done";

static void set_up_cluster(struct cluster *cluster) {
    *cluster = (struct cluster){0};
    for (int i = 0; i < NODES; i++) {
        struct fixture *node = &cluster->nodes[i];
        set_up(node, 1, meet);
        node->env[3] = text_format("HOME=%s", cluster->nodes[0].directory);
        node->settings.rdzv_store = cluster->store;
        node->settings.max_restarts = 3;
    }
    cluster->files.directory = cluster->nodes[0].directory;
    snprintf(cluster->store, sizeof cluster->store, "%s/store", cluster->files.directory);
}

static void tear_down_cluster(struct cluster *cluster) {
    for (int i = NODES - 1; i >= 0; i--) {
        free(cluster->nodes[i].env[3]);
        tear_down(&cluster->nodes[i]);
    }
    muster_rendezvous_free(cluster->rendezvous);
}

static void make_rendezvous(struct cluster *cluster) {
    struct muster_rendezvous_settings settings = MUSTER_RENDEZVOUS_SETTINGS;
    struct muster_rendezvous_backend backend = MUSTER_RENDEZVOUS_BACKEND;
    fill_in_backend(&cluster->files, &backend);
    settings.run_id = "job";
    settings.backend = &backend;
    settings.min_nodes = 2;
    settings.max_nodes = NODES;
    settings.local_addr = "127.0.0.1";
    assert_int_equal(muster_rendezvous_new(&settings, &cluster->rendezvous, NULL), MUSTER_OK);
}

static void wait_for_world(const struct cluster *cluster, int size) {
    for (int rank = 0; rank < size; rank++) {
        char name[32];
        snprintf(name, sizeof name, "%d.%d", size, rank);
        wait_for_file(cluster->files.directory, name);
    }
}

static void let_workers_end(const struct cluster *cluster) {
    close(open_in(&cluster->files, "go", O_WRONLY | O_CREAT));
}

TEST(nodes_of_a_rendezvous_of_their_own_go_on_when_one_is_killed) {
    static struct cluster cluster;
    set_up_cluster(&cluster);
    make_rendezvous(&cluster);
    for (int i = 0; i < NODES; i++) {
        cluster.nodes[i].settings.rendezvous = cluster.rendezvous;
        start(&cluster.nodes[i]);
    }
    wait_for_world(&cluster, 3);
    assert_int_equal(muster_agent_kill(cluster.nodes[1].agent, NULL), MUSTER_OK);
    wait_for_world(&cluster, 2);
    let_workers_end(&cluster);
    for (int i = 0; i < NODES; i += 2) {
        const struct muster_worker_group *group = NULL;
        assert_int_equal(wait_for_end(&cluster.nodes[i])->state, MUSTER_WORKER_STATE_SUCCEEDED);
        assert_int_equal(
            muster_agent_worker_group(cluster.nodes[i].agent, &group, NULL), MUSTER_OK);
        assert_int_equal(group->group_world_size, 2);
        assert_string_equal(group->run_id, "job");
        assert_true(cluster.nodes[i].rendezvous_events > 0);
    }
    tear_down_cluster(&cluster);
}

static enum muster_error create(void *context,
    const struct muster_rendezvous_parameters *parameters,
    struct muster_rendezvous_backend *out_backend, struct muster_failure *failure) {
    static struct files files; /* of this agent's process */
    files.directory = parameters->endpoint;
    if (strcmp(parameters->configs, "kind=files") != 0) {
        strcpy(failure->message, parameters->configs);
        return MUSTER_ERROR_INVALID;
    }
    (void)context;
    fill_in_backend(&files, out_backend);
    return MUSTER_OK;
}

static void name_rendezvous(struct cluster *cluster) {
    for (int i = 0; i < NODES; i++) {
        struct muster_agent_settings *settings = &cluster->nodes[i].settings;
        settings->rdzv_backend = "files";
        settings->rdzv_endpoint = cluster->files.directory;
        settings->rdzv_configs = "kind=files";
        settings->run_id = "job";
        settings->min_nodes = NODES;
        settings->max_nodes = NODES;
    }
}

TEST(backend_that_is_registered_is_had_by_its_name) {
    static struct cluster cluster;
    set_up_cluster(&cluster);
    assert_int_equal(muster_rendezvous_register("files", create, NULL, NULL), MUSTER_OK);
    name_rendezvous(&cluster);
    for (int i = 0; i < NODES; i++) {
        start(&cluster.nodes[i]);
    }
    wait_for_world(&cluster, NODES);
    let_workers_end(&cluster);
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(wait_for_end(&cluster.nodes[i])->state, MUSTER_WORKER_STATE_SUCCEEDED);
    }
    tear_down_cluster(&cluster);
}

TEST(backend_that_cannot_be_created_ends_the_agent) {
    static struct cluster cluster;
    set_up_cluster(&cluster);
    assert_int_equal(muster_rendezvous_register("files", create, NULL, NULL), MUSTER_OK);
    name_rendezvous(&cluster);
    cluster.nodes[0].settings.rdzv_configs = "kind=none";
    start(&cluster.nodes[0]);
    const struct muster_run_result *result = wait_for_end(&cluster.nodes[0]);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_STOPPED);
    assert_int_equal(result->exit_status, 1);
    assert_string_equal(result->message, "the rendezvous backend 'files': kind=none");
    tear_down_cluster(&cluster);
}
