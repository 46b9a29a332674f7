"""`python -m bench.nodes.campaign`, which `./loom chaos --boards` runs in namespaces of its own: a server and
boards, and in each trial a run and a fault in the middle of it.

Whichever fault it is, the run ends, with the right tokens or with a sentence, its report is kept, the boards
are there again, and nothing of the run is left on them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.nodes.board import Board, Share
from bench.nodes.cases import cluster_of
from bench.nodes.faults import NodeTrial, problems_of, trial
from bench.nodes.site import ENDS, PORT, URL, Site
from bench.trials.isolated import Found, carry_out, found_by, numbered_trials, parser_of
from bench.trials.lan import build_switch, open_to_all, python_places
from bench.trials.servers import wait_for
from emulator.host.leftovers import Process
from engine.domain.errors import RunError
from webapp.ops.services import worker

BOARDS = 3
HUNG_S = 180.0
"""A run takes some seconds; a lost board is noticed after 15 s, and one that is slow to start after 60."""
MODEL = "model-on-boards"
RATE_BIT_PER_S = 1e8
REQUESTS, PROMPT_TOKENS, NEW_TOKENS = 300, 8, 40
GOES_S = 20.0
"""How long what a run has left may take to go."""
STAYS = ("emulator.session.fork_server", "emulator.calibration", "loom node")
"""What a node has beside runs."""


class Outcome(NamedTuple):
    trial: NodeTrial
    ending: str
    sentence: str
    problems: list[str]


def board_trials(seed: int, first: int, trials: int) -> Found:
    """Trials `first` to `first + trials` of a seed, as root. Raises `OpsError` if the campaign broke off."""
    return found_by(__name__, "--seed", str(seed), "--first", str(first), "--trials", str(trials))


class Desk:
    """A server and its boards; all of them are alike."""

    def __init__(self, directory: Path, measured: Path | None):
        self.site = Site(directory)
        self.boards: list[Board] = []
        self.site.start()
        self.site.keep_model(MODEL)
        for number in range(BOARDS):
            board = Board(number, Share(number % len(os.sched_getaffinity(0))), directory)
            self.boards.append(board)
            board.cable.shape(RATE_BIT_PER_S)
            if number:
                measured = self.boards[0].home
            if measured:
                board.measured_as(measured)
            self.site.add(board)
            board.start(URL)
            wait_for(partial(self.site.has_measured, board), f"the row of {board.name}")

    def close(self) -> None:
        for board in self.boards:
            board.end()
        self.site.close()
        for board in self.boards:
            board.group.remove()

    def play(self, one: NodeTrial) -> Outcome:
        desk = self.boards[: one.boards]
        if one.forgets:
            for board in desk:
                board.forget()
        problems: list[str] = []
        run: dict[str, Any] = {"status": "unknown"}
        try:
            run_id = self.site.begin(self.request(one, desk))
            self.until(run_id, ("loading", "running", *ENDS) if one.when == "loading" else ("running", *ENDS))
            until_s = time.monotonic() + one.after_s
            while time.monotonic() < until_s and self.site.run(run_id)["status"] not in ENDS:
                time.sleep(0.05)
            mend = self.disturb(one, self.boards[one.victim])
            if one.fault.endswith("for a while") or one.fault.startswith("restart"):
                time.sleep(one.for_s)
                mend()
                mend = nothing
            run = self.site.until_ended(run_id, HUNG_S)
            mend()
        except RunError as error:
            problems.append(f"hung: {error}")
        problems += problems_of(run)
        problems += self.heal()
        outcome = (run.get("report") or {}).get("outcome") or {}
        return Outcome(one, run["status"], outcome.get("sentence") or run.get("error") or "", problems)

    def until(self, run_id: int, statuses: tuple[str, ...]) -> None:
        until_s = time.monotonic() + HUNG_S
        while self.site.run(run_id)["status"] not in statuses:
            if time.monotonic() > until_s:
                raise RunError(f"run {run_id} is {self.site.run(run_id)['status']} before the fault")
            time.sleep(0.05)

    def request(self, one: NodeTrial, desk: list[Board]) -> dict[str, Any]:
        rows = [self.site.row(board.name)["device"] for board in desk]
        return {
            "cluster": cluster_of(rows, RATE_BIT_PER_S).model_dump(mode="json", exclude_defaults=True),
            "model": MODEL,
            "strategy": one.method,
            "workload": {
                "prompt_tokens": PROMPT_TOKENS,
                "new_tokens": NEW_TOKENS,
                "requests": REQUESTS,
            },
            "dilation": "nodes",
            "seed": one.number,
        }

    def disturb(self, one: NodeTrial, board: Board) -> Any:
        """Begin the fault; returns what ends it."""
        site = self.site
        match one.fault:
            case "kill node":
                board.send(signal.SIGKILL)
                return nothing
            case "kill run" | "kill device":
                runs = [each for each in board.processes() if "emulator.node.board_process" in words_of(each)]
                # the device process was forked from the run's: it has the same words
                for each in runs[:1] if one.fault == "kill run" else runs[1:2]:
                    with suppress(ProcessLookupError):
                        os.kill(each.pid, signal.SIGKILL)
                return nothing
            case "cut" | "cut for a while":
                board.cable.cut()
                return board.cable.mend
            case "pause" | "pause for a while":
                board.send_all(signal.SIGSTOP)
                return lambda: board.send_all(signal.SIGCONT)
            case "restart node":
                board.end()
                return lambda: board.start(URL)
            case "restart server":
                site.end_one("web")
                return site.start_web
            case "restart worker":
                site.end_one("worker-emulate")
                return lambda: site.start_one(worker("emulate"))
            case _:
                site.redis.kill()
                return site.start_redis

    def heal(self) -> list[str]:
        """Have all boards there again; what was left of the run, and who did not come back."""
        problems, since = [], datetime.now(UTC)
        for board in self.boards:
            if board.process is None or board.process.poll() is not None:
                board.process = None
                board.start(URL)
        for board in self.boards:
            try:
                wait_for(partial(self.site.has_measured, board, since), f"{board.name}, after the fault,")
            except Exception as error:
                problems.append(f"{board.name} is not there again: {error}")
        until_s = time.monotonic() + GOES_S
        while (left := self.left()) and time.monotonic() < until_s:
            time.sleep(0.2)
        return problems + left

    def left(self) -> list[str]:
        """What of runs is still on the boards and on the server."""
        found = []
        for board in self.boards:
            found += [f"{board.name} has {path}" for path in board.left()]
            for each in board.processes():
                words = words_of(each)
                if words and not any(known in words for known in STAYS):
                    found.append(f"{board.name} runs {words[:80]}")
            found += [f"{board.name} has the socket {line}" for line in sockets_of(board)]
        return found + self.site.left()


def sockets_of(board: Board) -> list[str]:
    """Those of TCP in its namespace, but its connection to the server and what the kernel closes."""
    line = ("ip", "netns", "exec", board.name, "ss", "-Htan")
    said = subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()
    found = []
    for state, _, _, here, there, *_ in map(str.split, said):
        if state in ("ESTAB", "LISTEN", "CLOSE-WAIT") and not there.endswith(f":{PORT}"):
            found.append(f"{state} {here} {there}")
    return found


def words_of(process: Process) -> str:
    """Its command line; empty if it is no longer there."""
    with suppress(OSError):
        return Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""


def nothing() -> None:
    return None


def rows_of(outcomes: list[Outcome], wall_s: float) -> list[tuple[str, str]]:
    endings = Counter(one.ending for one in outcomes)
    wrong = sum("tokens are right" in problem for one in outcomes for problem in one.problems)
    hung = sum(problem.startswith("hung") for one in outcomes for problem in one.problems)
    return [
        ("trials", str(len(outcomes))),
        ("finished with the right tokens", str(endings["finished"] - wrong)),
        ("ended with a sentence", str(endings["failed"] + endings["cancelled"])),
        ("wrong tokens", str(wrong)),
        ("hung", str(hung)),
        ("something left, or a board not there again", str(sum(bool(one.problems) for one in outcomes))),
        ("wall time", f"{wall_s:.0f} s"),
    ]


def campaign(seed: int, first: int, trials: int, measured: Path | None, directory: Path) -> Found:
    directory.chmod(0o755)
    open_to_all(*python_places())
    build_switch()
    began_s, outcomes = time.monotonic(), list[Outcome]()
    desk = Desk(directory, measured)
    try:
        for number in range(first, first + trials):
            outcomes.append(desk.play(trial(seed, number)))
            one = outcomes[-1]
            say(f"{one.trial.title}: {one.ending}: {one.sentence}")
            for problem in one.problems:
                say(f"  WRONG: {problem}")
    finally:
        desk.close()
    problems = [f"{one.trial.title}: {'; '.join(one.problems)}" for one in outcomes if one.problems]
    return Found(tuple(rows_of(outcomes, time.monotonic() - began_s)), tuple(problems))


def main() -> int:
    parser = parser_of(__doc__)
    numbered_trials(parser, 40)
    parser.add_argument("--measured", type=Path, help="a board's home, whose calibration all boards have")
    args = parser.parse_args()
    play = partial(campaign, args.seed, args.first, args.trials, args.measured)
    return carry_out(play, "boards", args.result)


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
