/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `k8s` of a job's register: two objects that the API server of Kubernetes keeps, both
 * of the name that --rdzv-endpoint gives.
 *
 *     ConfigMap    data: entry.RUN_ID                         the last entry of that job
 *     Lease        metadata.annotations: renewal.RUN_ID.TERM  its renewals; spec.holderIdentity
 *
 * An append is an update with the version (resourceVersion) of the ConfigMap that was read, so it
 * is done only if nobody has changed the ConfigMap since. One entry is enough: what is appended
 * must follow it. The API server is asked again when it is not there or wants to be left alone;
 * what became of an update whose reply was lost is read. The Lease does not run out: a term ends by
 * an append, and not by a time that passes. */
#ifndef MUSTER_HOST_REGISTER_KUBERNETES_REGISTER_H
#define MUSTER_HOST_REGISTER_KUBERNETES_REGISTER_H

#include "host/register/register_engine.h"

extern const struct register_engine kubernetes_register_engine;

#endif
