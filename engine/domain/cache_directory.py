"""The directory of what can be made again, kept between runs: calibration, kernels, references."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """`edgeloom` in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgeloom"


def prune(folder: Path, pattern: str, keep: int) -> None:
    """Keep the newest `keep` of the files that match: each can be computed again."""
    files = sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-keep]:
        file.unlink(missing_ok=True)
