"""Memory that operations free stays in the process."""

import os
import subprocess
import sys

import pytest

BLOCKS, BLOCK_BYTES = 8, 2 << 20
PAGES = BLOCKS * BLOCK_BYTES // os.sysconf("SC_PAGE_SIZE")

PROGRAM = f"""
import ctypes, os, resource
import torch
from engine.ops.torch_kernels.heap import M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def used(keep):
    for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):  # what glibc begins with, and else adapts
        ctypes.CDLL(None).mallopt(parameter, 128 << 10)
    if keep:
        keep_freed_memory()
    for _ in range(4):
        before = faults()
        blocks = [torch.zeros({BLOCK_BYTES}, dtype=torch.uint8).fill_(1) for _ in range({BLOCKS})]
        del blocks
    print(faults() - before, flush=True)

for keep in (False, True):
    child = os.fork()
    if not child:
        used(keep)
        os._exit(0)
    os.waitpid(child, 0)
"""
"""Prints the page faults of the fourth time that blocks are used, without and with the setting: each in a
copy of a process that has imported torch and has used no blocks yet.
"""


@pytest.mark.skipif("glibc" not in os.confstr("CS_GNU_LIBC_VERSION"), reason="only glibc gives memory back")
def test_blocks_that_were_used_before_cost_no_page_faults():
    """In a process of its own, as one that has run tests has free memory already."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    returned, kept = map(int, done.stdout.split())
    assert returned > PAGES / 2
    assert kept < PAGES / 10
