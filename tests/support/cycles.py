"""Python's search for unused reference cycles leaves out what collecting the tests has made.

Those are a million objects, all modules among them, and in use until the end. Without this, every worker
walks through them again and again, while it collects and between the tests.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
