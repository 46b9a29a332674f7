"""Finds the table of the fastest kernels of this host for products with weights, kept in the cache.

The probe takes a second in a process of its own, once per processor and version of torch. The parent of the
devices reads the table and the devices inherit it by the fork.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import uuid
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path

from engine.domain.cache_directory import cache_directory
from engine.domain.errors import HostError, SpecError
from engine.ops.torch_kernels.linear_table import LinearTable, processor
from engine.ops.torch_kernels.row_library import library_name


def kernels_file() -> Path:
    return cache_directory() / "kernels.json"


def known_kernels(file: Path | None = None) -> LinearTable | None:
    """The table in the cache, or in `file`, or None if it is not of this processor, this torch and the
    library here.
    """
    path = file or kernels_file()
    try:
        known = LinearTable.model_validate_json(path.read_text())
        ours = (processor(), version("torch"), library_name())
    except (OSError, ValueError, SpecError, PackageNotFoundError):  # absent, of another version, no torch
        return None
    return known if ours == (known.processor, known.torch, known.row_library) else None


def measured_kernels() -> LinearTable:
    """Probe now and write the table to the cache. Raises `HostError` if the probe fails."""
    with probing() as answer:
        return answer()


@contextlib.contextmanager
def probing() -> Iterator[Callable[[], LinearTable]]:
    """Probe beside what the block does. What it gets waits for the table, writes it to the cache, and raises
    `HostError` if the probe fails. The probe ends with the block.

    A forked process probes. Where this one has imported torch already, that one need not.
    """
    forked = multiprocessing.get_context("fork")
    ours, theirs = forked.Pipe(duplex=False)
    child = forked.Process(target=_probe, args=(theirs,))
    child.start()
    theirs.close()

    def answer() -> LinearTable:
        try:
            table = ours.recv()
        except EOFError:
            table = "its process died"
        if not isinstance(table, LinearTable):
            raise HostError(f"Timing the kernels of this machine failed: {table}.")
        _keep(table)
        return table

    try:
        yield answer
    finally:
        ours.close()
        child.kill()
        child.join()


def _probe(answer: Connection) -> None:
    """Send the table, or why there is none."""
    try:
        from engine.ops.torch_kernels.linear_probe import probe

        answer.send(probe())
    except Exception as error:
        answer.send(f"{type(error).__name__}: {error}".rstrip("."))


def _keep(table: LinearTable) -> None:
    """Write the table to the cache. Where the cache cannot be written, every run probes again."""
    path = kernels_file()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{uuid.uuid4().hex}")
        draft.write_text(table.model_dump_json())
        draft.replace(path)


def use_host_kernels() -> LinearTable:
    """Let `linear` choose by this host's table in this process and in those forked from it."""
    from engine.ops.torch_kernels.linear import use

    table = known_kernels() or measured_kernels()
    use(table)
    return table
