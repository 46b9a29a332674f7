"""Commands from the browser to a run: changes and stop, through one Redis list per run."""

from __future__ import annotations

import json
import queue
import threading
from contextlib import suppress
from typing import Self

from engine.domain.events import Logged
from engine.domain.scenario import LiveCommand
from engine.domain.units import human, human_s
from webapp.base.redis import REDIS_ERRORS, count_up, pop, push
from webapp.events.publisher import Publisher

OWN_MARKS = ("ask", "withdraw", "end_service")
"""Commands of which the run's own events say who gave them."""

KEEP_S = 12 * 3600
WAIT_S = 1
NO_COMMAND = ""
"""What wakes a feed that waits for a command: a run's report would come up to a second later."""


def list_of(run_id: int) -> str:
    return f"ctl:{run_id}"


def send(run_id: int, command: LiveCommand, by: str) -> int:
    """Hand a command to the run's worker; returns the command's number. Raises Redis' errors."""
    key = list_of(run_id)
    number = count_up(f"{key}:count", KEEP_S)
    push(key, json.dumps({"id": number, "by": by, "command": command}), KEEP_S)
    return number


class CommandFeed:
    """Moves commands from Redis into `queue`, in the worker, and logs in the run's events who sent them."""

    def __init__(self, run_id: int, publisher: Publisher):
        self.run_id = run_id
        self.publisher = publisher
        self.queue: queue.Queue[LiveCommand] = queue.Queue()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work, name=f"commands of run {run_id}", daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        with suppress(*REDIS_ERRORS):
            push(list_of(self.run_id), NO_COMMAND, KEEP_S)
        self.thread.join()

    def stop(self) -> None:
        """Let the run end, from any thread."""
        self.queue.put({"kind": "stop"})

    def _work(self) -> None:
        while not self.stopping.is_set():
            try:
                answer = pop(list_of(self.run_id), WAIT_S)
            except REDIS_ERRORS:
                self.stopping.wait(WAIT_S)  # commands come again when Redis does
                continue
            if answer:
                message = json.loads(answer)
                if message["command"]["kind"] not in OWN_MARKS:
                    text = f"{message['by']} asks: {describe(message['command'])}"
                    self.publisher.publish([Logged(level="info", text=text)])
                self.queue.put(message["command"] | {"by": message["by"]})


def describe(command: LiveCommand) -> str:
    match command["kind"]:
        case "set_rate":
            return f"set {command['link']} to {human(command['bit_per_s'], 'bit/s')} ({way_of(command)})"
        case "set_delay":
            return f"delay {command['link']} by {human_s(command['delay_s'])} ({way_of(command)})"
        case "set_loss":
            return f"lose {command['loss_frac']:.2%} of the packets on {command['link']} ({way_of(command)})"
        case "set_jitter":
            return f"delay {command['link']} by up to {human_s(command['jitter_s'])} more or less"
        case "slow_device":
            return f"let {command['device']} take {command['factor']:g} times as long"
        case "link_down" | "link_up" as kind:
            return f"{command['link']} {kind.removeprefix('link_')}"
        case "drop_device" | "freeze_device" as kind:
            return f"{kind.removesuffix('_device')} {command['device']}"
        case "join_device":
            return f"let {command['device']} join again"
        case kind:
            return str(kind)


def way_of(command: LiveCommand) -> str:
    return "both ways" if command["direction"] == "both" else f"only {command['direction']}"
