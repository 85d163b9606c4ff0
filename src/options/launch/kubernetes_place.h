/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses [NAMESPACE/]NAME of the objects in which Kubernetes keeps a job's register, for the
 * options and for the engine. */
#ifndef MUSTER_OPTIONS_LAUNCH_KUBERNETES_PLACE_H
#define MUSTER_OPTIONS_LAUNCH_KUBERNETES_PLACE_H

#include "base/failure.h"
#include "base/text.h"

/* As Kubernetes allows: RFC 1123's label of a namespace, and subdomain of an object's name. */
#define KUBERNETES_SPACE_MAXIMUM 63
#define KUBERNETES_NAME_MAXIMUM 253

struct kubernetes_place {
    char *space; /* NULL: that of the pod */
    char *name;
};

/* FAILURE_INVALID with a reason appended. */
__attribute__((warn_unused_result)) enum failure_code kubernetes_place_parse(
    const char *text, struct kubernetes_place *out_place, struct text *out_reason);
void kubernetes_place_clear(struct kubernetes_place *place);

/* Whether it can be the name of a namespace. */
bool kubernetes_is_space(const char *text);

#endif
