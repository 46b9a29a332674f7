"""Makes the requests of a workload: the token ids and the pixels of each."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from engine.domain.arrivals import arrivals_s
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.sampling import Sampling
from engine.domain.spec import RunSpec
from engine.domain.workload import Request, Workload
from engine.models.inputs.chat import has_template, written
from engine.models.inputs.pictures import picture_of, pixels, random_picture
from engine.models.inputs.text import encode_prompt

IMAGE = "<image>"
MOST_CHARS = 10_000_000
"""Of a message as its template writes it: no model reads as much."""
CONVERSATION = "USER: <image>\n{} ASSISTANT:"
"""The format of a conversation: LLaVA-1.5 was tuned on Vicuna's, and its model card has this one."""


def requests_of(spec: RunSpec) -> tuple[Request, ...]:
    """The requests of a run, in the order of their arrival.

    Raises `SpecError` for a workload that the model cannot do.

    A text is every request's prompt; `prompt_tokens` gives each request its own ids, from the seed. The rows
    of a picture stand as so many image tokens, as zeros where the model reads no text.
    """
    model, workload = spec.model, spec.workload
    _check_picture(spec)
    if workload.is_open and (model.vision or not model.reads_text):
        raise SpecError(
            f"workload.pattern: is serve, and {model.name} sees pictures: choose one that reads text alone.",
            [("workload.pattern", "serve is for models that read text alone")],
        )
    if not model.reads_text:
        return _of_pictures(spec)
    if (workload.prompt is None) == (workload.prompt_tokens is None):
        raise SpecError("workload: give exactly one of prompt and prompt_tokens.", [("workload", "prompt")])
    if workload.new_tokens and not (model.causal and model.has_head):
        raise SpecError(
            f"workload.new_tokens: is {workload.new_tokens}, and {model.name} generates nothing: give 0.",
            [("workload.new_tokens", "expected 0 for an encoder")],
        )
    if workload.prompt is not None:
        prompts = [_encoded(spec, workload.prompt)] * workload.requests
        _check_positions(spec, len(prompts[0]))
    else:  # first the length, then the ids: a typing error may ask for more than there is memory for
        requests = range(_known_requests(workload))
        image = _image_ids(model)
        _check_positions(spec, len(image) + max(_length(workload, index) for index in requests))
        prompts = [image + _random_ids(spec, index) for index in requests]
    return _arriving(spec, prompts)


def _check_positions(spec: RunSpec, longest: int) -> None:
    model, new_tokens = spec.model, spec.workload.new_tokens
    need = longest + new_tokens
    if need > model.max_positions:
        raise SpecError(
            f"workload: {longest} prompt tokens and {new_tokens} new ones are {need} "
            f"positions, and {model.name} has {model.max_positions}: give fewer.",
            [("workload", f"at most {model.max_positions} positions")],
        )


def _known_requests(workload: Workload) -> int:
    """How many requests there are as far as is known: of an open workload those recorded, and before the run
    an example of as many as are served together.
    """
    if workload.is_open:
        return len(workload.trace) or workload.together
    return workload.requests


def _arriving(spec: RunSpec, prompts: Sequence[tuple[int, ...]]) -> tuple[Request, ...]:
    trace = spec.workload.trace
    new_tokens = spec.workload.new_tokens if spec.workload.is_open else None
    return tuple(
        Request(
            index=index,
            tokens=prompt,
            new_tokens=trace[index].new_tokens if trace else new_tokens,
            arrival_s=arrival_s,
            person=trace[index].person if trace else "",
            sampling=_sampling(spec, index),
        )
        for index, (prompt, arrival_s) in enumerate(
            zip(prompts, arrivals_s(spec.workload, spec.seed), strict=True)
        )
    )


def _sampling(spec: RunSpec, request: int) -> Sampling | None:
    trace = spec.workload.trace
    own = trace[request].sampling if trace else None
    if trace and spec.workload.is_open:
        return own
    return own or spec.workload.sampling(spec.seed, request)


def _random_ids(spec: RunSpec, request: int) -> tuple[int, ...]:
    random, trace = Random(f"{spec.seed}/{request}"), spec.workload.trace
    if trace and trace[request].tokens:
        return trace[request].tokens
    return tuple(random.randrange(spec.model.num_text_tokens) for _ in range(_length(spec.workload, request)))


def _length(workload: Workload, request: int) -> int:
    return workload.trace[request].prompt_tokens if workload.trace else workload.prompt_tokens or 0


def _of_pictures(spec: RunSpec) -> tuple[Request, ...]:
    model, workload = spec.model, spec.workload
    if workload.prompt is not None or workload.prompt_tokens is not None or workload.new_tokens:
        raise SpecError(
            f"workload: {model.name} sees a picture and reads no text: leave out prompt and prompt_tokens, "
            "and give 0 new_tokens.",
            [("workload", f"{model.name} reads no text")],
        )
    return _arriving(spec, [(0,) * model.image_rows] * workload.requests)


def _check_picture(spec: RunSpec) -> None:
    model, image = spec.model, spec.workload.image
    if image is None:
        return
    if model.vision is None:
        raise SpecError(
            f"workload.image: {model.name} sees no pictures: leave it out, or choose a model that does.",
            [("workload.image", f"{model.name} sees no pictures")],
        )
    picture_of(model.vision, image)


def _image_ids(model: ModelSpec) -> tuple[int, ...]:
    """The image token for each of the picture's rows; it is the first id that is no text."""
    return (model.num_text_tokens,) * model.image_rows


def tokenised_text(spec: RunSpec) -> str | None:
    """The text that the tokenizer of trained weights gets: with <image> where the model sees a picture."""
    text = spec.workload.prompt
    if text is None or spec.weights.kind == "random":
        return None
    return text if not spec.model.vision or IMAGE in text else CONVERSATION.format(text)


def is_chat(spec: RunSpec) -> bool:
    """Whether the text of a run is written as a message: it asks for it, or leaves it to the model."""
    chat, model = spec.workload.chat, spec.model
    if chat is None and spec.workload.prompt is not None:
        return model.has_head and model.vision is None and has_template(spec.weights)
    return bool(chat)


def text_ids(spec: RunSpec, text: str) -> tuple[int, ...]:
    """Ids of a text as it is, or as a message of a chat. Raises `SpecError`."""
    model = spec.model
    if not is_chat(spec):
        return encode_prompt(model, spec.weights, tokenised_text(spec) or text)
    message = {"role": "user", "content": text}
    where = "workload.chat"
    try:
        message_text = None if model.vision else written(model, spec.weights, [message], MOST_CHARS, where)
    except SpecError as error:
        remedy = "Turn chat off, and the model goes on with the text."
        raise SpecError(f"{error} {remedy}", [(where, "the model's chat template fails")]) from error
    if message_text is None:
        raise SpecError(
            f"workload.chat: {model.name} has no chat template: leave it out, and the model goes on with the "
            "text.",
            [(where, f"{model.name} has no chat template")],
        )
    return encode_prompt(model, spec.weights, message_text, add_special_tokens=False)


def _encoded(spec: RunSpec, text: str) -> tuple[int, ...]:
    """Ids of a text, the picture where its tokenizer finds <image>, else before the text."""
    model = spec.model
    ids = text_ids(spec, text)
    if not model.vision:
        return ids
    if spec.weights.kind == "random":
        return _image_ids(model) + ids
    at = [index for index, token in enumerate(ids) if token == model.num_text_tokens]
    if len(at) != 1:
        raise SpecError(
            f"workload.prompt: has {len(at)} times {IMAGE}, expected one picture: leave it out, and it comes "
            "first.",
            [("workload.prompt", f"expected {IMAGE} once")],
        )
    return ids[: at[0]] + _image_ids(model) + ids[at[0] + 1 :]


def pixels_of(spec: RunSpec, request: int) -> Any:
    """The picture of a request in the model's numbers: float32 [3, H, W]."""
    vision = spec.model.vision
    assert vision is not None, f"{spec.model.name} sees no pictures"
    image = spec.workload.image
    picture = picture_of(vision, image) if image else random_picture(vision, spec.seed, request)
    return pixels(vision, picture)
