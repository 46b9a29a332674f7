"""Writes a conversation as the prompt that a model was trained on, with the template beside its weights."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.models.inputs.text import encode
from engine.models.weights.directory import read_json

FILES = TEMPLATE_FILE, CONFIG_FILE = "chat_template.jinja", "tokenizer_config.json"

RENDER_S = 2.0

Messages = Sequence[Mapping[str, str]]
"""Each with `role` and `content`, in their order."""


def chat_tokens(
    model: ModelSpec, weights: WeightsRef, messages: Messages, most_chars: int
) -> tuple[int, ...] | None:
    """Token ids of a conversation with the beginning of the answer; None if the model has no chat template.

    The template adds the special tokens, so the tokenizer adds none. Raises `SpecError` for a template
    that does not work, takes longer than `RENDER_S`, writes more than `most_chars` characters, or refuses
    the conversation.
    """
    if not has_template(weights):
        return None
    try:
        with _limited(RENDER_S):
            text = _rendered(weights, messages)
    except Exception as error:  # the template is its author's code: whatever goes wrong in it is its refusal
        said = str(error) or type(error).__name__
        raise SpecError(f"messages: the chat template of {model.name} refuses them: {said}.") from error
    if len(text) > most_chars:
        raise SpecError(
            f"messages: the chat template of {model.name} makes {len(text):,} characters of them, and this "
            f"run takes up to {most_chars:,}: shorten them."
        )
    return encode(model, weights, text, add_special_tokens=False)


def has_template(weights: WeightsRef) -> bool:
    """Whether the model has a chat template. The libraries that it needs are loaded then, which takes
    seconds.
    """
    if weights.kind != "directory" or not _is_there(weights.directory):
        return False
    from transformers.utils import chat_template_utils  # noqa: F401

    return True


def _is_there(directory: str) -> bool:
    if (Path(directory) / TEMPLATE_FILE).is_file():
        return True
    file = Path(directory) / CONFIG_FILE
    return file.is_file() and bool(read_json(file).get("chat_template"))


def _rendered(weights: WeightsRef, messages: Messages) -> str:
    """Jinja's sandbox keeps the template from the program."""
    from transformers.utils.chat_template_utils import render_jinja_template

    template, special = _template_of(weights.directory)
    if not template:
        raise ValueError("there are several, and none is named default")
    (text,), _ = render_jinja_template(
        [[dict(message) for message in messages]],
        chat_template=template,
        add_generation_prompt=True,
        **special,
    )
    return str(text)


@contextmanager
def _limited(cpu_s: float) -> Iterator[None]:
    """Raises `TimeoutError` in the block after so many seconds of processor time. For the main thread."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it takes longer than {cpu_s:g} s")

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@lru_cache(maxsize=8)
def _template_of(directory: str) -> tuple[str, dict[str, str]]:
    """The template, "" if there is none, and the special tokens that it may name, such as `bos_token`."""
    config_file, template_file = Path(directory) / CONFIG_FILE, Path(directory) / TEMPLATE_FILE
    config = read_json(config_file) if config_file.is_file() else {}
    special = {
        name: value["content"] if isinstance(value, dict) else str(value)
        for name, value in config.items()
        if name.endswith("_token") and isinstance(value, str | dict)
    }
    if template_file.is_file():
        return template_file.read_text(encoding="utf-8"), special
    return _default(config.get("chat_template")), special


def _default(template: Any) -> str:
    """The only template, or the one that is named "default" among several."""
    if isinstance(template, list):
        named = {one["name"]: one["template"] for one in template}
        return str(named.get("default", ""))
    return str(template or "")
