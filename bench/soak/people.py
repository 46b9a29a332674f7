"""Plays people at the service who do one thing after another at random: start runs, change and stop them,
predict them, vary one in an experiment, look at everything.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from http.client import HTTPException
from random import Random
from typing import Any

from bench.chaos.kills import trial
from bench.service.clients import Api
from engine.domain.experiment import RUN_KEYS
from engine.domain.scenario import Scenario
from webapp.runs.requests import request_of

PAUSE_S = (0.2, 2.0)
MOST_OPEN = 2
"""Runs of one person that wait or go on: nobody asks faster than the machine works."""

UNTIL_PREDICTED_S = 30.0
ACTIVE = ("planning", "building", "loading", "running")
TRIALS_OF_ONE = 10_000
"""Each person has so many trials of the seed."""


class Person(threading.Thread):
    """A person who acts until `stopping` is set; `did` counts what was done, `broken` has what nobody
    expected.
    """

    def __init__(self, api: Api, seed: int, number: int, stopping: threading.Event):
        super().__init__(name=f"person {number}", daemon=True)
        self.api, self.seed, self.stopping = api, seed, stopping
        self.random = Random(f"{seed}/person {number}")
        self.trials = iter(range(number * TRIALS_OF_ONE, (number + 1) * TRIALS_OF_ONE))
        self.did: Counter[str] = Counter()
        self.mine: list[int] = []
        self.broken: list[str] = []
        self.acts: dict[str, tuple[int, Callable[[], bool]]] = {
            "started": (6, self.start_run),
            "changed live": (4, self.change),
            "cancelled": (1, self.cancel),
            "predicted": (2, self.predict),
            "experiments": (1, self.experiment),
            "looked": (3, self.look),
        }

    def run(self) -> None:
        names = tuple(self.acts)
        weights = [weight for weight, _ in self.acts.values()]
        while not self.stopping.wait(self.random.uniform(*PAUSE_S)):
            (name,) = self.random.choices(names, weights)
            try:
                self.did[name] += self.acts[name][1]()
            except (OSError, HTTPException):  # the server is just being started again
                self.did["met no server"] += 1
            except Exception as error:  # a finding
                self.broken.append(f"{self.name}, who would have {name}, broke: {error!r}")

    # Each is True if it did something -----------------------------------------------------------------
    def start_run(self) -> bool:
        if len(self.open_runs()) >= MOST_OPEN:
            return False
        answer = self.api.send("POST", "/api/runs", self.body())
        if answer:
            self.mine.append(answer["id"])
        return bool(answer)

    def change(self) -> bool:
        running = [row["id"] for row in self.open_runs() if row["status"] == "running"]
        if not running:
            return False
        run_id = self.random.choice(running)
        found = self.api.send("GET", f"/api/runs/{run_id}")
        if not found:
            return False
        device = self.random.choice(found["request"]["cluster"]["devices"])["name"]
        link = {"link": f"{device}--s1"}
        command = self.random.choice(
            [
                {"kind": "set_rate", "bit_per_s": self.random.uniform(2e6, 2e7), **link},
                {"kind": "set_delay", "delay_s": self.random.uniform(0.0, 0.01), **link},
                {"kind": "slow_device", "device": device, "factor": self.random.uniform(1.0, 2.0)},
                {"kind": "drop_device", "device": device},
                {"kind": "join_device", "device": device},
            ]
        )
        return bool(self.api.send("POST", f"/api/runs/{run_id}/changes", {"command": command}))

    def cancel(self) -> bool:
        found = self.open_runs()
        if not found:
            return False
        run_id = self.random.choice(found)["id"]
        self.api.send("POST", f"/api/runs/{run_id}/cancel", {})
        return self.api.requests[-1].status == 202

    def predict(self) -> bool:
        return bool(self.api.send("POST", "/api/predict", self.body()))

    def experiment(self) -> bool:
        """Predict a run at two rates; then perhaps emulate both, perhaps delete the experiment."""
        body = self.body(faults=False)
        base = {name: body[name] for name in RUN_KEYS if name in body and name != "name"}
        rates = {"name": "rate", "unit": "bit/s", "path": "cluster.links[*].bit_per_s", "values": [5e6, 2e7]}
        fields = {"name": "soak", "base": base, "factors": [rates], "seeds": [self.random.randrange(99)]}
        made = self.api.send("POST", "/api/experiments", {"experiment": fields})
        if not made:
            return False
        place = f"/api/experiments/{made['id']}"
        self.api.send("POST", f"{place}/predict", {})
        until_s = time.monotonic() + UNTIL_PREDICTED_S
        while time.monotonic() < until_s and not self.stopping.wait(0.5):
            found = self.api.send("GET", f"{place}/rows")
            if found and found["state"] == "finished":
                break
        self.api.send("GET", f"{place}/analysis")
        if self.random.random() < 0.5:
            self.api.send("POST", f"{place}/emulate", {"choose": "all"})
        else:
            self.api.send("DELETE", place)
        return True

    def look(self) -> bool:
        for path in ("/api/runs?limit=50", "/api/health", "/api/fleet", "/api/experiments"):
            self.api.send("GET", path)
        if self.mine:
            place = f"/api/runs/{self.random.choice(self.mine)}"
            for path in (place, f"{place}/events", f"{place}/report.json", f"{place}/critical-path"):
                self.api.send("GET", path)
        return True

    # What they look at --------------------------------------------------------------------------------
    def body(self, faults: bool | None = None) -> dict[str, Any]:
        """A random run as it is asked for; its faults stand in its scenario, or somebody brings them live."""
        spec = trial(self.seed, next(self.trials)).spec
        with_faults = self.random.random() < 0.5 if faults is None else faults
        if not with_faults:
            spec = spec.model_copy(update={"scenario": Scenario()})
        found: dict[str, Any] = request_of(spec, spec.name).model_dump(mode="json", exclude_none=True)
        return found

    def open_runs(self) -> list[dict[str, Any]]:
        rows = self.api.send("GET", "/api/runs?limit=500") or []
        return [row for row in rows if row["id"] in self.mine and row["status"] in ("queued", *ACTIVE)]
