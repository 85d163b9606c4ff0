# SPDX-License-Identifier: BSD-3-Clause
"""Tests of jobs whose workers compute on a real GPU. They need one of NVIDIA's and a Python whose PyTorch uses it:
the one that runs the tests, or GPU_PYTHON."""

import pytest

from support.gpu import require_gpu


@pytest.fixture(scope="session")
def gpu():
    """The machine's GPUs and a Python that computes on them, or a skip that says why there is none."""
    return require_gpu()
