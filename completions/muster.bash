# bash completion for muster. It asks the program itself, so it knows what that program knows.

_muster_words() { # the words of a usage text that begin lines `muster FAMILY COMMAND`
    "$1" "$2" --help 2>/dev/null | sed -nE "s/^(usage:)? *muster $2 ([a-z-]+) .*/\2/p"
}

_muster_options() {
    "$@" --help 2>/dev/null | grep -oE -- '(^|[ [,])--[a-z][a-z-]*' | tr -d ' [,' | sort -u
}

_muster() {
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "run status events stacks report dashboard store rendezvous timer install-torchrun --version --help" -- "$current"))
        return
    fi
    case ${COMP_WORDS[1]} in
    run)
        if ! declare -F _muster_completion >/dev/null; then
            eval "$("$program" run --print-completion bash | sed '/^complete /d')"
        fi
        _muster_completion
        ;;
    store | rendezvous | timer)
        if ((COMP_CWORD == 2)); then
            COMPREPLY=($(compgen -W "$(_muster_words "$program" "${COMP_WORDS[1]}")" -- "$current"))
        elif [[ $current == -* ]]; then
            COMPREPLY=($(compgen -W "$(_muster_options "$program" "${COMP_WORDS[1]}" "${COMP_WORDS[2]}")" -- "$current"))
        fi
        ;;
    status | events | stacks | dashboard)
        COMPREPLY=($(compgen -W "$(_muster_options "$program" "${COMP_WORDS[1]}")" -- "$current"))
        ;;
    report)
        if [[ $current == -* ]]; then
            COMPREPLY=($(compgen -W "$(_muster_options "$program" report)" -- "$current"))
        fi
        ;;
    install-torchrun)
        COMPREPLY=($(compgen -A directory -- "$current"))
        ;;
    esac
}

complete -o default -F _muster muster
