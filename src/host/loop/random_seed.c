/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/random_seed.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "base/text.h"

uint64_t random_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) {
        return seed;
    }
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 16 ^ (uint64_t)getpid();
}

void random_seed_name(char *out, size_t length) {
    struct random random;
    random_init(&random, random_seed());
    random_name(&random, out, length);
}

char *random_seed_uuid(void) {
    uint64_t high = random_seed();
    uint64_t low = random_seed();
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    low = (low & ~(UINT64_C(0xc) << 60)) | (UINT64_C(0x8) << 60);
    return text_format("%08llx-%04llx-%04llx-%04llx-%012llx", (unsigned long long)(high >> 32),
        (unsigned long long)(high >> 16 & 0xffff), (unsigned long long)(high & 0xffff),
        (unsigned long long)(low >> 48), (unsigned long long)(low & 0xffffffffffff));
}
