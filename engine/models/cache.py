"""The directory of things that can be computed again, kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "EDGELOOM_CACHE"


def default_cache() -> Path:
    """$EDGELOOM_CACHE, or `edgeloom` in the user's cache directory."""
    base = os.environ.get(CACHE_VARIABLE)
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgeloom"


def prune(folder: Path, pattern: str, keep: int) -> None:
    """Keep the newest `keep` of the files that match: each can be computed again."""
    files = sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-keep]:
        file.unlink(missing_ok=True)
