"""What a run has left of its outputs, read as what anybody may have written: a board says what it likes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.spec import RunSpec
from engine.models.inputs.prompts import requests_of
from engine.models.reference.transformers_outputs import tokens_of

if TYPE_CHECKING:
    import torch

NAME = re.compile(r"(logits|tokens|hidden)\.\d{1,9}|piece(\.\d{1,9}){3}")
DIMENSIONS = {"logits": 2, "tokens": 1, "piece": 1}
"""Of a tensor, by the first part of its name; hidden states have as many as the model's."""

Outputs = dict[str, "torch.Tensor"]


def read_outputs(path: Path) -> tuple[Outputs, str]:
    """The tensors of the source's file and of the pieces beside it, and what is wrong with them, "" if
    nothing is: then all have a name and as many dimensions as `RealSource.tensors` gives them.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    found: Outputs = {}
    for file in (path, *sorted(path.parent.glob("pieces-*.safetensors"))):
        try:
            found |= load_file(file)
        except FileNotFoundError:
            return {}, "the source has left no outputs"
        except (SafetensorError, OSError) as error:
            return {}, f"the outputs in {file.name} cannot be read ({error})"
    for name, tensor in found.items():
        kind = name.partition(".")[0]
        if not NAME.fullmatch(name) or tensor.dim() != DIMENSIONS.get(kind, tensor.dim()):
            return {}, f"the outputs have {name[:40]!r} of shape {list(tensor.shape)}, which no request has"
        if (
            tensor.is_complex()
            or tensor.element_size() < 2
            or (kind == "tokens") == tensor.is_floating_point()
        ):
            return {}, f"{name} is in {tensor.dtype}"
    return found, ""


def what_lacks(spec: RunSpec, got: Outputs) -> str:
    """Which request has no outputs, another number of tokens than it was to get, or ids that its model does
    not have; "" if none has.
    """
    vocab_size = spec.model.vocab_size
    for index, request in enumerate(requests_of(spec)):
        if not spec.workload.new_tokens:
            if f"hidden.{index}" not in got:
                return f"request {request.index} has no outputs"
            continue
        tokens, logits = got.get(f"tokens.{index}"), got.get(f"logits.{index}")
        wanted, there = tokens_of(spec, request), next((x for x in (tokens, logits) if x is not None), ())
        if len(there) != wanted:
            return f"request {request.index} has {len(there)} tokens, expected {wanted}"
        is_known = tokens is None or bool(((tokens >= 0) & (tokens < vocab_size)).all())
        if not is_known or (logits is not None and not 0 < logits.shape[1] <= vocab_size):
            return f"request {request.index} has tokens that the vocabulary of {vocab_size:,} does not have"
    return ""


def what_differs_in_shape(got: Outputs, wanted: Outputs) -> str:
    """Which of the `wanted` tensors is not there or has another shape; "" if none."""
    for name, tensor in wanted.items():
        if name not in got or got[name].shape != tensor.shape:
            shape = list(got[name].shape) if name in got else "none"
            return f"the shape of {name} is {shape}, expected {list(tensor.shape)}"
    return ""
