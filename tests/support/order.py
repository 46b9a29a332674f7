"""Files whose tests start servers, workers and emulations come first: they mostly wait, and the checks and
the browser, which run beside the tests at the beginning, have work for the cores meanwhile.
"""

from __future__ import annotations

import pytest

STARTS_PROCESSES = ("postgres", "redis", "root")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # xdist would begin with the files that have most tests


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    waiting = {item.path for item in items if any(map(item.get_closest_marker, STARTS_PROCESSES))}
    items.sort(key=lambda item: item.path not in waiting)
