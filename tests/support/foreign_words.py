"""Words of pydantic and of Python's inside, which no sentence for people has."""

from __future__ import annotations

import re

FOREIGN = re.compile(
    r"constrained|function-|literal\[|[Ii]nput should|should (have|match|be)|Field required|Extra inputs"
    r"|valid (integer|number|str|dict|list|bool|tuple|array)|dictionary|instance of|set_int_max"
    r"|unable to parse|extra_forbidden|validation error|NoneType|\bNone\b|\bTrue\b|\bFalse\b"
)
