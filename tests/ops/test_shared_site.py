"""Processes that test in a browser share a server; whoever started it ends it when the others have left."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.browser import shared_site as module
from tests.browser.shared_site import shared_site
from tests.ops.test_up import Up


class Ended(Up):
    """A site that nothing runs for, and that says when it was ended."""

    def end(self) -> None:
        with (self.state_dir.parent / "ended").open("a") as ended:
            ended.write(f"{self.state_dir.name}\n")


@pytest.fixture(autouse=True)
def without_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "started", Ended)


def test_whoever_started_the_site_ends_it_when_the_last_guest_has_left(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    first, guest = shared_site(tmp_path, "gw0"), shared_site(tmp_path, "gw1")
    site = first.__enter__()
    assert guest.__enter__().url == site.url
    leaves = threading.Thread(target=first.__exit__, args=(None, None, None))
    leaves.start()
    leaves.join(0.3)
    assert leaves.is_alive() and not ended.exists()
    guest.__exit__(None, None, None)
    leaves.join(30)
    assert ended.read_text() == "state-gw0\n"


def test_who_comes_after_its_end_starts_another(tmp_path: Path) -> None:
    for process in ("gw0", "gw1"):
        with shared_site(tmp_path, process) as site:
            assert site.state_dir == tmp_path / f"state-{process}"
    assert (tmp_path / "ended").read_text() == "state-gw0\nstate-gw1\n"
