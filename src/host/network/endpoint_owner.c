/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/endpoint_owner.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/endpoint_match.h"
#include "host/loop/quiet_thread.h"
#include "host/network/address_list.h"
#include "host/network/local_address.h"

/* Shared by the loop and the thread that answers it; the last user frees it. */
struct question {
    char *host; /* does not change */
    pthread_mutex_t mutex;
    struct event_wake *wake; /* NULL: the answer is not wanted any more */
    bool is_answered;
    bool is_own;
};

struct endpoint_owner {
    struct endpoint_owner_settings settings;
    char *host;
    struct event_wake *wake;
    struct question *question; /* the question under way, or NULL */
};

/* Rules. */

bool endpoint_owner_is_plain(const char *host, const char *given_address) {
    char *own_name = NULL;
    struct address_list wanted = address_list_of_address(host);
    struct address_list local = address_list_of_interfaces();
    (void)!local_address_host_name(&own_name, NULL);
    const struct endpoint_facts facts = {
        .host = host,
        .host_addresses = wanted.items,
        .host_address_count = wanted.count,
        .given_address = given_address,
        .own_name = own_name != NULL ? own_name : "localhost",
        .local_addresses = local.items,
        .local_address_count = local.count,
    };
    bool is_own = endpoint_matches_machine(&facts);
    address_list_clear(&wanted);
    address_list_clear(&local);
    free(own_name);
    return is_own;
}

/* Looks up this machine's own name first. That name is often in a file, and may be enough, while
 * the endpoint's name may need a slow name server. */
static bool resolver_says_own(const char *host) {
    char *own_name = NULL;
    char *canonical_name = NULL;
    struct address_list own = {0};
    struct address_list wanted = {0};
    struct address_list local = address_list_of_interfaces();
    if (local_address_host_name(&own_name, NULL) == FAILURE_NONE) {
        own = address_list_of_name(own_name, &canonical_name);
    }
    struct endpoint_facts facts = {
        .host = host,
        .own_name = own_name != NULL ? own_name : "localhost",
        .own_canonical_name = canonical_name,
        .name_addresses = own.items,
        .name_address_count = own.count,
        .local_addresses = local.items,
        .local_address_count = local.count,
    };
    bool is_own = endpoint_matches_machine(&facts);
    if (!is_own) {
        wanted = address_list_of_name(host, NULL);
        facts.host_addresses = wanted.items;
        facts.host_address_count = wanted.count;
        is_own = endpoint_matches_machine(&facts);
    }
    address_list_clear(&own);
    address_list_clear(&wanted);
    address_list_clear(&local);
    free(canonical_name);
    free(own_name);
    return is_own;
}

/* Questions. */

static struct question *question_new(const char *host, struct event_wake *wake) {
    struct question *question = memory_allocate(sizeof *question);
    question->host = memory_duplicate_string(host);
    pthread_mutex_init(&question->mutex, NULL);
    question->wake = wake;
    return question;
}

static void question_free(struct question *question) {
    pthread_mutex_destroy(&question->mutex);
    free(question->host);
    free(question);
}

/* Runs on the thread. */
static void *work(void *context) {
    struct question *question = context;
    bool is_own = resolver_says_own(question->host);
    pthread_mutex_lock(&question->mutex);
    bool is_forgotten = question->wake == NULL;
    question->is_answered = true;
    question->is_own = is_own;
    if (!is_forgotten) {
        event_wake_send(question->wake);
    }
    pthread_mutex_unlock(&question->mutex);
    if (is_forgotten) {
        question_free(question);
    }
    return NULL;
}

static bool is_answered(struct question *question) {
    pthread_mutex_lock(&question->mutex);
    bool is_answered = question->is_answered;
    pthread_mutex_unlock(&question->mutex);
    return is_answered;
}

static void forget(struct question *question) {
    pthread_mutex_lock(&question->mutex);
    bool is_answered = question->is_answered;
    question->wake = NULL;
    pthread_mutex_unlock(&question->mutex);
    if (is_answered) {
        question_free(question);
    }
}

/* Creation and end. */

static void woken(void *context) {
    struct endpoint_owner *owner = context;
    struct question *question = owner->question;
    if (question == NULL || !is_answered(question)) {
        return;
    }
    bool is_own = question->is_own;
    owner->question = NULL;
    question_free(question);
    owner->settings.answered(owner->settings.context, is_own);
}

enum failure_code endpoint_owner_new(struct event_loop *loop,
    const struct endpoint_owner_settings *settings, struct endpoint_owner **out_owner,
    struct failure *failure) {
    struct endpoint_owner *owner = memory_allocate(sizeof *owner);
    enum failure_code code = event_wake_new(loop, woken, owner, &owner->wake, failure);
    if (code != FAILURE_NONE) {
        free(owner);
        return code;
    }
    owner->settings = *settings;
    owner->host = memory_duplicate_string(settings->host);
    *out_owner = owner;
    return FAILURE_NONE;
}

void endpoint_owner_free(struct endpoint_owner *owner) {
    if (owner == NULL) {
        return;
    }
    if (owner->question != NULL) {
        forget(owner->question);
    }
    event_wake_free(owner->wake);
    free(owner->host);
    free(owner);
}

enum failure_code endpoint_owner_ask(struct endpoint_owner *owner, struct failure *failure) {
    pthread_t thread;
    if (owner->question != NULL) {
        return FAILURE_NONE;
    }
    struct question *question = question_new(owner->host, owner->wake);
    enum failure_code code = quiet_thread_start("muster-names", work, question, &thread, failure);
    if (code != FAILURE_NONE) {
        question_free(question);
        return code;
    }
    pthread_detach(thread);
    owner->question = question;
    return FAILURE_NONE;
}
