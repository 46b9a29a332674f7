"""Memory that operations free stays in the process."""

import ctypes
import os
import resource

import pytest
import torch

from engine.ops.torch_kernels.heap import M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, keep_freed_memory

SIZE_BYTES, BLOCKS = 2 << 20, 8
PAGES = SIZE_BYTES * BLOCKS // os.sysconf("SC_PAGE_SIZE")


def page_faults(work, keep=True):
    """Page faults of the fourth time that `work` is done, in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):  # as a new process has them
            ctypes.CDLL(None).mallopt(parameter, 128 << 10)
        if keep:
            keep_freed_memory()
        for _ in range(4):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            work()
        os.write(write, str(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return int(pipe.read())


def many_blocks():
    blocks = [torch.zeros(SIZE_BYTES, dtype=torch.uint8).fill_(1) for _ in range(BLOCKS)]
    assert len(blocks) == BLOCKS


@pytest.mark.skipif("glibc" not in os.confstr("CS_GNU_LIBC_VERSION"), reason="only glibc gives memory back")
def test_blocks_that_were_used_before_cost_no_page_faults():
    assert page_faults(many_blocks, keep=False) > PAGES / 2
    assert page_faults(many_blocks) < PAGES / 10
