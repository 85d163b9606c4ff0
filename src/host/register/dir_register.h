/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `dir` of a job's register: a directory that all nodes share. Each request is an
 * errand (host/loop/errands.h) on host/register/register_directory.h: a file server that hangs
 * holds up a thread, and the request ends at its deadline. */
#ifndef MUSTER_HOST_REGISTER_DIR_REGISTER_H
#define MUSTER_HOST_REGISTER_DIR_REGISTER_H

#include "host/register/register_engine.h"

extern const struct register_engine dir_register_engine;

#endif
