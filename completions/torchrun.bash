# bash completion for the link torchrun. It asks the program itself, so it knows what that program knows.

_torchrun() { # only the first time: what the program prints completes from then on
    eval "$("${COMP_WORDS[0]}" --print-completion bash 2>/dev/null)"
    declare -F _torchrun_completion >/dev/null && return 124
}

complete -o default -F _torchrun torchrun
