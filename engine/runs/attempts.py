"""When a real run begins again, and at which dilation: the one way of the command line, the browser, points
of experiments and benchmarks, since all of them carry out runs by `execute.py`. Pure.

Only where the program chooses the dilation, and while nobody has changed anything live: a number that a
person gave belongs to the run, and what a person did cannot be done again.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.domain.report import RunReport
from engine.domain.spec import RunSpec

MOST_ENDED_EARLY = 2
"""How often a run is ended soon after its begin, when it is late already."""
MOST_REPEATED = 1
"""How often a run is repeated that was not valid in the end."""
REPEATED_WALL_S = 2.0
"""Wall seconds up to which a short run may be stretched in any case, when it begins again."""
ORDINALS = ("first", "second", "third", "fourth")
BUSY = "other work on this machine"


MOST_TIMES = 8.0
"""No dilation becomes more than so many times what this machine needs when it is alone, or what makes a short
run take some seconds: one that was held up for a moment asks for as much as if it had been so all the time.
Of 200 emulated points of four methods beside a load of 8 to 26 on two cores, some asked for 44 times; with
eight times 123 were valid, and after one repeat all.
"""


class Attempt(NamedTuple):
    """One of a run's attempts: how many were ended early and how many were repeated before it. `most` is the
    largest dilation.
    """

    dilation: float
    most: float
    ended_early: int = 0
    repeated: int = 0

    @property
    def number(self) -> int:
        return 1 + self.ended_early + self.repeated

    @property
    def words(self) -> str:
        """What the live views say of one that is not the first."""
        return f"{ORDINALS[self.number - 1]} attempt, dilation {self.dilation:g}: {BUSY}"

    @property
    def is_largest(self) -> bool:
        """Whether no attempt may have a larger dilation: another one would be late in the same way."""
        return self.dilation >= self.most

    @property
    def may_end_early(self) -> bool:
        return self.ended_early < MOST_ENDED_EARLY and not self.is_largest

    def after_early_end(self, needed: float) -> Attempt:
        return self._raised(needed)._replace(ended_early=self.ended_early + 1)

    def _raised(self, needed: float) -> Attempt:
        return self._replace(dilation=max(self.dilation, min(needed, self.most)))

    def after(self, report: RunReport, changed_live: bool) -> Attempt | None:
        """The attempt that follows the one of `report`; None: that one counts."""
        needed = report.fidelity.enough_dilation
        if report.fidelity.valid is not False or needed is None or report.outcome.kind != "finished":
            return None
        if changed_live or self.repeated >= MOST_REPEATED or self.is_largest or not may_repeat(report.spec):
            return None
        return self._raised(needed)._replace(repeated=self.repeated + 1)


def first_attempt(chosen: float, virtual_s: float) -> Attempt:
    """The first attempt of a run that is predicted to take so long, at the dilation chosen for it."""
    return Attempt(chosen, max(MOST_TIMES * chosen, REPEATED_WALL_S / max(virtual_s, 1e-9)))


def may_repeat(spec: RunSpec) -> bool:
    """Whether a run may begin again: nobody has had answers of it, and its dilation is the program's."""
    return spec.dilation == "auto" and not spec.workload.is_open


def note_of(attempt: Attempt, report: RunReport, changed_live: bool) -> str:
    """What a report says of attempts; "" if there was one and that was enough."""
    said = []
    if attempt.number > 1:
        said.append(f"This is the {ORDINALS[attempt.number - 1]} attempt: {BUSY} delayed what came before.")
    late = report.fidelity.valid is False and report.fidelity.enough_dilation is not None
    if late and changed_live and may_repeat(report.spec):
        said.append("It was not repeated, because somebody changed something while it went on.")
    elif late and attempt.is_largest and may_repeat(report.spec):
        said.append(
            f"It was late with dilation {attempt.dilation:g}, too, the largest that EdgeLoom chooses: start "
            f"it again when there is less {BUSY}, or give a dilation."
        )
    return " ".join(said)
