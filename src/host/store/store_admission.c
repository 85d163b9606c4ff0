/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_admission.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"

/* So many addresses are remembered of those that were turned away. */
#define REFUSED_MAXIMUM 1024

struct store_admission {
    pthread_mutex_t lock;
    bool is_open;
    struct table *hosts; /* tcp_address_host -> something */
    struct table *refused;
};

struct store_admission *store_admission_new(bool is_open) {
    struct store_admission *admission = memory_allocate(sizeof *admission);
    pthread_mutex_init(&admission->lock, NULL);
    admission->is_open = is_open;
    admission->hosts = table_new(NULL);
    admission->refused = table_new(NULL);
    return admission;
}

void store_admission_free(struct store_admission *admission) {
    if (admission != NULL) {
        table_free(admission->hosts);
        table_free(admission->refused);
        pthread_mutex_destroy(&admission->lock);
        free(admission);
    }
}

static void replace(struct store_admission *admission, bool is_open, struct table *hosts_taken) {
    pthread_mutex_lock(&admission->lock);
    struct table *old = admission->hosts;
    admission->is_open = is_open;
    admission->hosts = hosts_taken;
    pthread_mutex_unlock(&admission->lock);
    table_free(old);
}

void store_admission_open(struct store_admission *admission) {
    replace(admission, true, table_new(NULL));
}

static bool read_address(const char *text, union tcp_address *out_address) {
    *out_address = (union tcp_address){.any = {.sa_family = AF_INET}};
    if (inet_pton(AF_INET, text, &out_address->ipv4.sin_addr) == 1) {
        return true;
    }
    *out_address = (union tcp_address){.ipv6 = {.sin6_family = AF_INET6}};
    return inet_pton(AF_INET6, text, &out_address->ipv6.sin6_addr) == 1;
}

size_t store_admission_limit(struct store_admission *admission, const char *addresses) {
    struct table *hosts = table_new(NULL);
    char *words = memory_duplicate_string(addresses);
    char *rest = words;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        union tcp_address address;
        uint8_t host[TCP_ADDRESS_HOST_BYTES];
        if (read_address(word, &address)) {
            tcp_address_host(&address, host);
            (void)table_put(hosts, (struct slice){host, sizeof host}, admission);
        }
    }
    size_t count = table_count(hosts);
    free(words);
    replace(admission, false, hosts);
    return count;
}

bool store_admission_admits(struct store_admission *admission, const union tcp_address *peer) {
    uint8_t host[TCP_ADDRESS_HOST_BYTES];
    tcp_address_host(peer, host);
    pthread_mutex_lock(&admission->lock);
    bool admits = admission->is_open ||
                  table_get(admission->hosts, (struct slice){host, sizeof host}) != NULL;
    pthread_mutex_unlock(&admission->lock);
    return admits;
}

bool store_admission_is_news(struct store_admission *admission, const union tcp_address *peer) {
    uint8_t host[TCP_ADDRESS_HOST_BYTES];
    tcp_address_host(peer, host);
    const struct slice key = {host, sizeof host};
    pthread_mutex_lock(&admission->lock);
    bool is_news = table_get(admission->refused, key) == NULL;
    if (table_count(admission->refused) >= REFUSED_MAXIMUM) {
        table_free(admission->refused);
        admission->refused = table_new(NULL);
    }
    (void)table_put(admission->refused, key, admission);
    pthread_mutex_unlock(&admission->lock);
    return is_news;
}
