"""One `./loom up`, one Chromium and one login; an empty page for every test."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    StorageState,
    ViewportSize,
    sync_playwright,
)

from tests.browser.chromium import ARGUMENTS, CHROMIUM, PATIENCE_MS
from tests.browser.pages import WINDOW
from tests.browser.service import end_runs
from tests.ops.test_up import Up, password_in
from tests.support.predicted_runs import Store, storing_predicted

LOOK_MS = 5_000
"""For what a page shows at the end of a test that has failed."""

STAYS = "/docs/"
"""A page of the site that asks for nothing later."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails says what its page showed, if the page still answers."""
    report = yield
    page = getattr(item, "funcargs", {}).get("page")
    if report.failed and call.when == "call" and page is not None:
        try:
            shown = page.locator("body").inner_text(timeout=LOOK_MS)
        except Error as error:
            shown = f"It could not be read: {error}"
        report.sections.append((page.url, shown))
    return report


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """EdgeLoom as a user starts it, with a state directory of its own."""
    up = Up(tmp_path_factory.getbasetemp() / "state")
    try:
        up.start()
        yield up
    finally:
        up.end()


@pytest.fixture(scope="session")
def store(site: Up) -> Iterator[Store]:
    """`store(bodies)`: the ids of finished runs on the site, one per request body, which were predicted."""
    with storing_predicted(site.environment) as store:
        yield store


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def administrator(site: Up, browser: Browser) -> StorageState:
    """The cookies of a browser that has logged in as the administrator, and nothing else that it keeps."""
    with closing(browser.new_context(base_url=site.url)) as context:
        context.set_default_timeout(PATIENCE_MS)
        opened = context.new_page()
        opened.goto("/")
        opened.get_by_test_id("login-username").fill("admin")
        opened.get_by_test_id("login-password").fill(password_in(site.text()))
        opened.get_by_test_id("login-submit").click()
        opened.get_by_test_id("start-demo").wait_for()
        return StorageState(cookies=context.storage_state()["cookies"], origins=[])


@pytest.fixture(scope="session")
def context(site: Up, browser: Browser, administrator: StorageState) -> Iterator[BrowserContext]:
    """The administrator's, of whom nothing asks for motion: its cache has the code of the pages, which takes
    long to load. Its first page stays, and with it the process that has compiled that code.
    """
    size = ViewportSize(width=WINDOW[0], height=WINDOW[1])
    with closing(
        browser.new_context(
            viewport=size, base_url=site.url, storage_state=administrator, reduced_motion="reduce"
        )
    ) as context:
        context.set_default_timeout(PATIENCE_MS)
        context.new_page().goto(STAYS)
        yield context


@pytest.fixture
def page(site: Up, context: BrowserContext) -> Iterator[Page]:
    """An empty page of the administrator, in whose browser no page has kept anything; nothing in it may break
    while a test looks elsewhere. Runs that the test leaves behind end with it: one is emulated at a time.
    """
    opened = context.new_page()
    session = context.new_cdp_session(opened)
    session.send("Storage.clearDataForOrigin", {"origin": site.url, "storageTypes": "local_storage"})
    session.detach()
    broken: list[str] = []
    opened.on("pageerror", lambda error: broken.append(str(error)))
    yield opened
    for each in context.pages[1:]:
        each.close()
    end_runs(context)
    assert broken == []
