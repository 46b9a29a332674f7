"""The parameter `planner` of methods whose paper's rule is not the best: the rule, or the best plan.

`best` uses the method's full freedom. It sees speeds, memory and links, and may leave devices out. Its judge
is the predicted time of a request (of all requests of a burst).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from engine.program.strategy import DivisibleParams

PlannerChoice = Literal["paper", "best"]
"""The parameter `planner` of methods that have a paper's rule and our search."""

PLANNER_HELP = (
    "best: of all plans that the method allows the one with the shortest predicted request; it may leave "
    "devices out. paper: {rule}."
)
"""Description of the parameter `planner`; `format(rule=…)` says the paper's rule."""


WORTH_NAMING = 1.02
"""The least gain that is worth naming."""


class PlannedParams(DivisibleParams):
    """Base of the parameters of a strategy that has the parameter `planner`, which each declares with its
    default.

    `rule` names the parameters that only the rule of planner=paper reads. To give one of them and no planner
    means planner=paper.
    """

    rule: ClassVar[tuple[str, ...]] = ()
    planner: PlannerChoice

    @classmethod
    def with_best(cls, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """`given` with planner=best in place of its rule; None where they mean best already, or a plan made
        by hand. Raises `ValidationError`.
        """
        params = cls.model_validate(dict(given))
        if params.plan is not None or params.planner == "best":
            return None
        return {name: value for name, value in given.items() if name not in cls.rule} | {"planner": "best"}

    @model_validator(mode="before")
    @classmethod
    def _rule_means_paper(cls, data: Any) -> Any:
        if isinstance(data, dict) and "planner" not in data and any(name in data for name in cls.rule):
            return {**data, "planner": "paper"}
        return data

    @model_validator(mode="after")
    def _best_has_no_rule(self) -> Self:
        """Check that planner=best comes with no value of the paper's rule, which it would not read; raises
        `ValueError`.
        """
        for name in self.rule if self.planner == "best" else ():
            value = getattr(self, name)
            if value != type(self).model_fields[name].default:
                raise ValueError(
                    f"has {name}={value} with planner=best, which does not read {name}: set planner=paper, "
                    f"or leave {name} out"
                )
        return self
