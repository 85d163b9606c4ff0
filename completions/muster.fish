# fish completion for muster. It asks the program itself, so it knows what that program knows.

function __muster_options # of a help page
    command $argv --help 2>/dev/null | string match -ar -- '(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])' | sort -u
end

function __muster_commands # the words of a usage text that begin lines `muster FAMILY COMMAND`
    command muster $argv[1] --help 2>/dev/null | string replace -rf -- "^(?:usage:)? *muster $argv[1] ([a-z-]+) .*" '$1'
end

function __muster_has # the words before the cursor: muster COMMAND..., and how many
    set -l words (commandline -opc)
    test (count $words) -ge $argv[2]; and test (count $words) -le $argv[3]; and test "$words[2]" = $argv[1]
end

function __muster_family_options
    set -l words (commandline -opc)
    __muster_options muster $words[2] $words[3]
end

complete -c muster -n 'test (count (commandline -opc)) -eq 1' -f -a 'run status events stacks report dashboard store rendezvous timer install-torchrun --version --help'
complete -c muster -n '__muster_has run 2 1000' -a '(__muster_options muster run)'
complete -c muster -n '__muster_has install-torchrun 2 2' -f -a '(__fish_complete_directories)'
for command in status events stacks dashboard
    complete -c muster -n "__muster_has $command 2 1000" -f -a "(__muster_options muster $command)"
end
complete -c muster -n '__muster_has report 2 1000' -a '(__muster_options muster report)'
for family in store rendezvous timer
    complete -c muster -n "__muster_has $family 2 2" -f -a "(__muster_commands $family)"
    complete -c muster -n "__muster_has $family 3 1000" -a '(__muster_family_options)'
end
