"""The people of a load: some watch one live run over WebSockets, some start runs and look at lists."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from websockets.asyncio.client import connect

LOOK_EVERY_S = 2.0
"""A page asks for each of its lists about as often."""
ENDS = ("finished", "failed", "cancelled")


class Seen(NamedTuple):
    """What one viewer got: the numbers of the lines in their order, when each was said and how late it came,
    and the run's end. `connected_s` is when the first frame came.
    """

    lines: list[int]
    lags_s: list[tuple[float, float]]
    end: str
    connected_s: float = 0.0


class Request(NamedTuple):
    path: str
    status: int
    took_s: float


class Api:
    """A client with an API token; `requests` has every request."""

    def __init__(self, url: str, token: str):
        self.url, self.token = url, token
        self.requests: list[Request] = []

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The answer; None if it was refused."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        began_s = time.monotonic()
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, b"null"
        name = f"{method} {path.partition('?')[0]}"
        self.requests.append(Request(name, status, time.monotonic() - began_s))
        return json.loads(text or b"null")


class Person(threading.Thread):
    """Starts runs one after another and looks at the lists in between, from `after_s` until `stopping` is
    set. Everybody has a time of their own: pages of different people do not ask in the same millisecond.
    """

    def __init__(
        self, api: Api, body: dict[str, Any], seeds: range, stopping: threading.Event, after_s: float
    ):
        super().__init__(daemon=True)
        self.api, self.body, self.seeds, self.stopping = api, body, seeds, stopping
        self.after_s = after_s
        self.started: list[int] = []

    def run(self) -> None:
        seeds = iter(self.seeds)
        self.stopping.wait(self.after_s)
        while not self.stopping.wait(LOOK_EVERY_S):
            seed = next(seeds, None)
            if seed is not None:
                answer = self.api.send("POST", "/api/runs", self.body | {"seed": seed})
                if answer:
                    self.started.append(answer["id"])
            self.api.send("GET", "/api/runs?limit=50")
            self.api.send("GET", "/api/health")
            self.api.send("GET", "/api/machines")
            if self.started:
                self.api.send("GET", f"/api/runs/{self.started[-1]}")


async def watch(url: str, run_id: int, token: str) -> Seen:
    """Watch a run from the first event to its end."""
    seen = Seen([], [], "")
    address = f"{url.replace('http', 'ws', 1)}/ws/runs/{run_id}?since=0"
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(address, additional_headers=headers, max_size=None, open_timeout=60) as socket:
        async for frame in socket:
            now_s = time.time()
            if not seen.connected_s:
                seen = seen._replace(connected_s=now_s)
            for event in json.loads(frame)["events"]:
                kind = event["type"]
                if kind == "log" and event["text"].startswith("line "):
                    seen.lines.append(int(event["text"].removeprefix("line ")))
                elif kind == "clock":
                    seen.lags_s.append((event["wall_s"], now_s - event["wall_s"]))
                elif kind == "state" and event["state"] in ENDS:
                    return seen._replace(end=event["state"])
    return seen


def watch_all(url: str, run_id: int, token: str, viewers: int) -> list[Seen]:
    """Let `viewers` watch a run at once, in this process."""

    async def everybody() -> list[Seen]:
        return await asyncio.gather(*(watch(url, run_id, token) for _ in range(viewers)))

    return asyncio.run(everybody())
