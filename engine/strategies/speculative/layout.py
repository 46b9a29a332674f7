"""The layout of speculative decoding: who drafts with what, and who verifies."""

from __future__ import annotations

from typing import Literal

from engine.domain.plan import Layout
from engine.domain.values import Count


class SpeculativeLayout(Layout):
    """The ranks that draft and verify; drafts have at most `draft_length` tokens. The model's first
    `draft_layers` layers draft; 0: the draft model does.
    """

    kind: Literal["speculative"] = "speculative"
    draft_device: Count
    verify_device: Count
    draft_length: Count
    draft_layers: Count = 0
