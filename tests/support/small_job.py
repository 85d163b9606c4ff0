# SPDX-License-Identifier: BSD-3-Clause
"""A job that needs nothing but a shell: its second worker fails once."""

SMALL_JOB = ["run", "--nproc-per-node", "2", "--max-restarts", "1", "--no-python", "/bin/sh", "-c",
             'echo "rank $RANK of $WORLD_SIZE, attempt $TORCHELASTIC_RESTART_COUNT"; '
             'test "$TORCHELASTIC_RESTART_COUNT" = 1 || exit "$RANK"']  # fmt: skip


def check_small_job(result):
    assert result.returncode == 0, result.stderr
    lines = set(result.stdout.splitlines())
    assert lines >= {"rank 0 of 2, attempt 1", "rank 1 of 2, attempt 1"}
