"""The modules of Hugging Face's model in their order, with the bytes that Accelerate counts. Pure.

The tree has the names and the order of `named_children()` of the library's class; `families/` has both.
Layers and modules called `embeddings` are never split, as in the classes' `_no_split_modules`. Sizes include
buffers (rotary frequencies, position ids), and the layers of a vision tower that no result needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from engine.domain.model import ModelSpec, tower_model
from engine.domain.plan import Part, Slice
from engine.models.families.registry import family
from engine.models.families.tensor_names import stored_as
from engine.ops.layout import tensor_parts
from engine.ops.sizes import bits_of, part_bytes
from engine.strategies.accelerate.device_map import Module

INT64_BYTES, FLOAT32_BYTES = 8, 4
OUTSIDE = ("lm_head.", "classifier.")
"""Stored names of modules beside the one that has all others."""
HEAD = "lm_head"


class ModuleTree(NamedTuple):
    """The modules of a model as Accelerate sees them.

    `modules` are the root's children. `ties` maps the module of a tied table to the head that shares it.

    `block_bytes` is the size of the largest module that is never split though it has children;
    `mean_leaf_bytes` the mean size of the modules that have no child module with tensors. `embed`, `layers`
    and `head` name the modules of the embedding table, of every layer and of the output.
    """

    modules: tuple[Module, ...]
    ties: Mapping[str, str]
    block_bytes: int
    mean_leaf_bytes: int
    embed: str
    layers: tuple[str, ...]
    head: str

    @property
    def bytes(self) -> int:
        return sum(module.bytes for module in self.modules)

    @property
    def atoms(self) -> tuple[Module, ...]:
        """The modules that are not split, in order."""
        return tuple(atom for module in self.modules for atom in module.atoms)

    @property
    def layers_only(self) -> ModuleTree:
        """The layers without what is before and behind them."""
        layers = tuple(atom for atom in self.atoms if atom.name in self.layers)
        return self._replace(modules=(Module("layers", children=layers),), ties={})


def module_tree(model: ModelSpec) -> ModuleTree:
    """The modules of `model` as Hugging Face's class of its family has them."""
    sizes = _tensor_bytes(model)
    ties = {}
    embed = _atom(_module(next(iter(_stored(model, _pieces(model, "embed"))))[0]))
    modules = _tree(sizes)
    if model.has_head and model.tied_head:
        modules = (*modules, Module(HEAD))
        ties[embed] = HEAD
    layers = tuple(
        _atom(next(_stored(model, [Slice(layer=layer, part="attention")]))[0])
        for layer in range(model.num_layers)
    )
    atoms = Module("", children=modules).atoms
    ends = [atom.name for atom in atoms if f"{atom.name}." in OUTSIDE]
    block_bytes = max(atom.bytes for atom in atoms if _is_whole(atom.name.rpartition(".")[2]))
    head = (ends or layers)[-1]
    return ModuleTree(modules, ties, block_bytes, _mean_leaf_bytes(sizes), embed, layers, head)


def _pieces(model: ModelSpec, part: Part) -> tuple[Slice, ...]:
    return (Slice(layer=-1, part=part),)


def _stored(model: ModelSpec, pieces: Iterable[Slice]) -> Iterator[tuple[str, int]]:
    """Full name in the library's module and bytes of every tensor of `pieces`. A tied head has none."""
    row = family(model.family)
    wrapped = row.prefixes[0] if model.has_head or model.num_classes else ""
    for piece in pieces:
        for part in tensor_parts(model, piece):
            if piece.part == "lm_head" and part.name == "embed.tokens":
                continue
            name = stored_as(model, part.name).name
            prefix = "" if name.startswith(OUTSIDE) else wrapped
            yield prefix + name, part_bytes(model, part, bits_of(model, piece))


def _tensor_bytes(model: ModelSpec) -> dict[str, int]:
    """Bytes by tensor and buffer, in the order of the library's modules."""
    order = [name.partition(".")[0] for name in family(model.family).tensors]
    layers = [Slice(layer=n, part=part) for n in range(model.num_layers) for part in ("attention", "ffn")]
    ends = [*_stored(model, _pieces(model, "lm_head"))]
    norm = [(name, size) for name, size in ends if not name.startswith(OUTSIDE)]
    embed = [*_stored(model, _pieces(model, "embed"))]
    listed = [*(_tower(model) if model.has_tower else ()), *embed]
    listed += _position_buffers(model, embed[0][0])
    if model.embedding_scale is not None and model.norm_adds_one:  # Gemma's; Granite's is no buffer
        listed.append((f"{_module(embed[0][0])}.embed_scale", FLOAT32_BYTES))
    blocks = [*_stored(model, layers)]
    norm_first = "lm_head" in order and order.index("lm_head") < order.index("layers")
    listed += [*norm, *blocks] if norm_first else [*blocks, *norm]
    if model.positions == "rope":
        parent, window = _module(_module(embed[0][0])), model.sliding_window
        # the frequencies, and a copy from before scaling: half of the rotated width each
        kinds = 2 if window is not None and window.rope_theta else 1
        listed.append(
            (f"{parent}.rotary_emb.inv_freq", kinds * 2 * FLOAT32_BYTES * -(-model.rotary_dim // 2))
        )
    listed += [end for end in ends if end not in norm]
    sizes: dict[str, int] = {}
    for name, size in listed:  # Q, K and V of one stored matrix
        sizes[name] = sizes.get(name, 0) + size
    return sizes


def _position_buffers(model: ModelSpec, first: str) -> list[tuple[str, int]]:
    """Numbers of positions and of token types, which BERT's embeddings keep."""
    at = _module(_module(first))
    if not at.endswith("embeddings") or not model.reads_text:
        return []
    return [(f"{at}.position_ids", (1 + bool(model.token_types)) * INT64_BYTES * model.max_positions)]


def _tower(model: ModelSpec) -> list[tuple[str, int]]:
    """A vision tower and its projector, with the layers and the norm behind the layer that is used."""
    tower, vision = tower_model(model), model.vision
    assert vision is not None and vision.tower is not None
    named = [*_stored(model, _pieces(model, "vision"))]
    inside = [one for one in named if "projector" not in one[0]]
    root = named[0][0].partition(".embeddings.")[0]
    first = [(name, size) for name, size in inside if ".layers.0." in name]
    further = range(tower.num_layers, vision.tower.num_layers)
    norm_bytes = 2 * tower.hidden_size * model.element_bytes
    return [
        *inside,
        (f"{root}.embeddings.position_ids", INT64_BYTES * (vision.num_patches + 1)),
        *((name.replace(".layers.0.", f".layers.{n}."), size) for n in further for name, size in first),
        (f"{root}.post_layernorm.weight", norm_bytes),
        *(one for one in named if one not in inside),
    ]


def _module(tensor: str) -> str:
    return tensor.rpartition(".")[0]


def _atom(path: str) -> str:
    """The module at or above `path` that is not split, or `path` itself."""
    names = path.split(".")
    for number, name in enumerate(names):
        if _is_whole(name):
            return ".".join(names[: number + 1])
    return path


def _is_whole(name: str) -> bool:
    """Whether a module of this name, which may have children, is never split."""
    return name.isdigit() or name == "embeddings"


def _tree(sizes: Mapping[str, int]) -> tuple[Module, ...]:
    atoms: dict[str, int] = {}
    for tensor, size in sizes.items():
        name = _atom(_module(tensor))
        atoms[name] = atoms.get(name, 0) + size
    return _children("", atoms)


def _children(above: str, atoms: Mapping[str, int]) -> tuple[Module, ...]:
    """The modules directly below `above`; `atoms` are bytes by path."""
    names = dict.fromkeys(path.removeprefix(above).partition(".")[0] for path in atoms)
    modules = []
    for name in names:
        path = above + name
        if path in atoms:
            modules.append(Module(path, atoms[path]))
        else:
            inside = {atom: size for atom, size in atoms.items() if atom.startswith(f"{path}.")}
            modules.append(Module(path, children=_children(f"{path}.", inside)))
    return tuple(modules)


def _mean_leaf_bytes(sizes: Mapping[str, int]) -> int:
    """`get_balanced_memory`: the mean over the modules that have tensors and no modules with tensors."""
    modules: dict[str, int] = {}
    for tensor, size in sizes.items():
        modules[_module(tensor)] = modules.get(_module(tensor), 0) + size
    parents = {".".join(names[:n]) for names in (m.split(".") for m in modules) for n in range(1, len(names))}
    leaves = [size for module, size in modules.items() if module not in parents]
    return sum(leaves) // len(leaves)
