"""One `./loom up` and one Chromium for all browser tests; every test gets a fresh, logged-in page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.ops.test_up import Up, password_in

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
PATIENCE_MS = 90_000


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """EdgeLoom as a user starts it, with a state directory of its own."""
    up = Up(tmp_path_factory.mktemp("browser") / "state")
    up.start()
    yield up
    up.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(site: Up, browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page logged in as the administrator; nothing in it may break while a test looks elsewhere."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, base_url=site.url)
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    broken: list[str] = []
    opened.on("pageerror", lambda error: broken.append(str(error)))
    opened.goto("/")
    opened.get_by_test_id("login-username").fill("admin")
    opened.get_by_test_id("login-password").fill(password_in(site.text()))
    opened.get_by_test_id("login-submit").click()
    opened.get_by_test_id("start-demo").wait_for()
    yield opened
    context.close()
    assert broken == []
