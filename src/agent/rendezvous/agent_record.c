/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_record.h"

#include <stdlib.h>
#include <string.h>

#include "agent/rendezvous/agent_admission.h"
#include "agent/rendezvous/agent_learned_list.h"
#include "agent/rendezvous/agent_neighbours.h"
#include "agent/rendezvous/agent_program.h"
#include "agent/rendezvous/agent_root_cause.h"
#include "agent/rendezvous/agent_store_host.h"
#include "agent/rendezvous/agent_succession.h"
#include "agent/rendezvous/agent_unready.h"
#include "base/memory.h"
#include "host/process/guardian.h"

struct agent_record {
    struct event_loop *loop;
    const struct agent_rendezvous_settings *settings;
    struct rendezvous_backend *backend;
    struct agent_store_host *host; /* perhaps of no store: another node's then; or NULL, and … */
    struct agent_succession *succession; /* … a register decides who hosts it */
    struct agent_root_cause *root_cause;
    struct agent_learned_list *learned_list;
    struct agent_program *program;
    struct agent_admission *admission;
    struct agent_unready *unready;
    struct agent_neighbours *neighbours; /* NULL: with a register each job has a store of its own */
    struct event_timer *timer;
    struct text tried;                /* the address that agent_record_reached_name told last */
    void (*connected)(void *context); /* anew, to whichever host; NULL: nobody wants to know */
    void *connected_context;
    bool was_connected;   /* to the store, at some time */
    bool is_lost;         /* the connection was lost, and there is no new one yet */
    bool is_calling_roll; /* and waits for the answers */
    bool is_freed;        /* the end of a look that is cut short by it is no news */
};

static void post(struct agent_record *record, struct rendezvous_event event) {
    agent_mailbox_post(&record->settings->mailbox,
        &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

static void post_kind(struct agent_record *record, enum rendezvous_event_kind kind) {
    post(record, (struct rendezvous_event){.kind = kind});
}

static void post_membership(struct agent_record *record, struct membership_event event) {
    agent_mailbox_post(&record->settings->mailbox,
        &(struct node_event){.part = NODE_MEMBERSHIP, .membership = event});
}

/* What the backend reports. */

static void take_connected(struct agent_record *record, struct rendezvous_event event) {
    record->was_connected = true;
    record->is_lost = false;
    agent_store_host_stop_asking(record->host);
    event.connected.is_host = agent_store_host_is_hosting(record->host);
    agent_program_take_connected(record->program);
    post(record, event);
}

/* The caller frees it. */
static char *explain_loss(const struct agent_record *record, const char *reason) {
    const char *where = record->settings->node->membership.where;
    if (record->is_lost) {
        return text_format("the job's store at %s is lost, and the job with it: %s", where, reason);
    }
    if (record->was_connected) {
        return text_format("this node is cut off from the job's store at %s: %s", where, reason);
    }
    bool is_file = record->settings->config->dynamic.file != NULL;
    struct text hint = {0};
    if (record->host != NULL) {
        agent_store_host_write_hint(record->host, &hint);
    }
    char *text = text_format("%s%s%s", reason,
        is_file ? ""
                : "; is --rdzv-endpoint right, and has the node it names, which hosts the "
                  "store, been started?",
        text_string(&hint));
    text_clear(&hint);
    return text;
}

static void take_loss(struct agent_record *record, struct rendezvous_event event) {
    char *text = event.lost.is_own_doing ? memory_duplicate_string(event.lost.reason)
                                         : explain_loss(record, event.lost.reason);
    if (record->was_connected && !record->is_lost) {
        log_warning(record->settings->log, "%s", text);
    }
    record->is_lost = record->was_connected;
    record->is_calling_roll = false;
    agent_store_host_stop_asking(record->host);
    event.lost.reason = text;
    post(record, event);
    free(text);
}

static void told(void *context, const struct rendezvous_event *event) {
    struct agent_record *record = context;
    if (record->succession != NULL && agent_succession_take(record->succession, event)) {
        record->is_calling_roll = false;
        if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
            agent_program_take_connected(record->program);
            if (record->connected != NULL) {
                record->connected(record->connected_context);
            }
        }
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        take_connected(record, *event);
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        take_loss(record, *event);
    } else {
        record->is_calling_roll &= event->kind != RENDEZVOUS_EVENT_ROLL_ANSWERED;
        post(record, *event);
    }
}

/* What the store's host and the root cause report. */

static void tell_hosting(struct agent_record *record) {
    post_membership(record, (struct membership_event){.kind = MEMBERSHIP_EVENT_HOSTING,
                                .port = agent_store_host_port(record->host)});
}

static void now_hosting(void *context) {
    struct agent_record *record = context;
    tell_hosting(record);
    rendezvous_backend_redirect(record->backend, agent_store_host_address(record->host),
        agent_store_host_port(record->host));
}

static void write_obstacle(void *context, struct text *out) {
    const struct agent_record *record = context;
    if (record->backend != NULL) {
        rendezvous_backend_write_obstacle(record->backend, out);
    }
}

/* By which others have come to this machine, or it has come to them. */
static void write_tried_address(const struct agent_record *record, struct text *out) {
    text_append(out, record->host != NULL ? agent_store_host_reached_address(record->host)
                                          : agent_succession_reached_address(record->succession));
    if (out->length == 0) {
        rendezvous_backend_write_own(record->backend, out);
    }
}

/* Where the name leads to the address, it is as good. */
static bool leads_to(const char *addresses_of_name, const char *address) {
    char *list = text_format(" %s", addresses_of_name);
    char *word = text_format(" %s ", address);
    bool is_there = strstr(list, word) != NULL;
    free(word);
    free(list);
    return is_there;
}

const char *agent_record_reached_name(struct agent_record *record) {
    const char *name = record->host != NULL ? agent_store_host_reached_name(record->host) : NULL;
    if (name != NULL || record->settings->config->dynamic.file != NULL) {
        return name;
    }
    text_clear(&record->tried);
    write_tried_address(record, &record->tried);
    bool is_better = record->tried.length > 0 &&
                     !leads_to(record->settings->name_leads_to, text_string(&record->tried));
    return is_better ? text_string(&record->tried) : NULL;
}

static void node_gone(void *context, const struct node_identity *identity, bool has_finished) {
    post(context, (struct rendezvous_event){
                      .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {*identity, has_finished}});
}

static void node_wished(
    void *context, const struct node_identity *identity, const struct rendezvous_wish *wish) {
    post(context,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WISHED, .wished = {*identity, *wish}});
}

static void stranger_wrote(void *context) {
    post_kind(context, RENDEZVOUS_EVENT_STRANGER_WROTE);
}

static void root_cause_learnt(void *context, const struct failure_account *account) {
    post_membership(context,
        (struct membership_event){.kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, .account = account});
}

static void root_cause_looked(void *context) {
    struct agent_record *record = context;
    if (!record->is_freed) {
        post_membership(
            record, (struct membership_event){.kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED});
    }
}

/* What is taken from others is imported here: that is only for nodes that prove themselves, over a
 * connection on which they have. A file needs no proof, but holds no list. */
static bool shares_list(const struct agent_record *record) {
    const struct agent_rendezvous_settings *settings = record->settings;
    return settings->key != NULL && settings->config->dynamic.file == NULL;
}

/* Where nobody warms, or the job has learned nothing yet, the node joins at once. */
static void list_looked_for(void *context, struct slice text) {
    struct agent_record *record = context;
    const struct agent_rendezvous_settings *settings = record->settings;
    bool is_warming = !record->is_freed && text.length > 0 && settings->warm != NULL &&
                      settings->warm(settings->warm_context, text);
    if (!record->is_freed && !is_warming) {
        post_kind(record, RENDEZVOUS_EVENT_WARMED);
    }
}

static void look_for_list(struct agent_record *record) {
    if (shares_list(record)) {
        agent_learned_list_look(record->learned_list);
        return;
    }
    if (record->settings->config->dynamic.file == NULL) {
        log_info(record->settings->log,
            "the job runs: this node joins it without standby workers, since what these would "
            "import is taken only from nodes that prove themselves (--token-file, or munge)");
    }
    post_kind(record, RENDEZVOUS_EVENT_WARMED);
}

static void doubted(void *context, bool is_doubted) {
    struct agent_record *record = context;
    agent_succession_doubt(record->succession, is_doubted);
}

static void judged(void *context, const char *misplaced) {
    post_membership(context,
        (struct membership_event){.kind = MEMBERSHIP_EVENT_MISPLACED, .reason = misplaced});
}

static void left(void *context) {
    post_membership(context, (struct membership_event){.kind = MEMBERSHIP_EVENT_LEFT});
}

static void timer_fired(void *context) {
    post_kind(context, RENDEZVOUS_EVENT_TIMER_FIRED);
}

/* Life. */

static struct duration answer_timeout(const struct agent_record *record) {
    const struct rendezvous_settings *settings = &record->settings->config->dynamic.settings;
    return (struct duration){
        settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt};
}

/* Few nodes cost their host little, and they may meet over any network. */
static struct duration calm_after(const struct launch_config *config) {
    return config->dynamic.settings.delegates ? config->dynamic.settings.calm_after
                                              : (struct duration){0};
}

/* A host that hears rarely of each node would take long to find that one stands still. Its guardian
 * finds it at once. */
static bool is_heard_rarely(const struct rendezvous_settings *settings) {
    return rendezvous_settings_beat(settings).nanoseconds >
           settings->keep_alive_interval.nanoseconds;
}

static void held(void *context, int fd) {
    const struct agent_record *record = context;
    guardian_hold_connection(record->settings->guardian, fd);
}

static struct rendezvous_backend *make_backend(struct agent_record *record) {
    const struct launch_config *config = record->settings->config;
    struct rendezvous_backend_settings backend = {
        .path = config->dynamic.file,
        .run_id = record->settings->preparation->run_id,
        .key = record->settings->key,
        .minimum_nodes = config->minimum_nodes,
        .maximum_nodes = config->maximum_nodes,
        .silence_timeout = config->dynamic.settings.silence_timeout,
        .answer_timeout = answer_timeout(record),
        .calm_after = calm_after(config),
        .delegates = config->dynamic.settings.delegates,
        .follows = record->succession != NULL,
        .observer = {.told = told,
            .doubted = record->succession != NULL ? doubted : NULL,
            .held = is_heard_rarely(&config->dynamic.settings) ? held : NULL,
            .context = record},
    };
    return rendezvous_backend_new(record->loop, &backend);
}

static struct agent_root_cause *make_root_cause(struct agent_record *record) {
    struct agent_root_cause_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
        .learnt = root_cause_learnt,
        .looked = root_cause_looked,
        .context = record,
    };
    return agent_root_cause_new(record->backend, &settings);
}

static struct agent_learned_list *make_learned_list(struct agent_record *record) {
    struct agent_learned_list_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .answer_timeout = answer_timeout(record),
        .answered = list_looked_for,
        .context = record,
    };
    return agent_learned_list_new(record->backend, &settings);
}

static struct agent_program *make_program(struct agent_record *record) {
    struct agent_program_settings settings = {
        .config = record->settings->config,
        .run_id = record->settings->preparation->run_id,
        .where = record->settings->node->membership.where,
        .address = record->settings->node->membership.address,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
        .judged = judged,
        .context = record,
    };
    return agent_program_new(record->backend, &settings);
}

static struct agent_admission *make_admission(struct agent_record *record) {
    struct agent_admission_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
    };
    return agent_admission_new(record->loop, record->backend, &settings);
}

/* Half as long again as an agent waits before it writes its next sign of life. */
static struct agent_neighbours *make_neighbours(struct agent_record *record) {
    int64_t interval = record->settings->config->dynamic.settings.keep_alive_interval.nanoseconds;
    struct agent_neighbours_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
        .rest = {interval + interval / 2},
    };
    return record->succession != NULL
               ? NULL
               : agent_neighbours_new(record->loop, record->backend, &settings);
}

static enum failure_code host_store(struct agent_record *record, struct failure *failure) {
    if (record->settings->config->dynamic.register_engine != NULL) {
        return agent_succession_new(record->loop, record->settings, &record->succession, failure);
    }
    struct agent_store_host_settings settings = {
        .config = record->settings->config,
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .key = record->settings->key,
        .operations = record->settings->record_store_operations,
        .now_hosting = now_hosting,
        .gone = node_gone,
        .record_written = stranger_wrote,
        .wished = node_wished,
        .write_obstacle = write_obstacle,
        .context = record,
    };
    enum failure_code code = agent_store_host_new(record->loop, &settings, &record->host, failure);
    if (code == FAILURE_NONE && agent_store_host_is_hosting(record->host)) {
        tell_hosting(record);
    }
    return code;
}

enum failure_code agent_record_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_record **out_record,
    struct failure *failure) {
    struct agent_record initial = {.loop = loop, .settings = settings};
    struct agent_record *record = memory_duplicate(&initial, sizeof initial);
    enum failure_code code = host_store(record, failure);
    *out_record = record;
    if (code != FAILURE_NONE) {
        return code;
    }
    record->timer = event_timer_new(loop, timer_fired, record);
    record->backend = make_backend(record);
    if (record->succession != NULL) {
        agent_succession_use(record->succession, record->backend);
    }
    record->root_cause = make_root_cause(record);
    record->learned_list = make_learned_list(record);
    record->neighbours = make_neighbours(record);
    record->program = make_program(record);
    record->admission = make_admission(record);
    record->unready =
        agent_unready_new(record->backend, settings->preparation->run_id, answer_timeout(record));
    return FAILURE_NONE;
}

void agent_record_free(struct agent_record *record) {
    if (record == NULL) {
        return;
    }
    record->is_freed = true;
    rendezvous_backend_free(record->backend);
    agent_root_cause_free(record->root_cause);
    agent_learned_list_free(record->learned_list);
    agent_neighbours_free(record->neighbours);
    agent_program_free(record->program);
    agent_admission_free(record->admission);
    agent_unready_free(record->unready);
    agent_store_host_free(record->host);
    agent_succession_free(record->succession);
    event_timer_free(record->timer);
    text_clear(&record->tried);
    free(record);
}

void agent_record_tell_connected(
    struct agent_record *record, void (*connected)(void *context), void *context) {
    record->connected = connected;
    record->connected_context = context;
}

static void write_obstacle_of_store(const struct agent_record *record, struct text *out) {
    size_t length = out->length;
    rendezvous_backend_write_obstacle(record->backend, out);
    if (out->length > length && record->host != NULL) {
        agent_store_host_write_hint(record->host, out);
    }
}

void agent_record_write_obstacle(const struct agent_record *record, struct text *out) {
    size_t length = out->length;
    if (record->succession != NULL) {
        agent_succession_write_obstacle(record->succession, out);
    }
    if (out->length == length) {
        write_obstacle_of_store(record, out);
    }
}

struct rendezvous_backend *agent_record_backend(const struct agent_record *record) {
    return record->backend;
}

/* What is asked. */

static void connect_to_store(struct agent_record *record, const struct rendezvous_effect *effect) {
    rendezvous_backend_connect(record->backend, &(struct rendezvous_backend_trying){
                                                    .host = agent_store_host_address(record->host),
                                                    .port = agent_store_host_port(record->host),
                                                    .deadline = effect->deadline,
                                                    .refusal_patience = effect->refusal_patience,
                                                });
}

static void serve_others(struct agent_record *record, const struct rendezvous_effect *effect) {
    if (record->succession != NULL) {
        agent_succession_serve(record->succession, effect);
    } else {
        agent_store_host_tell(record->host, effect);
    }
}

void agent_record_perform(struct agent_record *record, const struct rendezvous_effect *effect) {
    struct rendezvous_backend *backend = record->backend;
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_CONNECT:
        connect_to_store(record, effect);
        break;
    case RENDEZVOUS_EFFECT_PRESENT:
        rendezvous_backend_present(backend, effect);
        break;
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
    case RENDEZVOUS_EFFECT_CUT_OFF:
        serve_others(record, effect);
        break;
    case RENDEZVOUS_EFFECT_BEAT:
        rendezvous_backend_beat(backend);
        break;
    case RENDEZVOUS_EFFECT_FETCH:
        rendezvous_backend_fetch(backend);
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        if (record->succession != NULL) {
            agent_succession_see(record->succession, effect->write.state);
        }
        rendezvous_backend_write(backend, effect->write.state, effect->write.is_quiet);
        break;
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
        rendezvous_backend_tell_watchers(backend);
        break;
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
        rendezvous_backend_count_finished(backend, effect->round);
        break;
    case RENDEZVOUS_EFFECT_CALL_ROLL:
        record->is_calling_roll = true;
        rendezvous_backend_call_roll(backend, effect->roll.round, effect->roll.number);
        break;
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
        rendezvous_backend_answer_roll(backend, effect->roll.round, effect->roll.number);
        break;
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        event_timer_set(record->timer, effect->deadline);
        break;
    case RENDEZVOUS_EFFECT_WARM:
        look_for_list(record);
        break;
    case RENDEZVOUS_EFFECT_WORLD:
    case RENDEZVOUS_EFFECT_RELEASED:
    case RENDEZVOUS_EFFECT_ROUND_OVER:
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
    case RENDEZVOUS_EFFECT_CLOSED:
    case RENDEZVOUS_EFFECT_FAILED:
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
    case RENDEZVOUS_EFFECT_SETTLED:
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break; /* the membership's */
    }
}

void agent_record_perform_succession(
    struct agent_record *record, const struct succession_effect *effect) {
    agent_succession_perform(record->succession, effect);
}

void agent_record_publish_root_cause(
    struct agent_record *record, int64_t round, const struct failure_account *account) {
    agent_root_cause_publish(record->root_cause, round, account);
}

void agent_record_publish_learned_list(struct agent_record *record, struct slice text) {
    if (shares_list(record)) {
        agent_learned_list_publish(record->learned_list, text);
    }
}

void agent_record_note_world(struct agent_record *record, const struct rendezvous_effect *effect) {
    agent_program_take_world(record->program, effect);
}

void agent_record_note_parking(struct agent_record *record, enum rendezvous_parking parking) {
    agent_program_take_parking(record->program, parking);
}

void agent_record_note_admission(
    struct agent_record *record, const struct rendezvous_admission *planned) {
    agent_admission_note(record->admission, planned);
}

bool agent_record_look_for_admission(struct agent_record *record) {
    return agent_admission_look(record->admission);
}

void agent_record_describe_admission(const struct agent_record *record, struct text *out) {
    agent_admission_describe(record->admission, out);
}

void agent_record_look_for_neighbours(struct agent_record *record) {
    agent_neighbours_look(record->neighbours);
}

void agent_record_stop_looking_for_neighbours(struct agent_record *record) {
    agent_neighbours_stop(record->neighbours);
}

bool agent_record_look_for_unready(
    struct agent_record *record, const struct rendezvous_state *state) {
    return agent_unready_look(record->unready, state);
}

void agent_record_list_unready(
    const struct agent_record *record, int64_t round, struct text_list *out_names) {
    agent_unready_list(record->unready, round, out_names);
}

void agent_record_look_for_root_cause(struct agent_record *record, int64_t round) {
    agent_root_cause_look(record->root_cause, round);
}

void agent_record_cancel_roll(struct agent_record *record) {
    if (record->is_calling_roll) {
        record->is_calling_roll = false;
        rendezvous_backend_cancel_waits(record->backend);
    }
}

void agent_record_disconnect(struct agent_record *record) {
    rendezvous_backend_disconnect(record->backend);
}

void agent_record_give_up(struct agent_record *record, const char *reason) {
    rendezvous_backend_disconnect(record->backend);
    if (record->succession != NULL) {
        agent_succession_give_up(record->succession);
        post(record, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FENCED, .reason = reason});
        return;
    }
    take_loss(record, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                          .lost = {.reason = reason, .is_silent = true, .is_own_doing = true}});
}

void agent_record_linger(struct agent_record *record, struct duration patience) {
    size_t own = rendezvous_backend_connection_count(record->backend);
    if (record->succession != NULL) {
        agent_succession_linger(record->succession, patience, left, record);
        return;
    }
    agent_store_host_linger(record->host, own, patience, left, record);
}
