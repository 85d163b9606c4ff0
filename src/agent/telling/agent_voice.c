/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_voice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Whether another node says what all would say, as far as is known from the first on: by
 * --node-rank. */
static bool is_anothers(const struct launch_config *config) {
    return config->rendezvous == LAUNCH_RENDEZVOUS_STATIC && config->maximum_nodes > 1 &&
           config->node_rank != 0;
}

static bool is_each_heard(const struct agent_voice *voice) {
    return voice->log->threshold <= LOG_LEVEL_DEBUG;
}

static void say_all(const struct agent_voice *voice, const struct text_list *lines) {
    for (size_t i = 0; i < lines->count; i++) {
        log_warning(voice->log, "%s", lines->items[i]);
    }
}

static void say_place(struct agent_voice *voice) {
    if (voice->is_place_settled) {
        return;
    }
    voice->is_place_settled = true;
    if (voice->launch.length > 0) {
        log_info(voice->log, "%s", text_string(&voice->launch));
        text_clear(&voice->launch);
    }
    say_all(voice, &voice->config->meeting_warnings);
}

/* The node for which there is one is known to be the first. */
static void say_notice(const struct agent_voice *voice) {
    if (voice->config->notice != NULL) {
        char *line = text_format("%s\n", voice->config->notice);
        log_sink_write_text(voice->sink, line);
        free(line);
    }
}

static void say_threads(struct agent_voice *voice, int worker_count) {
    if (!voice->is_threads_settled && voice->config->sets_omp_num_threads && worker_count > 1) {
        log_warning(voice->log,
            "OMP_NUM_THREADS is not set: each of the %d workers gets 1, so that together they do "
            "not overload this machine; set it to what suits your program",
            worker_count);
    }
    voice->is_threads_settled = true;
}

static bool may_be_anothers(const struct launch_config *config) {
    return config->rendezvous != LAUNCH_RENDEZVOUS_SINGLE && config->maximum_nodes > 1;
}

static void hold(struct agent_voice *voice, const struct text_list *lines) {
    for (size_t i = 0; i < lines->count; i++) {
        text_list_add(&voice->held, lines->items[i]);
    }
}

static void say_held(struct agent_voice *voice) {
    say_all(voice, &voice->held);
    text_list_clear(&voice->held);
}

/* A number, so that no stranger who reads the store reads what a user has written. */
static void append_number(const char *line, struct text *out) {
    static const uint64_t key[2] = {0, 0};
    text_append_format(out, " %016" PRIx64, keyed_hash(key, slice_from_string(line)));
}

static bool has_word(struct slice words, const char *word) {
    return memmem(words.data, words.length, word, strlen(word)) != NULL;
}

void agent_voice_begin(struct agent_voice *voice) {
    const struct launch_config *config = voice->config;
    voice->is_place_settled = is_anothers(config);
    if (may_be_anothers(config)) {
        hold(voice, &config->warnings);
    } else {
        say_all(voice, &config->warnings);
    }
    if (config->maximum_nodes == 1 || config->rendezvous == LAUNCH_RENDEZVOUS_STATIC) {
        say_place(voice);
    }
    say_notice(voice);
}

void agent_voice_count(
    struct agent_voice *voice, int worker_count, const struct text_list *misfits) {
    if (may_be_anothers(voice->config)) {
        hold(voice, misfits);
    } else {
        say_all(voice, misfits);
    }
    if (voice->config->maximum_nodes == 1) {
        say_threads(voice, worker_count);
    }
}

void agent_voice_launch(struct agent_voice *voice, const char *lines) {
    if (is_each_heard(voice) || (voice->is_place_settled && !is_anothers(voice->config))) {
        log_info(voice->log, "%s", lines);
    } else if (!voice->is_place_settled) {
        text_append(&voice->launch, lines);
    }
}

const char *agent_voice_write_words(struct agent_voice *voice, const char *name) {
    if (voice->held.count == 0) {
        return NULL;
    }
    text_clear(&voice->words);
    text_append(&voice->words, name);
    for (size_t i = 0; i < voice->held.count; i++) {
        append_number(voice->held.items[i], &voice->words);
    }
    return text_string(&voice->words);
}

void agent_voice_hear(struct agent_voice *voice, struct slice words) {
    bool is_own = slice_equals(words, slice_from_string(text_string(&voice->words)));
    for (size_t i = 0; i < voice->held.count; i++) {
        struct text number = {0};
        append_number(voice->held.items[i], &number);
        if (is_own || words.length == 0 || !has_word(words, text_string(&number))) {
            log_warning(voice->log, "%s", voice->held.items[i]);
        }
        text_clear(&number);
    }
    text_list_clear(&voice->held);
}

void agent_voice_wait(struct agent_voice *voice) {
    say_held(voice);
}

void agent_voice_host(struct agent_voice *voice) {
    say_place(voice);
}

void agent_voice_place(struct agent_voice *voice, int group_rank, bool has_host, int worker_count) {
    if (group_rank == 0 && !has_host) {
        say_place(voice);
    }
    if (group_rank == 0) {
        say_threads(voice, worker_count);
    }
    voice->is_followers = group_rank > 0 && !is_each_heard(voice);
    voice->is_place_settled = true;
    voice->is_threads_settled = true;
}

void agent_voice_nodes(struct agent_voice *voice, const struct node_identity *me,
    const struct rendezvous_state *record) {
    if (!voice->config->is_signalled_by_slurm || voice->is_sharing_said) {
        return;
    }
    for (size_t i = 0; i < record->count; i++) {
        const struct node_identity *other = &record->nodes[i].identity;
        if (node_identity_equals(other, me)) {
            return; /* who comes later speaks of it */
        }
        if (record->nodes[i].is_participant && text_equals(other->address, me->address)) {
            voice->is_sharing_said = true;
            log_warning(voice->log,
                "two agents of %s take part in this job, processes %" PRId64 " and %" PRId64
                " (this one): each is a node with workers of its own; where Slurm started one task "
                "too many there, write srun --ntasks-per-node=1",
                me->address, other->pid, me->pid);
            return;
        }
    }
}

void agent_voice_end(struct agent_voice *voice) {
    say_held(voice);
    say_place(voice);
}

void agent_voice_clear(struct agent_voice *voice) {
    text_list_clear(&voice->held);
    text_clear(&voice->words);
    text_clear(&voice->launch);
}
