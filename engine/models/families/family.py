"""What a model family is: a row of differences to the transformer that the operations compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from engine.domain.vision import VisionSpec

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "quick_gelu": "quick_gelu",
}


class StoredTensor(NamedTuple):
    """Where a canonical tensor [outputs, inputs] is in a file.

    `transposed`: stored as [inputs, outputs]. `fused`: it is number `fused` `of` so many equal blocks of
    outputs in one stored tensor.
    """

    name: str
    transposed: bool = False
    fused: int = 0
    of: int = 1


class Pictures(NamedTuple):
    """`read(config, where)` gives the `VisionSpec` that a config describes, `write` the config's keys."""

    read: Callable[[Mapping[str, Any], str], VisionSpec]
    write: Callable[[VisionSpec], dict[str, Any]]


class Family(NamedTuple):
    """`fixed` are the fields of `ModelSpec` that hold for all of the family, `keys` those of config.json
    and `defaults` what the library's configuration class fills in where config.json is silent.

    `tensors` maps canonical names ({} is the layer) to stored ones; `refused` are config keys that change
    the mathematics in ways that the operations do not have, with the values that are harmless, and
    `same` those that must not differ from another key. `vision` reads and writes what a config says about
    pictures, `text` is the family of the language model behind a tower. `older` are other spellings of stored
    names, each a list of replacements; `unused` begin the names of stored tensors that change no result ({}
    is a layer of the tower behind its features).
    """

    name: str
    architecture: str
    fixed: Mapping[str, Any]
    defaults: Mapping[str, Any]
    keys: Mapping[str, str]
    tensors: Mapping[str, StoredTensor]
    prefixes: tuple[str, ...]
    refused: Mapping[str, tuple[Any, ...]]
    vision: Pictures | None = None
    text: str = ""
    older: tuple[tuple[tuple[str, str], ...], ...] = ()
    unused: tuple[str, ...] = ()
    same: Mapping[str, str] = MappingProxyType({})
