/* SPDX-License-Identifier: BSD-3-Clause */
/* One argument's text into its typed value, with argparse's wording for what does not convert.
 * Matches Lib/argparse.py ArgumentParser._get_value and _check_value, and run.py's
 * comma_separated_list. */
#ifndef MUSTER_OPTIONS_OPTION_CONVERSION_H
#define MUSTER_OPTIONS_OPTION_CONVERSION_H

#include "base/failure.h"
#include "base/text.h"
#include "options/option_result.h"
#include "options/option_table.h"

/* Replaces what `value` held. FAILURE_INVALID with the reason appended to `out_reason`: "invalid
 * int value: 'x'"; then the value is as it was. A flag's text is an integer, true unless 0. */
__attribute__((warn_unused_result)) enum failure_code option_convert(
    const struct option_definition *definition, const char *text, struct option_value *value,
    struct text *out_reason);

/* Splits at commas; two commas in a row stand for one inside an item. "" is one empty item. */
void option_split_commas(const char *text, struct text_list *out_items);

#endif
