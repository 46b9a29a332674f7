"""A run that serves, played by a thread: it reads commands as a worker does and publishes as a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty
from typing import Any

from django.db import connections

from engine.domain.events import Event, RequestRefused, StateChanged
from engine.domain.trace import Mark
from tests.support.web import request_body, run_spec
from webapp.events.publisher import Publisher
from webapp.jobs.lease import owner_of
from webapp.runs.control import CommandFeed
from webapp.runs.models import Run

PROMPT_TOKENS = 7


def serving_run(name: str = "edge", pattern: str = "serve", status: str = "running") -> Run:
    body = request_body()
    body["workload"] = {"pattern": pattern, "prompt_tokens": 100, "new_tokens": 50, "requests": 99}
    spec = run_spec().model_dump(mode="json")
    return Run.objects.create(
        name=name, status=status, request=body, spec=spec, cluster_name="lab-3", model="m", strategy="voltage"
    )


class Player:
    """Answers each request with the words of its prompt, a token each, and more than are asked for never.

    Prompts that begin with "refuse" and "busy" are refused; after "hang" it says one word and waits; after
    "die" the run ends. `commands` are those that came.
    """

    def __init__(self, run: Run):
        self.run = run
        self.commands: list[dict[str, Any]] = []
        self.numbers: dict[str, int] = {}
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._play, daemon=True)

    def _play(self) -> None:
        publisher = Publisher(owner_of(self.run))
        with publisher, CommandFeed(self.run.pk, publisher) as feed:
            while not self.ending.is_set():
                try:
                    command = feed.queue.get(timeout=0.02)
                except Empty:
                    continue
                self.commands.append(command)
                publisher.publish(self._events(command))
        connections.close_all()

    def _events(self, command: dict[str, Any]) -> list[Event]:
        name = command.get("id", "")
        if command["kind"] == "withdraw":
            facts = {"request": self.numbers.get(name, -1), "reason": f"Cancelled by {command['by']}."}
            return [Mark(9.0, "request_cancelled", "d1", facts)]
        if command["kind"] != "ask":
            return []
        text = command.get("text") or " ".join(map(str, command["tokens"]))
        if text.startswith(("refuse", "busy")):
            reason = "The prompt has 101 tokens, and this run takes up to 100: shorten it."
            return [RequestRefused(id=name, reason=reason, busy=text.startswith("busy"), field="prompt")]
        number = self.numbers[name] = len(self.numbers)
        most = command["new_tokens"] or 50
        words = [word + " " for word in text.split()][: 1 if text.startswith("hang") else most]
        facts = {"id": name, "by": command["by"], "prompt_tokens": PROMPT_TOKENS, "new_tokens": most}
        return [
            Mark(1.0, "request_accepted", "", {"request": number, **facts}),
            Mark(1.0, "request_begun", "d1", {"request": number}),
            *(
                Mark(
                    2.0, "token_emitted", "d1", {"request": number, "index": index, "token": 1, "text": word}
                )
                for index, word in enumerate(words)
            ),
            *self._end(text, number),
        ]

    def _end(self, text: str, number: int) -> list[Event]:
        if text.startswith("hang"):
            return []
        if text.startswith("die"):
            return [StateChanged(state="failed", detail="d1 is gone.")]
        return [Mark(3.0, "request_finished", "d1", {"request": number})]


@contextmanager
def played(run: Run) -> Iterator[Player]:
    player = Player(run)
    player.thread.start()
    try:
        yield player
    finally:
        player.ending.set()
        player.thread.join()
