"""The compiled form of `row_products.c`: made once per source and processor, kept in the cache.

Where no C compiler is, there is none, and torch's kernels compute products of one row. A session of an
emulation compiles none and loads that of its starter, which it cannot write.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import uuid
from functools import cache
from pathlib import Path

from engine.domain.cache_directory import cache_directory

SOURCE = Path(__file__).with_name("row_products.c")
COMPILERS = ("cc", "gcc", "clang")

LIBRARY_VARIABLE = "EDGELOOM_ROW_LIBRARY"
"""Set in a session: the file of the only library that it may load, or "" where there is none."""

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
def source_digest() -> str:
    """Names the source, the options and the kind of processor."""
    words = (*options(), platform.machine())
    return hashlib.sha256(source() + "\0".join(words).encode()).hexdigest()[:16]


def folder() -> Path:
    """Of compiled libraries, each with the digest of its content in its name. Sessions only read it."""
    return cache_directory() / "compiled"


def library() -> Path | None:
    """The library, if it is there and its content is what its name says."""
    given = os.environ.get(LIBRARY_VARIABLE)
    found = sorted(folder().glob(f"row-products-{source_digest()}-*.so")) if given is None else [Path(given)]
    return next((file for file in found if _is_whole(file)), None)


def library_name() -> str:
    """The name of the library, or "" where there is none."""
    return getattr(library(), "name", "")


@cache
def loaded() -> ctypes.CDLL:
    """The library in this process and those forked from it later; raises `OSError` where it is not."""
    found = library()
    if found is None:
        raise OSError(f"{folder()} has no library that was compiled of {SOURCE.name}")
    return ctypes.CDLL(str(found))


def compiler() -> str | None:
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def make_library() -> str:
    """Compile the library where it is missing and a compiler can; its name, or "" without one.

    It appears as a whole or not at all: processes that compile it at the same time each put the same there.
    """
    found = compiler()
    if library_name() or found is None or LIBRARY_VARIABLE in os.environ:
        return library_name()
    draft = folder() / f"{uuid.uuid4().hex}.part"
    try:
        folder().mkdir(parents=True, exist_ok=True)
        command = (found, *options(), "-o", str(draft), "-x", "c", "-", "-lm")
        subprocess.run(command, input=source(), check=True, capture_output=True)
        ctypes.CDLL(str(draft))
        draft.replace(folder() / f"row-products-{source_digest()}-{_digest(draft)}.so")
    except (OSError, subprocess.CalledProcessError):  # not C11 with vectors, or no place for programs
        draft.unlink(missing_ok=True)
    return library_name()


def _is_whole(file: Path) -> bool:
    try:
        return file.stem.endswith(f"-{_digest(file)}")
    except OSError:
        return False


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
