/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates with `$name`, `${name}` and `$$`, exactly as Python's string.Template.safe_substitute
 * reads them: names are ASCII identifiers; an unknown name, an unfinished brace and a lone dollar
 * stay as they are. Worker arguments and log line prefixes are written in it
 * (torch/distributed/elastic/agent/server/local_elastic_agent.py, api.py macros). */
#ifndef MUSTER_BASE_TEMPLATE_H
#define MUSTER_BASE_TEMPLATE_H

#include <stddef.h>

#include "base/text.h"

/* A name and the value that replaces it. Names are case-sensitive. */
struct template_value {
    const char *name;
    const char *value;
};

/* Returns the template with the given values put in; the caller frees it. Values are not
 * substituted again. The result is at most as long as the template times the longest value, so a
 * caller whose templates come from outside must check that size first. */
char *template_substitute(
    const char *template, const struct template_value *values, size_t value_count);

/* Appends each name of the template that `values` does not know, once, in order of appearance. */
void template_unknown_names(const char *template, const struct template_value *values,
    size_t value_count, struct text_list *out_names);

#endif
