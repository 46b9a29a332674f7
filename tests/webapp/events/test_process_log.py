"""The log of the processes of a run's devices, over HTTP and from a notebook."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from edgeloom import Client
from engine.domain.events import ClockTicked, Event, ProcessLogged, to_json_text
from engine.domain.stored import SCHEMA
from tests.support.web import Browser, request_body, run_spec
from webapp.events import process_log
from webapp.events.models import EventSegment
from webapp.runs.models import Run

BATCHES: list[list[Event]] = [
    [ProcessLogged(device="desk", time_s=0.0, lines=("loading", "loaded"))],
    [ClockTicked(time_s=0.5, wall_s=1.0)],
    [
        ProcessLogged(device="shelf", time_s=0.6, lines=("a warning",)),
        ProcessLogged(device="desk", time_s=0.7, lines=("done",)),
    ],
]


@pytest.fixture
def run(db: None) -> Run:
    """An archived run whose events are three batches."""
    spec = run_spec()
    stored = Run.objects.create(
        status="finished",
        archived=True,
        request=request_body(),
        spec=spec.model_dump(mode="json"),
        cluster_name="lab-3",
        model="tiny-gpt2",
        strategy="voltage",
    )
    text = "\n".join(to_json_text(batch) for batch in BATCHES)
    EventSegment.objects.create(
        run=stored, first=1, last=len(BATCHES), batches=gzip.compress(text.encode()), schema=SCHEMA
    )
    return stored


def texts(answer: dict[str, Any]) -> list[str]:
    return [line["text"] for line in answer["lines"]]


def test_a_viewer_reads_all_lines_or_those_of_a_device(run: Run, victor: Browser) -> None:
    path = f"/runs/{run.pk}/process-log"
    whole = victor.get(path).json()
    assert texts(whole) == ["loading", "loaded", "a warning", "done"]
    assert whole["lines"][2] == {"device": "shelf", "time_s": 0.6, "text": "a warning"}
    assert (whole["cursor"], whole["more"]) == (3, False)
    assert texts(victor.get(f"{path}?device=desk").json()) == ["loading", "loaded", "done"]


def test_pages_have_a_limit_and_go_on_at_the_cursor(run: Run, victor: Browser) -> None:
    path = f"/runs/{run.pk}/process-log?limit=1"
    first = victor.get(path).json()
    assert (texts(first), first["cursor"], first["more"]) == (["loading", "loaded"], 1, True)
    second = victor.get(f"{path}&since=1").json()
    assert (texts(second), second["cursor"], second["more"]) == (["a warning", "done"], 3, False)
    assert victor.get(f"/runs/{run.pk}/process-log?limit={process_log.MOST_LINES + 1}").status_code == 422
    assert victor.get(f"/runs/{run.pk}/process-log?since=-1").status_code == 422


def test_one_request_reads_only_so_much_of_a_long_run(
    run: Run, victor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_log, "SCANNED_CHARS", 1)
    answer = victor.get(f"/runs/{run.pk}/process-log?since=1").json()
    assert (answer["lines"], answer["cursor"], answer["more"]) == ([], 2, True)


def test_an_unknown_device_or_run_is_refused_with_what_there_is(run: Run, victor: Browser) -> None:
    refused = victor.get(f"/runs/{run.pk}/process-log?device=toaster")
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("device is 'toaster', expected one of the run's devices: ")
    assert victor.get("/runs/0/process-log").status_code == 404


def test_a_notebook_gets_the_lines_of_every_page(
    run: Run, victor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Notebook(Client):
        asked = 0

        def call(self, method: str, path: str, body: Any = None) -> Any:
            self.asked += 1
            return victor.get(path.removeprefix("/api")).json()

    monkeypatch.setattr(process_log, "SCANNED_CHARS", 1)
    notebook = Notebook("http://testserver", "")
    lines = list(notebook.run(run.pk).process_log("desk"))
    assert [line["text"] for line in lines] == ["loading", "loaded", "done"]
    assert notebook.asked == 3
