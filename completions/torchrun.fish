# fish completion for the link torchrun. It asks the program itself, so it knows what that program knows.

function __torchrun_options
    command torchrun --help 2>/dev/null | string match -ar -- '(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])' | sort -u
end

complete -c torchrun -a '(__torchrun_options)'
