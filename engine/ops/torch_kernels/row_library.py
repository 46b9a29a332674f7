"""The compiled form of `row_products.c`: made once per source and processor, kept in the cache.

Where no C compiler is, there is none, and torch's kernels compute products of one row.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import platform
import shutil
import subprocess
import uuid
from functools import cache
from pathlib import Path

from engine.domain.cache_directory import cache_directory

SOURCE = Path(__file__).with_name("row_products.c")
COMPILERS = ("cc", "gcc", "clang")

FLAGS = (
    "-O3",
    "-std=gnu11",
    "-shared",
    "-fPIC",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-fassociative-math",
)
"""Sums may be made in any order. `-ffast-math` would change how all of this process treats tiny numbers."""

V3 = frozenset(("abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"))
V4 = V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
LEVELS = {"x86-64-v4": V4, "x86-64-v3": V3}
"""What a processor of each level has, in the words of /proc/cpuinfo; the highest first."""


@cache
def options() -> tuple[str, ...]:
    """The compiler's options for this processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                have = set(line.split())
                levels = (level for level, needed in LEVELS.items() if have >= needed)
                return (*FLAGS, *(f"-march={level}" for level in list(levels)[:1]))
    return FLAGS


@cache
def source() -> bytes:
    """What is compiled is what the library's name says, also where somebody writes the file meanwhile."""
    return SOURCE.read_bytes()


@cache
def library_name() -> str:
    """Names the source, the options and the kind of processor."""
    words = (*options(), platform.machine())
    digest = hashlib.sha256(source() + "\0".join(words).encode()).hexdigest()
    return f"row-products-{digest[:16]}.so"


def library_in(folder: Path) -> str:
    """The name of the library, if it is in `folder`, or ""."""
    return library_name() if (folder / library_name()).exists() else ""


def compiler() -> str | None:
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def make_library() -> str:
    """Compile the library where it is not in the cache and a compiler can; its name, or "" without one.

    It appears as a whole or not at all: processes that compile it at the same time each put the same there.
    """
    folder, found = cache_directory(), compiler()
    if library_in(folder) or found is None:
        return library_in(folder)
    draft = folder / f"{library_name()}.{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        command = (found, *options(), "-o", str(draft), "-x", "c", "-", "-lm")
        subprocess.run(command, input=source(), check=True, capture_output=True)
        ctypes.CDLL(str(draft))
        draft.replace(folder / library_name())
    except (OSError, subprocess.CalledProcessError):  # not C11 with vectors, or no place for programs
        draft.unlink(missing_ok=True)
    return library_in(folder)
