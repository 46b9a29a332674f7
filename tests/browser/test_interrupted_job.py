"""An experiment whose web server, Redis, workers and browser are killed in the middle goes on by itself."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.ops.conftest import wait_until
from tests.ops.test_up import Up
from webapp.jobs.models import ACTIVE

pytestmark = [
    pytest.mark.browser,
    pytest.mark.root,
    pytest.mark.redis,
    pytest.mark.long("webapp", "engine/experiments"),
]

NUM_POINTS = 12
EMULATING = [[status] for status in ACTIVE if status != "planning"]

SLOW_AND_QUICK = {
    "name": "interrupted",
    "base": {
        "model": "demo-lm",
        "strategy": "mcu",
        "dilation": 10,
        "workload": {"prompt_tokens": 8, "new_tokens": 8},
    },
    "factors": [
        # A point of the 64 chips takes some tenths of a second to predict; three devices can be emulated.
        {"name": "cluster", "path": "cluster", "values": ["mcu-64", "lab-3"]},
        {"name": "prompt", "path": "workload.prompt_tokens", "values": [8, 9, 10, 11, 12, 13]},
    ],
}


class Computed(NamedTuple):
    """What the database knows of one point in one world."""

    digest: str
    world: str
    status: str
    changed_at: str
    attempts: int


def in_database(site: Up, experiment: int) -> set[Computed]:
    """Every point that the experiment wants, read without the web server."""
    query = """
        SELECT DISTINCT run.digest, run.world, run.status, run.changed_at, run.attempts
        FROM runs_run AS run
        JOIN experiments_cell AS cell ON cell.run_id = run.id
        JOIN experiments_execution AS execution ON cell.execution_id = execution.id
        WHERE execution.experiment_id = ?
    """
    with closing(sqlite3.connect(site.state_dir / "edgeloom.sqlite3")) as database:
        return {Computed(*row) for row in database.execute(query, (experiment,))}


def done(computed: set[Computed], world: str) -> set[Computed]:
    return {one for one in computed if one.world == world and one.status == "finished"}


def statuses(site: Up) -> list[str]:
    """Of all emulations of the experiment, the oldest first."""
    query = "SELECT status FROM runs_run WHERE world = 'emulated' AND tags LIKE '%interrupted%' ORDER BY id"
    with closing(sqlite3.connect(site.state_dir / "edgeloom.sqlite3")) as database:
        return [status for (status,) in database.execute(query)]


def kill(site: Up, parts: Sequence[str]) -> None:
    """End these children of `./loom up`, each with all processes of its group, as a lack of memory does."""
    supervisor = site.process.pid
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in children}
    for part in parts:
        (pid,) = (pid for pid, command in commands.items() if part in command.replace("\0", " "))
        os.killpg(pid, signal.SIGKILL)


def begin(page: Page) -> int:
    """All points are being predicted, and the first of the three devices is to be emulated; the page of the
    experiment is open. Returns its number.
    """
    session = page.request.get("/api/session").json()
    headers = {"X-CSRFToken": session["csrf_token"]}

    def post(path: str, body: dict[str, Any]) -> Any:
        place = f"/api/experiments{path}"
        answer = page.request.post(place, data=body, headers=headers, timeout=PATIENCE_MS)
        assert answer.ok, answer.text()
        return answer.json()

    number: int = post("", {"experiment": SLOW_AND_QUICK})["id"]
    page.goto(f"/experiments/{number}")
    page.get_by_test_id("predict").click()
    page.get_by_test_id("progress-predicted").wait_for()
    rows = page.request.get(f"/api/experiments/{number}/rows").json()["rows"]
    digest = next(row["digest"] for row in rows if row["coordinates"]["cluster"] == "lab-3")
    post(f"/{number}/emulate", {"digests": [digest]})
    return number


def kill_in_the_middle(site: Up, number: int) -> set[Computed]:
    """Kill the predicting part once a point is there, and the emulating worker once it emulates, in whichever
    order that comes; returns the predictions that were there.
    """
    before: set[Computed] = set()

    def both_are_killed() -> bool:
        nonlocal before, emulating
        if not before and done(in_database(site, number), "predicted"):
            kill(site, ("webapp.asgi", "redis-server", "-Q plan", "-Q points"))
            before = done(in_database(site, number), "predicted")
        if emulating and statuses(site)[-1:] in EMULATING:
            kill(site, ("-Q emulate",))
            emulating = False
        return bool(before) and not emulating

    emulating = True
    wait_until(both_are_killed, "a point and an emulation")
    return before


def shown(page: Page) -> int:
    """The number of predicted points that the page says are done."""
    text = page.get_by_test_id("progress-predicted").inner_text()
    found = re.match(rf"Predicted (\d+) of {NUM_POINTS}", text)
    assert found, text
    return int(found.group(1))


def answers(page: Page, address: str) -> bool:
    try:
        return bool(page.goto(address))
    except Error:  # nobody listens yet
        return False


def test_an_experiment_goes_on_after_web_server_redis_workers_and_browser_were_killed(
    site: Up, browser: Browser, page: Page
) -> None:
    number = begin(page)
    before = kill_in_the_middle(site, number)
    assert len(before) < NUM_POINTS, "nothing was killed in the middle"
    assert shown(page) <= len(done(in_database(site, number), "predicted"))
    visitor = page.context.storage_state()
    page.close()

    with closing(browser.new_context(base_url=site.url, storage_state=visitor)) as context:
        context.set_default_timeout(PATIENCE_MS)
        later = context.new_page()
        wait_until(lambda: answers(later, f"/experiments/{number}"), "the web server")
        predicted = later.get_by_test_id("progress-predicted")
        text = re.compile(rf"Predicted {NUM_POINTS} of {NUM_POINTS}$")
        # beside other work, all parts of the server take more than a minute to start again
        expect(predicted).to_contain_text(text, timeout=2 * PATIENCE_MS)
        expect(later.get_by_test_id("progress-emulated")).to_contain_text(re.compile("Emulated 1 of 1(,|$)"))
        expect(later.get_by_test_id("experiment-state")).to_have_text("finished")
    after = in_database(site, number)
    assert before <= done(after, "predicted"), "a point that was there was computed again"
    assert len(done(after, "predicted")) == NUM_POINTS
    assert all(one.attempts <= 2 for one in after), "a point was taken more often than workers were killed"
    assert statuses(site) == ["failed", "finished"]
