"""What became of the drafts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from engine.domain.method_report import MethodReport
from engine.domain.trace import Mark, Span
from engine.domain.values import Count, Fraction

ACCEPTED = "accepted"
"""Decisions about drafts have names that start with this."""


class SpeculativeReport(MethodReport):
    """What became of the drafts of a run."""

    kind: Literal["speculative"] = "speculative"
    verifications: Count = Field(description="Passes over a draft.")
    drafted: Count = Field(description="Tokens of all drafts.")
    accepted: Count = Field(description="Those of them that were the model's own.")
    accepted_per_verification: float
    accepted_share: Fraction
    likely_acceptance: Fraction = Field(
        description="The share of tokens that the draft model guesses: of those that were compared, up to "
        "the first wrong one of each draft."
    )

    def lines(self) -> tuple[str, ...]:
        return (
            f"Of {self.drafted} drafted tokens {self.accepted} were accepted ({self.accepted_share:.0%}), "
            f"{self.accepted_per_verification:.2f} per verification; the draft guesses "
            f"{self.likely_acceptance:.0%} of the tokens (--likely-acceptance {self.likely_acceptance:.2f}).",
        )


def report_of(trace: Sequence[Span | Mark]) -> SpeculativeReport | None:
    """What became of the drafts in a trace; None without any."""
    answers = [
        item.facts["answer"]
        for item in trace
        if isinstance(item, Mark)
        and item.name == "decided"
        and str(item.facts["decision"]).startswith(f"{ACCEPTED}.")
    ]
    if not answers:
        return None
    accepted, drafted = (sum(one[field] for one in answers) for field in (0, 1))
    refusals = sum(right < of for right, of in answers)
    return SpeculativeReport(
        verifications=len(answers),
        drafted=drafted,
        accepted=accepted,
        accepted_per_verification=accepted / len(answers),
        accepted_share=accepted / drafted,
        likely_acceptance=accepted / (accepted + refusals),
    )
