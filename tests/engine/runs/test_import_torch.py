"""How the parent of all devices imports torch."""

import subprocess
import sys

import pytest
import torch

PROGRAM = """
import ctypes
from engine.runs.execute import import_torch

import_torch()
import torch

torch.ones(8, 32) @ torch.ones(32, 32)
print(ctypes.CDLL(torch._C.__file__).mkl_serv_get_fast_mm_status())
"""
"""Prints 1 where MKL's buffers by thread are off, 0 where they are on."""


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this torch has no MKL")
def test_no_device_uses_the_buffers_of_mkl_whose_locks_can_spin_for_ever():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1
