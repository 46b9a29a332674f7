"""Checks many cases in several processes and counts how they ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from bench.fuzz.busy import BUSY_LOOPS, busy_machine
from engine.domain.errors import HostError
from engine.strategies.registry import STRATEGIES, origin_of, source_of

ROOT = Path(__file__).resolve().parents[2]


ALL = tuple(chosen.name for chosen in STRATEGIES)


class Campaign(NamedTuple):
    """Cases first … stop - 1 of a seed. `strategies` take turns: other ones give other cases.

    native: each is run by processes of this machine, which other programs keep busy. scheduled: requests
    meet, and devices fail.
    """

    seed: int
    first: int
    stop: int
    strategies: tuple[str, ...] = ALL
    native: bool = False
    scheduled: bool = False

    def strategy_of(self, index: int) -> str:
        return self.strategies[index % len(self.strategies)]


class Ended(NamedTuple):
    """One case: `end` and `sentence` are those of its `Verdict`."""

    number: int
    end: str
    sentence: str


def run_campaign(campaign: Campaign, processes: int) -> Iterator[Ended]:
    """The cases in the order in which they end. Leaving the loop ends the processes.

    Raises `HostError` if one of them dies.
    """
    with busy_machine(BUSY_LOOPS if campaign.native else 0):
        workers = [_start(campaign, number, processes) for number in range(processes)]
        try:
            yield from _cases_of(workers)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def _cases_of(workers: Sequence[subprocess.Popen[str]]) -> Iterator[Ended]:
    lines: SimpleQueue[tuple[int, str]] = SimpleQueue()
    for number, worker in enumerate(workers):
        Thread(target=_read, args=(number, worker, lines), daemon=True).start()
    running = len(workers)
    while running:
        number, line = lines.get()
        if line:
            yield Ended(*json.loads(line))
            continue
        running -= 1
        if status := workers[number].wait():
            raise HostError(f"fuzz: worker {number} ended with status {status}: see its words above.")


def _start(campaign: Campaign, number: int, processes: int) -> subprocess.Popen[str]:
    methods = (str(origin_of(name)) if source_of(name) else name for name in campaign.strategies)
    kind = int(campaign.native), int(campaign.scheduled)
    numbers = (campaign.seed, campaign.first + number, campaign.stop, processes, *kind)
    return subprocess.Popen(
        [sys.executable, "-m", "bench.fuzz.worker", *map(str, numbers), *methods],
        cwd=ROOT,
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_VERBOSITY": "critical",
            "OMP_NUM_THREADS": "1",
        },
        stdout=subprocess.PIPE,
        text=True,
    )


def _read(number: int, worker: subprocess.Popen[str], lines: SimpleQueue[tuple[int, str]]) -> None:
    """Every line of one worker, then an empty one."""
    assert worker.stdout is not None
    with worker.stdout as said:
        for line in said:
            lines.put((number, line))
    lines.put((number, ""))


def count(campaign: Campaign, ended: Sequence[Ended]) -> dict[str, Counter[str]]:
    """How often each strategy's cases ended in which way."""
    found: dict[str, Counter[str]] = {name: Counter() for name in campaign.strategies}
    for one in ended:
        found[campaign.strategy_of(one.number)][one.end] += 1
    return found
