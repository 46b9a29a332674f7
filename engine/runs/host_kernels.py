"""This host's table of the fastest kernels for products with weights, kept in the cache.

The probe takes a few seconds in a process of its own, once per processor and version of torch. The parent of
the devices reads the table and the devices inherit it by the fork.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from importlib.metadata import version
from pathlib import Path

from engine.domain.errors import HostError, SpecError
from engine.ops.torch_kernels.linear_table import LinearTable, processor

ROOT = Path(__file__).resolve().parents[2]
PROBE = "engine.ops.torch_kernels.linear_probe"


def kernels_file() -> Path:
    """Beside the host's calibration."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "edgeloom" / "kernels.json"


def known_kernels() -> LinearTable | None:
    """The table in the cache if it is of this processor and of this torch, or None."""
    path = kernels_file()
    try:
        known = LinearTable.model_validate_json(path.read_text())
    except (OSError, ValueError, SpecError):  # absent, or written by another version
        return None
    same = known.processor == processor() and known.torch == version("torch")
    return known if same else None


def measured_kernels() -> LinearTable:
    """Probe now and write the table to the cache. Raises `HostError` if the probe fails."""
    done = subprocess.run(
        [sys.executable, "-m", PROBE],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise HostError(f"Timing the kernels of this machine failed: {reason}.")
    table = LinearTable.model_validate_json(done.stdout)
    _keep(table)
    return table


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
