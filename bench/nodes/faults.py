"""Random trials of boards, each repeatable from (seed, number): a run, and a fault in its middle. Pure."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, NamedTuple, get_args

Fault = Literal[
    "kill node",
    "kill run",
    "kill device",
    "cut",
    "cut for a while",
    "pause",
    "pause for a while",
    "restart node",
    "restart server",
    "restart worker",
    "restart Redis",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
METHODS = ("gpipe", "megatron", "voltage", "adaptlink")
MOST_AFTER_S = 4.0
WHILE_S = (0.5, 6.0)


class NodeTrial(NamedTuple):
    """`after_s`: seconds from the moment at which the run is said to be `when` until the fault. `for_s`: how
    long the fault lasts that ends by itself. `forgets`: whether boards begin without weights.
    """

    seed: int
    number: int
    method: str
    boards: int
    victim: int
    fault: Fault
    when: Literal["loading", "running"]
    after_s: float
    for_s: float
    forgets: bool

    @property
    def title(self) -> str:
        return (
            f"trial {self.number} of seed {self.seed}: {self.method} on {self.boards} boards, {self.fault} "
            f"of board {self.victim + 1}, {self.after_s:.1f} s after {self.when}"
        )


def trial(seed: int, number: int) -> NodeTrial:
    """The same trial for the same numbers. Faults come in turn, so that few trials have all of them."""
    random = Random(f"{seed}/{number}")
    boards = random.choice((2, 3))
    return NodeTrial(
        seed,
        number,
        random.choice(METHODS),
        boards,
        random.randrange(boards),
        FAULTS[number % len(FAULTS)],
        random.choice(("loading", "running", "running")),
        random.uniform(0.0, MOST_AFTER_S),
        random.uniform(*WHILE_S),
        random.random() < 0.5,
    )


def problems_of(run: dict[str, Any]) -> list[str]:
    """What is wrong with how a run has ended, after any fault."""
    status, report = run["status"], run.get("report") or {}
    outcome = report.get("outcome") or {}
    sentence = outcome.get("sentence") or run.get("error") or ""
    if status == "finished":
        right = (report.get("correctness") or {}).get("token_identical")
        return [] if right else [f"it finished, and its tokens are right: {right}"]
    found = []
    if not report:
        found.append("it has no report")
    if not sentence.endswith("."):
        found.append(f"it ended with no sentence: {sentence!r}")
    if "Traceback" in sentence or "Error:" in sentence:
        found.append(f"its sentence is a programmer's: {sentence}")
    return found
