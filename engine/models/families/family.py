"""What a model family is: a row of differences to the transformer that the operations compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.models.families.keys import Key, expected, read_keys, refused

Step = Callable[[dict[str, Any], Mapping[str, Any], str], dict[str, Any]]
"""A step of reading a config: (fields so far, the config with defaults, name of the file) → fields. Raises
`SpecError`.
"""


class StoredTensor(NamedTuple):
    """The place of a canonical tensor [outputs, inputs] in a file.

    `transposed`: stored as [inputs, outputs]. `fused`: the stored tensor has the outputs of these matrices of
    the part, one after the other, or in turn if `interleaved`. `stacked`: it has those of all experts along a
    first axis, that of `expert` among them; its name is then the whole one.
    """

    name: str
    transposed: bool = False
    fused: tuple[str, ...] = ()
    interleaved: bool = False
    stacked: bool = False
    expert: int = 0


class Family(NamedTuple):
    """How a family of models is read and named.

    `fixed` are the fields of `ModelSpec` that hold for all of the family.

    `keys` has every key that the library's configuration class knows (`keys.py`), and `aliases` its other
    names. `steps` then complete the fields in turn: what follows from several keys. `write` gives the keys
    of a config that come neither from `keys` nor from the rotary settings.
    `tensors` maps canonical names ({} is the layer, and then the expert), with or without the kind at the end
    (weight or bias), to stored ones, and `prefixes` may stand before them; `modules` has those that the
    library's modules keep elsewhere than files do. `older` are other spellings of stored names, each a list
    of replacements; `unused` begin the names of stored tensors that change no result ({} is a layer of the
    tower behind its features). `refuses` says to people what `steps` refuse, in words.
    """

    name: str
    architecture: str
    fixed: Mapping[str, Any]
    keys: Mapping[str, Key]
    tensors: Mapping[str, StoredTensor]
    prefixes: tuple[str, ...]
    steps: tuple[Step, ...]
    aliases: Mapping[str, str] = MappingProxyType({})
    modules: Mapping[str, StoredTensor] = MappingProxyType({})
    write: Callable[[ModelSpec], dict[str, Any]] | None = None
    older: tuple[tuple[tuple[str, str], ...], ...] = ()
    unused: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()

    @property
    def key_of(self) -> dict[str, str]:
        """Field → the key that it is read from."""
        return {field: key for key, entry in self.keys.items() for field in entry.fields}


def keys_read(row: Family) -> tuple[str, ...]:
    """The keys of a config.json that decide what is computed, as the library calls them."""
    rotary = ("rope_parameters",) if "rope_parameters" in row.keys else ()
    return (*(key for key, entry in row.keys.items() if entry.fields), *rotary)


def restrictions(row: Family) -> tuple[str, ...]:
    """Sentences about the keys of config.json that take fewer values here than in the library."""
    fixed = {key: expected(entry) for key, entry in row.keys.items() if entry.only}
    return (*(f"{key}: {values}" for key, values in fixed.items()), *row.refuses)


def fields_of(row: Family, config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of `ModelSpec` that a config gives. Raises `SpecError` naming `where` and the key."""
    fields, given = read_keys(row.keys, row.aliases, config, where)
    for step in row.steps:
        fields = step(fields, given, where)
    return fields


def heads(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Completes num_kv_heads, head_dim and intermediate_size as the library does where a config is silent."""
    hidden, count = fields["hidden_size"], fields["num_heads"]
    kv_heads = fields.get("num_kv_heads", count)
    if count % kv_heads:
        raise SpecError(f"{where}, num_key_value_heads: {kv_heads} does not divide {count} attention heads.")
    if "head_dim" not in fields:
        whole_heads(fields, given, where)
        if given.get("head_dim") not in (None, hidden // count):
            raise refused(where, "head_dim", given["head_dim"], str(hidden // count))
    derived = {"num_kv_heads": kv_heads, "head_dim": hidden // count, "intermediate_size": 4 * hidden}
    return derived | fields


def whole_heads(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Refuse a hidden size that is no multiple of the heads, even where the config gives another size of a
    head.
    """
    if fields["hidden_size"] % fields["num_heads"]:
        key = "n_embd" if "n_embd" in given else "hidden_size"
        hidden, count = fields["hidden_size"], fields["num_heads"]
        raise SpecError(f"{where}, {key}: {hidden} is no multiple of the {count} attention heads.")
    return fields


def padding(fields: dict[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The library's table of embeddings needs a row for the padding token, though nothing is padded here."""
    token, rows = given.get("pad_token_id"), fields["vocab_size"]
    if token is not None and not -rows <= token < rows:
        raise refused(where, "pad_token_id", token, f"null or one of the {rows} tokens")
    return fields


def padding_config(model: ModelSpec, default: int) -> dict[str, Any]:
    """A padding token that the library's table has, where its `default` is beyond the vocabulary."""
    return {} if default < model.vocab_size else {"pad_token_id": 0}
