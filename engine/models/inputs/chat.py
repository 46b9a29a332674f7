"""Writes a conversation as the prompt that a model was trained on, with the template beside its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.models.inputs.text import encode
from engine.models.weights.directory import read_json

FILES = TEMPLATE_FILE, CONFIG_FILE = "chat_template.jinja", "tokenizer_config.json"

Messages = Sequence[Mapping[str, str]]
"""Each with `role` and `content`, in their order."""


def chat_tokens(model: ModelSpec, weights: WeightsRef, messages: Messages) -> tuple[int, ...] | None:
    """Token ids of a conversation with the beginning of the answer; None if the model has no chat template.

    The template adds the special tokens, so the tokenizer adds none. Raises `SpecError` for a template that
    does not work or refuses the conversation, such as one without a message of a user.
    """
    template, special = _template_of(weights.directory) if weights.kind == "directory" else ("", {})
    if not template:
        return None
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        (text,), _ = render_jinja_template(
            [[dict(message) for message in messages]],
            chat_template=template,
            add_generation_prompt=True,
            **special,
        )
    except (TemplateError, TypeError, ValueError) as error:
        raise SpecError(f"messages: the chat template of {model.name} refuses them: {error}.") from error
    return encode(model, weights, text, add_special_tokens=False)


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
