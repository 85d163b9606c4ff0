#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A check of this node's NVIDIA GPUs, for muster run --node-check. It fails, with one line that says
# why, where nvidia-smi does not answer, where fewer GPUs are there than are expected, or where one
# has had errors that only a reset or a repair heals.
#
#     muster run --node-check 'sh check_gpus.sh 8' --nproc-per-node gpu train.py
#
# NVIDIA_SMI may name another program.

expected=${1:-1}
smi=${NVIDIA_SMI:-nvidia-smi}

fail() {
    echo "$1"
    exit 1
}

fields=index,pci.bus_id,ecc.errors.uncorrected.volatile.total,remapped_rows.failure,gpu_recovery_action
if ! rows=$("$smi" --query-gpu="$fields" --format=csv,noheader,nounits 2>&1); then
    # Drivers before 555 know nothing of a recovery action.
    fields=index,pci.bus_id,ecc.errors.uncorrected.volatile.total,remapped_rows.failure
    rows=$("$smi" --query-gpu="$fields" --format=csv,noheader,nounits 2>&1) ||
        fail "nvidia-smi has failed: $(echo "$rows" | tail -n 1)"
fi

count=$(echo "$rows" | grep -c '^[0-9]')
[ "$count" -ge "$expected" ] || fail "$count GPUs are there, and $expected are expected"

bad=$(echo "$rows" | awk -F ', *' '
    $3 ~ /^[0-9]+$/ && $3 > 0 { print "GPU " $1 " (" $2 ") has had " $3 " uncorrected memory errors"; next }
    $4 == "Yes" || $4 == "1" { print "GPU " $1 " (" $2 ") has failed to remap a bad row of its memory"; next }
    NF > 4 && $5 != "None" && $5 !~ /N\/A/ { print "GPU " $1 " (" $2 ") needs: " $5; next }')
[ -z "$bad" ] || fail "$(echo "$bad" | head -n 1)"
echo "$count GPUs are well"
