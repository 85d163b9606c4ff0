/* SPDX-License-Identifier: BSD-3-Clause */
/* Fresh random numbers from the kernel, for names that must not collide and for seeds of
 * base/random. Do not use them for secrets. */
#ifndef MUSTER_HOST_LOOP_RANDOM_SEED_H
#define MUSTER_HOST_LOOP_RANDOM_SEED_H

#include <stddef.h>
#include <stdint.h>

/* 64 bits from getrandom(2). Where a kernel or sandbox refuses that call, they come from clock and
 * pid. */
uint64_t random_seed(void);

/* Writes `length` characters of [a-z0-9_] and a NUL. Each call gives a new name. */
void random_seed_name(char *out, size_t length);

/* A fresh RFC 4122 version 4 UUID in text form, as Python's uuid4() gives. The caller frees it. */
char *random_seed_uuid(void);

#endif
