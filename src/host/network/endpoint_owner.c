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
    char *host;        /* does not change … */
    bool is_of_others; /* … nor does this: which addresses are not this machine's */
    pthread_mutex_t mutex;
    struct event_wake *wake; /* NULL: the answer is not wanted any more */
    bool is_answered;
    bool is_own;
    struct text others;
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

/* What the resolver and the kernel say of this machine, and of the endpoint's name if that was
 * looked up. */
struct findings {
    char *own_name;
    char *canonical_name;
    struct address_list own;
    struct address_list wanted;
    struct address_list local;
};

static void look_at_machine(struct findings *found) {
    found->local = address_list_of_interfaces();
    if (local_address_host_name(&found->own_name, NULL) == FAILURE_NONE) {
        found->own = address_list_of_name(found->own_name, &found->canonical_name);
    }
}

static struct endpoint_facts facts_of(const struct findings *found, const char *host) {
    return (struct endpoint_facts){
        .host = host,
        .host_addresses = found->wanted.items,
        .host_address_count = found->wanted.count,
        .own_name = found->own_name != NULL ? found->own_name : "localhost",
        .own_canonical_name = found->canonical_name,
        .name_addresses = found->own.items,
        .name_address_count = found->own.count,
        .local_addresses = found->local.items,
        .local_address_count = found->local.count,
    };
}

static void findings_clear(struct findings *found) {
    address_list_clear(&found->own);
    address_list_clear(&found->wanted);
    address_list_clear(&found->local);
    free(found->canonical_name);
    free(found->own_name);
}

/* Looks up this machine's own name first. That name is often in a file, and may be enough, while
 * the endpoint's name may need a slow name server. */
static bool resolver_says_own(const char *host) {
    struct findings found = {0};
    look_at_machine(&found);
    struct endpoint_facts facts = facts_of(&found, host);
    bool is_own = endpoint_matches_machine(&facts);
    if (!is_own) {
        found.wanted = address_list_of_name(host, NULL);
        facts = facts_of(&found, host);
        is_own = endpoint_matches_machine(&facts);
    }
    findings_clear(&found);
    return is_own;
}

/* Only the kernel is believed on which addresses are this machine's: its own name may have those of
 * other machines, too. A name that has none of them is translated on the way. */
static void resolver_lists_others(const char *host, struct text *out) {
    struct findings found = {
        .local = address_list_of_interfaces(), .wanted = address_list_of_name(host, NULL)};
    struct endpoint_facts facts = facts_of(&found, host);
    if (endpoint_list_others(&facts, out) == found.wanted.count) {
        text_clear(out);
    }
    findings_clear(&found);
}

/* Questions. */

static struct question *question_new(const char *host, bool is_of_others, struct event_wake *wake) {
    struct question *question = memory_allocate(sizeof *question);
    question->host = memory_duplicate_string(host);
    question->is_of_others = is_of_others;
    pthread_mutex_init(&question->mutex, NULL);
    question->wake = wake;
    return question;
}

static void question_free(struct question *question) {
    pthread_mutex_destroy(&question->mutex);
    text_clear(&question->others);
    free(question->host);
    free(question);
}

/* Runs on the thread. */
static void *work(void *context) {
    struct question *question = context;
    struct text others = {0};
    bool is_own = true;
    if (question->is_of_others) {
        resolver_lists_others(question->host, &others);
    } else {
        is_own = resolver_says_own(question->host);
    }
    pthread_mutex_lock(&question->mutex);
    bool is_forgotten = question->wake == NULL;
    question->is_answered = true;
    question->is_own = is_own;
    question->others = others;
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
    owner->question = NULL;
    if (question->is_of_others) {
        owner->settings.shared(owner->settings.context, text_string(&question->others));
    } else {
        owner->settings.answered(owner->settings.context, question->is_own);
    }
    question_free(question);
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

static enum failure_code ask(
    struct endpoint_owner *owner, bool is_of_others, struct failure *failure) {
    pthread_t thread;
    if (owner->question != NULL) {
        return FAILURE_NONE;
    }
    struct question *question = question_new(owner->host, is_of_others, owner->wake);
    enum failure_code code = quiet_thread_start("muster-names", work, question, &thread, failure);
    if (code != FAILURE_NONE) {
        question_free(question);
        return code;
    }
    pthread_detach(thread);
    owner->question = question;
    return FAILURE_NONE;
}

enum failure_code endpoint_owner_ask(struct endpoint_owner *owner, struct failure *failure) {
    return ask(owner, false, failure);
}

enum failure_code endpoint_owner_ask_for_others(
    struct endpoint_owner *owner, struct failure *failure) {
    return ask(owner, true, failure);
}
