"""The table of mutation scores in docs/results/tests.md. A batch replaces its own rows only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

SCORE = re.compile(r"\| `([^`]+)` \| (\d+) \| \d+ \|")
SURVIVOR = re.compile(r"\| `([^`]+\.py)` \| `(.+)` → `(.+)` \| [^|]* \|")
Change = tuple[str, str]
"""The changed line of a survivor: before, after."""


def is_argued(argued: Sequence[dict[str, Any]], module: str, old: str, new: str) -> str:
    """Why this survivor changes nothing that matters; empty if no reason is given."""
    found = (e["why"] for e in argued if (e["module"], e["old"], e["new"]) == (module, old, new))
    return next(found, "")


class ScoreTable:
    """By module in the order of modules.toml: how many mutants were tried, and which survived."""

    def __init__(self, seed: int, modules: Sequence[str]) -> None:
        self.seed = seed
        self.modules = modules
        self.tried: dict[str, int] = {}
        self.survivors: dict[str, list[Change]] = {}

    @classmethod
    def read(cls, text: str, seed: int, modules: Sequence[str]) -> ScoreTable:
        """The table of a section of the document; empty if that was drawn with another seed."""
        table = cls(seed, modules)
        if f"seed {seed}." not in text:
            return table
        for line in text.splitlines():
            if (score := SCORE.fullmatch(line)) and score[1] in modules:
                table.put(score[1], int(score[2]), [])
            elif (survivor := SURVIVOR.fullmatch(line)) and survivor[1] in table.tried:
                old, new = (cell.replace("\\|", "|") for cell in survivor.group(2, 3))
                table.survivors[survivor[1]].append((old, new))
        return table

    def put(self, module: str, tried: int, survivors: list[Change]) -> None:
        """Replace what is known of a module; `tried` = 0: nothing is."""
        self.tried.pop(module, None)
        if tried:
            self.tried[module], self.survivors[module] = tried, survivors

    def as_markdown(self, argued: Sequence[dict[str, Any]]) -> str:
        scored = [module for module in self.modules if module in self.tried]
        tried = sum(self.tried[module] for module in scored)
        changes = [(module, *change) for module in scored for change in self.survivors[module]]
        killed = tried - len(changes)
        reasons = [is_argued(argued, *change) for change in changes]
        lines = [
            f"{killed} of {tried} mutants found ({killed / max(tried, 1):.0%}), "
            f"{sum(map(bool, reasons))} survivors argued; "
            f"{len(scored)} of {len(self.modules)} modules scored; seed {self.seed}.",
            "",
            "| module | mutants | found |",
            "| --- | ---: | ---: |",
        ]
        lines += [
            f"| `{module}` | {self.tried[module]} | {self.tried[module] - len(self.survivors[module])} |"
            for module in scored
        ]
        if changes:
            lines += ["", "| survivor | change | why it may survive |", "| --- | --- | --- |"]
        for (module, old, new), why in zip(changes, reasons, strict=True):
            before, after = (text.replace("|", "\\|") for text in (old, new))
            lines.append(
                f"| `{module}` | `{before}` → `{after}` | {why or 'not argued: a test is missing'} |"
            )
        return "\n".join(lines)
