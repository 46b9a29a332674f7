"""Converts text to token ids and back, with the tokenizer that `transformers` makes of the directory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.confined import Confined
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec, WeightsRef
from engine.models.inputs.library_tokenizer import FILE, library_tokenizer
from engine.models.weights.directory import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer


TEXT_S, TEXT_BYTES = 10.0, 4 << 30
"""The limits of tokenising a prompt, which takes milliseconds; a hostile tokenizer's pattern takes years."""
TOGETHER = 256
"""Prompts of a file that are tokenised with the tokenizer made once."""


def encode(
    model: ModelSpec, weights: WeightsRef, text: str, add_special_tokens: bool = True
) -> tuple[int, ...]:
    """Token ids of `text`, with `add_special_tokens` also those that the tokenizer puts around a text.

    Random weights have no tokenizer: every byte becomes a token (mod num_text_tokens). Raises `SpecError`
    for trained weights without a tokenizer, and for text that gives no token.
    """
    if weights.kind == "random":
        ids = [byte % model.num_text_tokens for byte in text.encode()]
    else:
        ids = _tokenizer(weights.directory).encode(text, add_special_tokens=add_special_tokens).ids
    return _checked(model, weights, ids)


def encode_prompt(
    model: ModelSpec, weights: WeightsRef, text: str, add_special_tokens: bool = True
) -> tuple[int, ...]:
    """What `encode` gives for a text of a run's request, within a limit of time. Raises `SpecError`, also at
    the limit.
    """
    return encode_prompts(model, weights, (text,), add_special_tokens)[0]


def encode_prompts(
    model: ModelSpec, weights: WeightsRef, texts: Sequence[str], add_special_tokens: bool = True
) -> list[tuple[int, ...]]:
    """What `encode_prompt` gives for each text; `TOGETHER` of them share a limit. Raises `SpecError`."""
    if weights.kind == "random":
        return [encode(model, weights, text) for text in texts]
    found: list[tuple[int, ...]] = []
    for first in range(0, len(texts), TOGETHER):
        rows, refusal = _within_limit(
            weights.directory, tuple(texts[first : first + TOGETHER]), add_special_tokens
        )
        if refusal:
            raise SpecError(refusal)
        found += (_checked(model, weights, ids) for ids in rows)
    return found


def _checked(model: ModelSpec, weights: WeightsRef, ids: Sequence[int]) -> tuple[int, ...]:
    if not ids:
        raise SpecError("prompt: has no tokens, expected at least one: give some text.")
    if max(ids) >= model.vocab_size:
        raise SpecError(
            f"{weights.directory}/{FILE}: gives token {max(ids)}, and {model.name} knows {model.vocab_size}: "
            "it belongs to another model."
        )
    return tuple(ids)


@lru_cache(maxsize=64)
def _within_limit(
    directory: str, texts: tuple[str, ...], add_special_tokens: bool
) -> tuple[tuple[tuple[int, ...], ...], str]:
    """The ids, or why there are none: the points of an experiment ask for the same again and again."""
    try:
        rows = _IDS(f"{directory}/{FILE}", *library_tokenizer(directory), texts, add_special_tokens)
        return tuple(tuple(ids) for ids in rows), ""
    except SpecError as error:
        return (), str(error)


def _ids(
    tokenizer: str, splits_special_tokens: bool, texts: Sequence[str], add_special_tokens: bool
) -> list[list[int]]:
    made = _of_text(tokenizer, splits_special_tokens)
    return [made.encode(text, add_special_tokens=add_special_tokens).ids for text in texts]


_IDS = Confined(_ids, TEXT_S, TEXT_BYTES, modules=("tokenizers",), refusal=": does not tokenise the prompt")


def decode(model: ModelSpec, weights: WeightsRef, ids: tuple[int, ...]) -> str:
    """Text of `ids`; without a readable tokenizer, the ids themselves, each with a space before it."""
    if can_decode(weights):
        return str(_tokenizer(weights.directory).decode(list(ids)))
    return "".join(f" {token}" for token in ids)


@lru_cache(maxsize=8)
def can_decode(weights: WeightsRef) -> bool:
    """Whether the weights have a tokenizer. The first call makes it, which may take seconds."""
    if weights.kind != "directory":
        return False
    try:
        _tokenizer(weights.directory)
    except SpecError:
        return False
    return True


def check_draft_tokens(spec: RunSpec) -> None:
    """Check that the draft model has the tokens of the run's model, as far as both have tokenizers. Raises
    `SpecError`.
    """
    draft = spec.model.draft
    if draft is None or not (can_decode(spec.weights) and can_decode(spec.draft_weights)):
        return
    ours, theirs = (
        _tokenizer(weights.directory).get_vocab() for weights in (spec.weights, spec.draft_weights)
    )
    if ours != theirs:
        other = next(iter(sorted(dict(ours.items() ^ theirs.items()))))
        raise SpecError(
            f"the draft model {draft.name}: it has another vocabulary than {spec.model.name} ({other!r} is "
            "not the same token): choose one with the same tokenizer.",
            [("draft_model", "has another vocabulary")],
        )


class GrowingText:
    """The text of tokens that come one by one, in pieces that together are the text."""

    def __init__(self, model: ModelSpec, weights: WeightsRef):
        self.model, self.weights = model, weights
        self.ids: tuple[int, ...] = ()
        self.shown = ""

    def add(self, token: int) -> str:
        """What `token` adds. A character of several tokens comes with its last one."""
        self.ids += (token,)
        text = decode(self.model, self.weights, self.ids)
        if text.endswith("\ufffd"):
            return ""
        before, self.shown = self.shown, text
        return text.removeprefix(before)


def label_of(weights: WeightsRef, index: int) -> str:
    """The name of class `index` of a trained classifier; "" if it has none."""
    return _labels(weights.directory).get(str(index), "") if weights.kind == "directory" else ""


@lru_cache(maxsize=8)
def stop_tokens(weights: WeightsRef) -> tuple[int, ...]:
    """The ids that end a text, as the model's directory names them; none for random weights."""
    if weights.kind != "directory":
        return ()
    found: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        path = Path(weights.directory) / name
        ids = read_json(path).get("eos_token_id") if path.is_file() else None
        found |= {token for token in (ids if isinstance(ids, list) else [ids]) if isinstance(token, int)}
    return tuple(sorted(found))


@lru_cache(maxsize=8)
def _labels(directory: str) -> dict[str, str]:
    return dict(read_json(Path(directory) / "config.json").get("id2label") or {})


@lru_cache(maxsize=8)
def _tokenizer(directory: str) -> Tokenizer:
    return _of_text(*library_tokenizer(directory))


def _of_text(text: str, splits_special_tokens: bool) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(text)
    tokenizer.encode_special_tokens = splits_special_tokens
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
