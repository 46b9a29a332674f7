"""Writes a conversation as the prompt that a model was trained on, with the template beside its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.confined import Confined
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.models.inputs.text import encode
from engine.models.weights.directory import read_json

FILES = TEMPLATE_FILE, CONFIG_FILE = "chat_template.jinja", "tokenizer_config.json"

RENDER_S = 2.0
RENDER_BYTES = 1 << 30

Messages = Sequence[Mapping[str, str]]
"""Each with `role` and `content`, in their order."""


def chat_tokens(
    model: ModelSpec, weights: WeightsRef, messages: Messages, most_chars: int
) -> tuple[int, ...] | None:
    """Token ids of a conversation with the beginning of the answer; None if the model has no chat template.

    The template adds the special tokens, so the tokenizer adds none. Raises `SpecError` as `written` does.
    """
    text = written(model, weights, messages, most_chars)
    return None if text is None else encode(model, weights, text, add_special_tokens=False)


def written(
    model: ModelSpec, weights: WeightsRef, messages: Messages, most_chars: int, where: str = "messages"
) -> str | None:
    """A conversation with the beginning of the answer as a text; None if the model has no chat template.

    Raises `SpecError`, which begins with `where`, for a template that does not work, takes longer than
    `RENDER_S`, writes more than `most_chars` characters, or refuses the conversation.
    """
    if not has_template(weights):
        return None
    text: str = _RENDERED(f"{where}: the chat template of {model.name}", weights, messages)
    if len(text) > most_chars:
        raise SpecError(
            f"{where}: the chat template of {model.name} makes {len(text):,} characters of them, and this "
            f"run takes up to {most_chars:,}: shorten them."
        )
    return text


def has_template(weights: WeightsRef) -> bool:
    """Whether the model has a chat template."""
    if weights.kind != "directory":
        return False
    template = Path(weights.directory) / TEMPLATE_FILE
    if template.is_file():
        return template.stat().st_size > 0
    file = Path(weights.directory) / CONFIG_FILE
    return file.is_file() and bool(read_json(file).get("chat_template"))


def load_renderer() -> None:
    """Load what renders templates, which takes seconds at the first."""
    _RENDERED.load()


def _rendered(weights: WeightsRef, messages: Messages) -> str:
    """Messages by the chat template, which Jinja's sandbox keeps from the program."""
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


_RENDERED = Confined(
    _rendered,
    RENDER_S,
    RENDER_BYTES,
    modules=(
        "engine.models.inputs.tokenizers_alone",
        "transformers.utils.chat_template_utils",
        "jinja2.sandbox",
    ),
    refusal=" refuses them",
)
