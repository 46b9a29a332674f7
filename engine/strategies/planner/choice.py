"""The parameter `planner` of methods whose paper's rule is not the best: the rule, or the best plan.

`best` uses the method's full freedom. It sees speeds, memory and links, and may leave devices out. Its judge
is the predicted time of a request (of all requests of a burst).
"""

from __future__ import annotations

from typing import Literal

PlannerChoice = Literal["paper", "best"]
PLANNER_HELP = (
    "best: of all plans that the method allows the one with the shortest predicted request; it may leave "
    "devices out. paper: {rule}."
)
