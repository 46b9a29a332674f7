"""Operators ask for calibrations on the page Machines; workers carry them out beside no run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from emulator.calibration.calibrate import Measured, Raw
from emulator.calibration.known import host_name, known_calibration
from emulator.calibration.shapes import SHORT
from emulator.host.places import queue_name
from emulator.session import calibrating as emulator_calibrating
from emulator.session.turns import turn
from engine.domain.calibration import Calibration, calibration_digest
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import HostError
from tests.support.host_profiles import a_profile
from tests.support.web import Browser, wait_until
from webapp.accounts.models import AuditEntry
from webapp.jobs import announcement as fleet
from webapp.jobs import calibration, workers
from webapp.jobs.calibrating import MachineCalibration
from webapp.jobs.calibration import Calibrating
from webapp.runs import tasks, waiting

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
ANN = workers.Identity("emulate@ann", "home-of-ann", 7, 70)
OWN_QUEUE = f"emulate:{ANN}"
FOUND = Calibration(
    profile=a_profile(host_name()),
    device=DeviceSpec(name="here", flop_per_s=1e11, memory_bytes=1e9, memory_byte_per_s=1e10, source="now"),
)


@pytest.fixture
def work() -> MachineCalibration:
    """The worker's part."""
    return MachineCalibration()


@pytest.fixture
def ann(live_redis: redis.Redis, work: MachineCalibration) -> Iterator[workers.Heartbeat]:
    """A worker's heartbeat, which beats when the test says so."""
    live_redis.delete(OWN_QUEUE, calibration.key_of(str(ANN)))
    heart = workers.Heartbeat(workers.introduction(ANN, "emulate", 1), figures=work.now)
    heart.beat()
    yield heart
    fleet.withdraw(heart.announcement)
    live_redis.delete(OWN_QUEUE, calibration.key_of(str(ANN)))


@pytest.fixture
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("EDGELOOM_STATE_DIR", str(tmp_path / "state"))


class Measuring:
    """Takes the place of measuring: goes on until the test lets it end."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.end = threading.Event()
        self.times = 0

    def __call__(self, extent: Any, models: Any, rows: Any, progress: Any, check: Any) -> Measured:
        self.times += 1
        progress("kernels")
        self.begun.set()
        while not self.end.wait(0.05):
            check()
        return Measured(FOUND, (), (), Raw((), ()))


@pytest.fixture
def measuring(own_places: None, monkeypatch: pytest.MonkeyPatch) -> Measuring:
    found = Measuring()
    monkeypatch.setattr(emulator_calibrating, "expect_emulations", lambda: None)
    monkeypatch.setattr(emulator_calibrating, "measured_steps", found)
    monkeypatch.setattr(emulator_calibrating, "with_link_messages", lambda found, extent, call: found)
    return found


def shown(browser: Browser) -> dict[str, Any]:
    """The worker on the page Machines."""
    found: dict[str, Any] = next(
        one for one in browser.get("/fleet").json()["workers"] if one["node"] == "emulate@ann"
    )
    return found


def ask(browser: Browser, action: str = "calibrate") -> int:
    return browser.post(f"/fleet/{action}", {"worker": str(ANN)}).status_code


def carry_out(work: MachineCalibration) -> threading.Thread:
    """As a worker's task does."""
    measure = partial(emulator_calibrating.calibrate_host, SHORT)
    thread = threading.Thread(target=work.carry_out, args=(str(ANN), 60.0, measure))
    thread.start()
    return thread


# Asking -------------------------------------------------------------------------------------------
def test_a_viewer_may_neither_ask_for_a_calibration_nor_stop_one(
    ann: workers.Heartbeat, alice: Browser, victor: Browser
) -> None:
    assert ask(victor) == 403 and not calibration.is_wanted(str(ANN))
    assert ask(alice) == 204
    assert ask(victor, "calibrate/stop") == 403 and calibration.is_wanted(str(ANN))


def test_an_operator_who_asks_wakes_the_worker_and_asking_twice_is_asking_once(
    ann: workers.Heartbeat, alice: Browser, live_redis: redis.Redis
) -> None:
    assert not shown(alice)["calibration_wanted"]
    assert [ask(alice), ask(alice)] == [204, 204]
    assert shown(alice)["calibration_wanted"] and live_redis.llen(OWN_QUEUE) == 1
    assert AuditEntry.objects.filter(action="asked to calibrate").count() == 1


def test_a_worker_that_is_not_there_or_takes_nothing_is_asked_for_no_calibration(
    ann: workers.Heartbeat, alice: Browser
) -> None:
    assert alice.post("/fleet/calibrate", {"worker": "emulate@nowhere/x/1/1"}).status_code == 404
    alice.post("/fleet/drain", {"worker": str(ANN)})
    ann.beat()
    answer = alice.post("/fleet/calibrate", {"worker": str(ANN)})
    assert answer.status_code == 409 and "it was drained by alice" in answer.json()["detail"]
    assert not calibration.is_wanted(str(ANN))


def test_an_idle_worker_wakes_itself_for_a_calibration_whose_message_is_gone(
    ann: workers.Heartbeat, alice: Browser, live_redis: redis.Redis
) -> None:
    ask(alice)
    live_redis.delete(OWN_QUEUE)
    busy = ann.announcement.model_copy(update={"calibrating": Calibrating(what="kernels", about_s=60.0)})
    assert not waiting.look_for_work(ANN, busy), "it is under way"
    assert waiting.look_for_work(ANN, ann.announcement) and live_redis.llen(OWN_QUEUE) == 1


# Carrying it out ----------------------------------------------------------------------------------
def test_nothing_is_measured_unless_somebody_asked(
    ann: workers.Heartbeat, work: MachineCalibration, measuring: Measuring
) -> None:
    carry_out(work).join()
    assert measuring.times == 0 and known_calibration() is None


def test_it_waits_for_the_run_on_its_machine_then_measures_and_the_page_shows_both(
    ann: workers.Heartbeat, alice: Browser, work: MachineCalibration, measuring: Measuring
) -> None:
    ask(alice)

    def waits() -> bool:
        ann.beat()
        now = shown(alice)["calibrating"]
        return now is not None and now["what"].startswith("waiting: 1 run ahead on this machine")

    with turn(queue_name(), lambda ahead: None):
        thread = carry_out(work)
        wait_until(waits, "the page to show that the calibration waits")
        assert shown(alice)["calibrating"]["elapsed_s"] is None and measuring.times == 0
    assert measuring.begun.wait(60)
    ann.beat()
    now = shown(alice)["calibrating"]
    assert (now["what"], now["about_s"]) == ("kernels", 60.0) and now["elapsed_s"] is not None
    measuring.end.set()
    thread.join()
    ann.beat()
    after = shown(alice)
    assert after["calibrating"] is None and not after["calibration_wanted"]
    assert known_calibration() == FOUND


def test_one_that_is_stopped_ends_and_the_machine_keeps_what_it_had(
    ann: workers.Heartbeat, alice: Browser, work: MachineCalibration, measuring: Measuring
) -> None:
    ask(alice)
    thread = carry_out(work)
    assert measuring.begun.wait(60)
    assert ask(alice, "calibrate/stop") == 204
    thread.join(60)
    assert not thread.is_alive() and known_calibration() is None
    ann.beat()
    after = shown(alice)
    assert (after["calibrating"], after["calibration_failure"]) == (None, "")
    measuring.end.set()
    ask(alice)
    carry_out(work).join()
    assert known_calibration() == FOUND, "the next one is not stopped by the last one's end"


def test_two_tasks_of_one_worker_measure_once(
    ann: workers.Heartbeat, alice: Browser, work: MachineCalibration, measuring: Measuring
) -> None:
    ask(alice)
    first = carry_out(work)
    assert measuring.begun.wait(60)
    carry_out(work).join()
    measuring.end.set()
    first.join()
    assert measuring.times == 1


def test_a_failure_is_said_until_the_next_one_begins(
    ann: workers.Heartbeat, alice: Browser, work: MachineCalibration
) -> None:
    def fails(**given: Any) -> None:
        raise HostError("Calibrating this machine failed: no memory.")

    ask(alice)
    work.carry_out(str(ANN), 60.0, fails)
    ann.beat()
    after = shown(alice)
    assert after["calibration_failure"] == "Calibrating this machine failed: no memory."
    assert after["calibrating"] is None and not after["calibration_wanted"]
    ask(alice)
    work.carry_out(str(ANN), 60.0, lambda **given: None)
    assert work.now()["calibration_failure"] == ""


def test_a_worker_that_ends_stops_its_calibration(
    ann: workers.Heartbeat, alice: Browser, work: MachineCalibration, measuring: Measuring
) -> None:
    ask(alice)
    thread = carry_out(work)
    assert measuring.begun.wait(60)
    work.end()
    thread.join(60)
    assert not thread.is_alive() and known_calibration() is None


def test_nothing_stays_under_way_after_a_worker_was_killed(
    ann: workers.Heartbeat, alice: Browser, work: MachineCalibration, live_redis: redis.Redis
) -> None:
    """Its announcement expires, and the process that takes its place was asked for nothing."""
    ask(alice)
    going = ann.announcement.model_copy(update={"calibrating": Calibrating(what="kernels", about_s=60.0)})
    fleet.announce(going)
    assert 0 < int(str(live_redis.ttl(fleet.key_of(going)))) <= fleet.SILENT_AFTER_S
    live_redis.delete(fleet.key_of(going))  # as it expires
    later = workers.Heartbeat(workers.introduction(ANN._replace(pid=8), "emulate", 1))
    later.beat()
    try:
        after = shown(alice)
        assert after["calibrating"] is None and not after["calibration_wanted"]
    finally:
        fleet.withdraw(later.announcement)


def test_a_queued_run_starts_when_the_calibration_is_over(
    ann: workers.Heartbeat, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Calibrating(what="kernels", about_s=60.0, elapsed_s=20.0)
    going = ann.announcement.model_copy(update={"calibrating": now})
    (slot,) = waiting._slots(going, [], 10.0, waiting.timezone.now())
    assert slot.free_in_s == 40.0


# What a worker announces --------------------------------------------------------------------------
def test_a_machine_says_how_and_when_it_was_calibrated_and_how_long_one_takes(
    own_places: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emulator.calibration.known import keep

    before = tasks.calibration_figures()
    assert before["calibration_takes_s"] > 0 and before["calibrated_at"] == 0
    keep(FOUND, {})
    after = tasks.calibration_figures()
    assert after["calibration"] == calibration_digest(FOUND.profile)  # what experiments call it, too
    assert after["calibrated"] == "now" and after["calibrated_at"] > 0
    assert before["calibration_caution"] == after["calibration_caution"] == ""
    profile = FOUND.profile.model_copy(update={"core_frac": 0.5})
    keep(FOUND.model_copy(update={"profile": profile}), {})
    assert tasks.calibration_figures()["calibration_caution"] == profile.caution != ""


def test_a_workers_task_calibrates_before_it_takes_a_run(
    ann: workers.Heartbeat, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    monkeypatch.setattr(tasks, "heartbeats", [ann])
    monkeypatch.setattr(workers, "this_worker", lambda node: ANN)
    monkeypatch.setattr(tasks, "calibrate_host", lambda *given, **more: order.append("calibrated"))
    monkeypatch.setattr(waiting, "take", lambda *given: order.append("looked for a run"))
    ask(alice)
    task = SimpleNamespace(request=SimpleNamespace(hostname="emulate@ann"))
    tasks.emulate_next.run.__func__(task)
    assert order == ["calibrated", "looked for a run"]
