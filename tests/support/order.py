"""Files whose tests start servers, workers and emulations come first: they mostly wait, and the checks and
the browser, which run beside the tests at the beginning, have work for the cores meanwhile.

And files that have real runs played go to one of xdist's workers, which then alone starts the process that
plays them and that of its references: they import torch and transformers for ten seconds.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

STARTS_PROCESSES = ("postgres", "redis", "root")
"""All that run one by one have one of these, and so keep the order of pytest-django: those with a database
before those in the browser, because Playwright leaves an event loop running, where Django asks no database.
"""
PLAYERS = ("ask_player", "in_a_copy", "play_for_real")
"""The fixtures that need the process that plays runs."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # xdist would begin with the files that have most tests


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    waiting = {item.path for item in items if any(map(item.get_closest_marker, STARTS_PROCESSES))}
    items.sort(key=lambda item: item.path not in waiting)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FilesButThosePlayed(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return place_of(config.rootpath / nodeid.partition("::")[0])

    return FilesButThosePlayed(config, log)


@cache
def place_of(file: Path) -> str:
    """The same for all files whose tests go to one worker."""
    text = file.read_text(encoding="utf-8")
    return "played" if any(fixture in text for fixture in PLAYERS) else str(file)
