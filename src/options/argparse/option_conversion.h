/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the text of one argument to a typed value, and words errors as argparse does. Matches
 * Lib/argparse.py ArgumentParser._get_value and _check_value, and run.py's comma_separated_list. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_CONVERSION_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_CONVERSION_H

#include "base/failure.h"
#include "base/text.h"
#include "options/argparse/option_result.h"
#include "options/argparse/option_table.h"

/* Replaces the content of `value`. FAILURE_INVALID with the reason appended to `out_reason`:
 * "invalid int value: 'x'"; `value` is then unchanged. The text of a flag is an integer; every
 * number but 0 means true. */
__attribute__((warn_unused_result)) enum failure_code option_convert(
    const struct option_definition *definition, const char *text, struct option_value *value,
    struct text *out_reason);

/* Splits at commas. Two commas in a row mean one comma inside an item. "" is one empty item. */
void option_split_commas(const char *text, struct text_list *out_items);

#endif
