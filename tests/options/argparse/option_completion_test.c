/* SPDX-License-Identifier: BSD-3-Clause */
/* tests/command runs the scripts in a shell. */
#include "unit.h"

#include "sample_table.h"

static void expect_in_script(const char *program, const char *shell, const char *part) {
    struct text script = {0};
    option_completion_format(&sample_table, program, shell, &script);
    if (strstr(text_string(&script), part) == NULL) {
        print_message("not in the %s script: %s\n%s", shell, part, text_string(&script));
        fail();
    }
    text_clear(&script);
}

TEST(every_shell_learns_the_choices) {
    expect_in_script(
        "sample", "bash", "--colour)\n            COMPREPLY=($(compgen -W \"red green\"");
    expect_in_script("sample", "zsh", "'--colour=[Which colour.]:colour:(red green)'");
    expect_in_script("sample", "tcsh", "'n/--colour/(red green)/'");
}

TEST(every_shell_learns_the_names) {
    expect_in_script("sample", "bash", "-h --help -s --size --rate --colour --tag-list --tag_list");
    expect_in_script("sample", "zsh", "'-s+[How large.]:size:_files'");
    expect_in_script("sample", "tcsh", "(help size rate colour tag-list tag_list verbose");
}

TEST(a_sub_command_is_waited_for) {
    expect_in_script("muster run", "bash", "[[ ${COMP_WORDS[1]} == \"run\" ]] || return");
    expect_in_script("muster run", "bash", "complete -o default -F _muster_completion muster\n");
    expect_in_script("muster run", "zsh", "[[ $words[2] == run ]] || return");
    expect_in_script("muster run", "tcsh", "'p/1/(run)/'");
}
