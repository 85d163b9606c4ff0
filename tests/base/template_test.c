/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"

static const struct template_value values[] = {
    {"role_name", "trainer"},
    {"local_rank", "3"},
    {"rank", "11"},
    {"hostname", "node$1"},
    {"_x", ""},
    {"A", "upper"},
};
static const size_t value_count = sizeof values / sizeof *values;

/* Templates and what Python's string.Template(…).safe_substitute makes of them. */
static const struct {
    const char *template;
    const char *result;
} vectors[] = {
    {"", ""},
    {"plain", "plain"},
    {"$local_rank", "3"},
    {"${local_rank}", "3"},
    {"$$", "$"},
    {"$$local_rank", "$local_rank"},
    {"$$$local_rank", "$3"},
    {"$", "$"},
    {"a$", "a$"},
    {"$ b", "$ b"},
    {"${}", "${}"},
    {"${local_rank", "${local_rank"},
    {"${local_rank }", "${local_rank }"},
    {"${ rank}", "${ rank}"},
    {"$1", "$1"},
    {"${1a}", "${1a}"},
    {"$rank.", "11."},
    {"$rank_", "$rank_"},
    {"$rank$rank", "1111"},
    {"${rank}${rank}", "1111"},
    {"$hostname!", "node$1!"},
    {"$_x|", "|"},
    {"$A$a", "upper$a"},
    {"${A}${a}", "upper${a}"},
    {"$rankx", "$rankx"},
    {"$local-rank", "$local-rank"},
    {"$é", "$é"},
    {"${rané}", "${rané}"},
    {"$rané", "$rané"},
    {"$$foo ${rank}", "$foo 11"},
    {"${rank$rank}", "${rank11}"},
    {"${$rank}", "${11}"},
    {"$$$$", "$$"},
    {"$$$", "$$"},
    {"$}{", "$}{"},
    {"[${role_name}${local_rank}]:", "[trainer3]:"},
    {"$RANK $Rank", "$RANK $Rank"},
    {"${rank}}", "11}"},
    {"{$rank}", "{11}"},
    {"$$${rank}$", "$11$"},
    {"{A $$K_x", "{A $K_x"},
    {"local_rank1$", "local_rank1$"},
    {"$$AA$", "$AA$"},
    {"$_xA$K", "$_xA$K"},
    {"$}$_xK{rankA", "$}$_xK{rankA"},
    {"_x$1rank", "_x$1rank"},
    {"$11 ", "$11 "},
    {"local_rank$_xé$", "local_ranké$"},
    {"local_rankéarank1$$_xA", "local_rankéarank1$_xA"},
    {"$ $ſ_x1ſK", "$ $ſ_x1ſK"},
    {"$K$rankaé $$", "$K$rankaé $"},
    {" local_rank$alocal_rank{1$", " local_rank$alocal_rank{1$"},
    {"$}ſrank{é}AA", "$}ſrank{é}AA"},
    {"${aA_xrank{KA", "${aA_xrank{KA"},
    {"${{}", "${{}"},
    {"$aK1{", "$aK1{"},
    {"rank${A_xlocal_rank", "rank${A_xlocal_rank"},
    {"AAA$a A$", "AAA$a A$"},
    {"$}a{$", "$}a{$"},
    {"1$$$1{_x", "1$$1{_x"},
    {"{ ranklocal_rank1local_ranka$", "{ ranklocal_rank1local_ranka$"},
    {"arank${$élocal_rankérank", "arank${$élocal_rankérank"},
    {"Ké{_x$}_xlocal_rank{", "Ké{_x$}_xlocal_rank{"},
    {" K$éKrank", " K$éKrank"},
    {"$ſ", "$ſ"},
    {"ſélocal_ranklocal_rank$}$}a", "ſélocal_ranklocal_rank$}$}a"},
    {"ſ $K $A", "ſ $K upper"},
    {"$ſéAaAé", "$ſéAaAé"},
    {"${1a", "${1a"},
    {"{_x_x{$$ſ", "{_x_x{$ſ"},
    {"K}KK}$rank}", "K}KK}11}"},
    {"K{$élocal_ranka 1", "K{$élocal_ranka 1"},
    {"K_x{_x{_x_x$", "K_x{_x{_x_x$"},
    {"ſ{1$ſſ{{{", "ſ{1$ſſ{{{"},
    {"1é$_x$local_rank _x_x", "1é3 _x_x"},
};

TEST(substitution_agrees_with_python) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        FREED char *result = template_substitute(vectors[i].template, values, value_count);
        assert_string_equal(result, vectors[i].result);
    }
}

TEST(a_value_is_not_substituted_again) {
    static const struct template_value circle[] = {{"a", "$b"}, {"b", "$a"}};
    FREED char *result = template_substitute("$a$b", circle, 2);
    assert_string_equal(result, "$b$a");
}

TEST(without_values_only_doubled_dollars_change) {
    FREED char *result = template_substitute("$$foo ${rank}", NULL, 0);
    assert_string_equal(result, "$foo ${rank}");
}

TEST(unknown_names_are_listed_once_in_order) {
    CLEARED_BY(text_list_clear) struct text_list names = {0};
    template_unknown_names(
        "$zeta ${rank} ${alpha}$zeta $$not ${open $1 $alphabet", values, value_count, &names);
    assert_int_equal(names.count, 3);
    assert_string_equal(names.items[0], "zeta");
    assert_string_equal(names.items[1], "alpha");
    assert_string_equal(names.items[2], "alphabet");
}

TEST(a_template_of_known_names_has_no_unknown_ones) {
    CLEARED_BY(text_list_clear) struct text_list names = {0};
    template_unknown_names("[${role_name}${local_rank}]:", values, value_count, &names);
    assert_int_equal(names.count, 0);
}
