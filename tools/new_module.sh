#!/bin/sh
# Creates a module: header, source, unit test and its entry in the floor's list.
#   tools/new_module.sh FLOOR[/ROOM] NAME      e.g.  tools/new_module.sh core/agent restart_policy
set -eu
cd "$(dirname "$0")/.."
[ $# = 2 ] || { sed -n '2,3s/^# *//p' "$0"; exit 2; }
place=$1 name=$2
floor=${place%%/*}
case $floor in base | core | wire | options | host | agent) ;; *) echo "no such floor: $floor"; exit 2 ;; esac
[ -d "src/$place" ] || { echo "no such room: src/$place (a new one: mkdir it, and give it its arrows in tools/check_floors.py)"; exit 2; }
case $name in *[!a-z0-9_]* | '' | [0-9_]*) echo "a module name is snake_case: $name"; exit 2 ;; esac
header=src/$place/$name.h source=src/$place/$name.c test=tests/$place/${name}_test.c
for file in "$header" "$source" "$test"; do
    [ ! -e "$file" ] || { echo "$file exists already"; exit 1; }
done
mkdir -p "tests/$place"
guard=MUSTER_$(echo "${place}_$name" | tr a-z/ A-Z_)_H
spdx='/* SPDX-License-Identifier: BSD-3-Clause */'

cat >"$header" <<END
$spdx
/* What $name is, and what it is not. */
#ifndef $guard
#define $guard

#endif
END
cat >"$source" <<END
$spdx
#include "$place/$name.h"
END
cat >"$test" <<END
$spdx
#include "unit.h"

#include "$place/$name.h"

TEST(${name}_does_nothing_yet) {
    fail_msg("say here, as a sentence, what $name does");
}
END
# the list stays sorted
entry=$name
[ "$place" = "$floor" ] || entry=${place#*/}/$name
awk -v entry="  '$entry'," '
    /^[a-z]+_modules = \[/ { print; inside = 1; next }
    inside && (/^\]/ || $0 > entry) { if (!done) { print entry; done = 1 } if (/^\]/) inside = 0 }
    { print }
' "src/$floor/meson.build" >"src/$floor/meson.build.new"
mv "src/$floor/meson.build.new" "src/$floor/meson.build"
echo "created $header, $source, $test; listed in src/$floor/meson.build"
