"""Fields of a /v1 request whose value must change nothing: clients send them as a matter of course."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from engine.domain.errors import SpecError

SHOWN_CHARS = 40
GREEDY_BELOW = 1e-5
"""vLLM's `_SAMPLING_EPS`, `vllm/sampling_params.py`."""


class Neutral(NamedTuple):
    """The values of a field that ask for what a run does anyway, and what a run does."""

    values: tuple[Any, ...]
    why: str


_ONE_ANSWER = "a run answers once"
_AS_LIKELY = "a token is as likely as the model says"
_TEXT_ALONE = "a run answers with text alone"
_NO_TOOLS = "a run knows no tools"

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
"""A model that knows no efforts answers as always, and no run's chat template is told of them: as in vLLM."""

NEUTRAL = {
    "n": Neutral((1,), _ONE_ANSWER),
    "best_of": Neutral((1,), _ONE_ANSWER),
    "min_p": Neutral((0,), "a run draws among the tokens of top_p and top_k alone"),
    "presence_penalty": Neutral((0,), _AS_LIKELY),
    "frequency_penalty": Neutral((0,), _AS_LIKELY),
    "repetition_penalty": Neutral((1,), _AS_LIKELY),
    "length_penalty": Neutral((1,), _ONE_ANSWER),
    "logit_bias": Neutral(({},), _AS_LIKELY),
    "use_beam_search": Neutral((False,), _ONE_ANSWER),
    "min_tokens": Neutral((0,), "an answer ends where the model ends it, unless ignore_eos is true"),
    "stop_token_ids": Neutral(([],), "an answer ends at the tokens that the model ends texts with"),
    "include_stop_str_in_output": Neutral((False,), "an answer ends before a stop text"),
    "bad_words": Neutral(([],), "a run keeps no token back"),
    "skip_special_tokens": Neutral((True,), "tokens that mark something are not part of the text"),
    "spaces_between_special_tokens": Neutral((True,), "tokens that mark something are not part of the text"),
    "add_generation_prompt": Neutral((True,), "an answer is the assistant's next turn"),
    "continue_final_message": Neutral((False,), "an answer is the assistant's next turn"),
    "chat_template_kwargs": Neutral(({},), "a chat template is told nothing but the messages"),
    "reasoning_effort": Neutral(EFFORTS, "no run thinks more or less than its model does"),
    "logprobs": Neutral((False,), _TEXT_ALONE),
    "top_logprobs": Neutral((0,), _TEXT_ALONE),
    "echo": Neutral((False,), _TEXT_ALONE),
    "suffix": Neutral(("",), "a run continues a text and fills no gap in one"),
    "modalities": Neutral((["text"],), _TEXT_ALONE),
    "response_format": Neutral(({"type": "text"},), "a run answers in no other form than text"),
    "tools": Neutral(([],), _NO_TOOLS),
    "tool_choice": Neutral(("none", "auto"), _NO_TOOLS),
    "functions": Neutral(([],), _NO_TOOLS),
    "function_call": Neutral(("none", "auto"), _NO_TOOLS),
    "store": Neutral((False,), "a run keeps no answer for later"),
    "service_tier": Neutral(("auto", "default"), "a run serves everybody alike"),
    "priority": Neutral((0,), "a run serves everybody alike"),
}

LABELS = frozenset({
    "user", "metadata", "safety_identifier", "prompt_cache_key", "request_id", "cache_salt",
    "parallel_tool_calls",
})  # fmt: skip
"""Fields of which no value changes an answer: names of things, and what belongs to tools."""


def check_neutral(asked: dict[str, Any], understood: frozenset[str]) -> None:
    """Check that no field besides those `understood` asks for another answer. Raises `SpecError`."""
    for name, value in asked.items():
        if value is None or name in understood or name in LABELS:
            continue
        if name == "min_p" and is_greedy(asked.get("temperature")) and isinstance(value, int | float):
            continue
        if name == "min_tokens" and asked.get("ignore_eos") is True:
            continue
        neutral = NEUTRAL.get(name)
        if neutral is None:
            raise refusal(name, "no run knows this field, which may ask for another answer: leave it out")
        if not any(_same(value, one) for one in neutral.values):
            choices = " or ".join(shown(one) for one in neutral.values)
            raise refusal(name, f"{shown(value)} is given, but {neutral.why}: give {choices} or leave it out")


def is_greedy(temperature: Any) -> bool:
    """Whether a temperature leaves nothing to chance: 0, or so little that vLLM takes it as 0."""
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    return number and 0 <= temperature < GREEDY_BELOW


def _same(value: Any, other: Any) -> bool:
    """Equal, and no number that is written as true or false."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def refusal(path: str, complaint: str) -> SpecError:
    return SpecError(f"{path}: {complaint}.", [(path, complaint)])


def shown(value: Any) -> str:
    """The beginning of a value as JSON writes it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
