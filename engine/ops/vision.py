"""Operations on images: patch embedding, vision tower, projector, image rows in a prompt, classifier.

A tower's layers are `Block`s of a second model (`tower_model`). They are no layer of the language model, so
their `layer` is -1, as for all ops outside the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from engine.domain.model import ModelSpec, tower_model
from engine.domain.plan import Slice
from engine.domain.vision import TowerSpec, VisionSpec
from engine.ops.core import Block
from engine.ops.kernels import elementwise, norm_kernels, product
from engine.ops.operation import Cost, Op, Operation, piece_of
from engine.ops.tensors import Meta, Tensor


class ImagePrompt(NamedTuple):
    """The input of a vision model: pixels [B, 3, H, W], and token ids [B, T] if it reads text too."""

    pixels: Tensor
    tokens: Tensor | None


def pixels_meta(model: ModelSpec, batch: int) -> Meta:
    """The pixels of `batch` pictures, in the model's numbers."""
    return Meta((batch, *vision_of(model).pixel_shape), model.dtype)


@dataclass(frozen=True, slots=True)
class EmbedImage(Operation):
    """Pixels [B, 3, H, W] → a row for each patch behind the CLS row, with positions: [B, 1 + N, D].

    A patch's row is a linear function of its pixels. CLIP's tower normalises the rows afterwards.
    """

    name: ClassVar[str] = "embed_image"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "vision" if vision_of(model).tower else "embed"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        vision, batch, size = vision_of(model), inputs[0].shape[0], model.element_bytes
        hidden = vision.tower.hidden_size if vision.tower else model.hidden_size
        patches, rows = batch * vision.num_patches, batch * (vision.num_patches + 1)
        kernels = (
            product(patches, vision.patch_elements, hidden, size),
            elementwise(rows, hidden, size, 1 + (vision.tower is not None)),
        )
        output = Meta((batch, vision.num_patches + 1, hidden), model.dtype)
        return Cost(kernels, output, (patches * vision.patch_elements + rows * hidden) * size)


@dataclass(frozen=True, slots=True)
class TowerBlock(Operation):
    """Layer `number` of the tower: [B, 1 + N, D'] → the same."""

    number: int
    name: ClassVar[str] = "tower_block"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "vision"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        return Block(self.number).cost(tower_model(model), inputs, 0)


@dataclass(frozen=True, slots=True)
class ProjectImage(Operation):
    """Rows of the tower [B, 1 + N, D'] without the CLS row → rows of the language model [B, N, D]."""

    name: ClassVar[str] = "project_image"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "vision"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, wide = inputs[0].shape
        patches, hidden, size = batch * (rows - 1), model.hidden_size, model.element_bytes
        kernels = (
            product(patches, wide, hidden, size),
            elementwise(patches, hidden, size),
            product(patches, hidden, hidden, size),
        )
        return Cost(kernels, Meta((batch, rows - 1, hidden), model.dtype), patches * hidden * size)


@dataclass(frozen=True, slots=True)
class EmbedPrompt(Operation):
    """Embed a prompt with a picture: (token ids [B, T], a picture's rows [B, N, D]) → hidden rows [B, T, D]
    of the whole prompt.

    The picture's rows stand where the ids are the image token.
    """

    name: ClassVar[str] = "embed"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "embed"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows = inputs[0].shape
        kernel = elementwise(batch * rows, model.hidden_size, model.element_bytes)
        return Cost((kernel,), Meta((batch, rows, model.hidden_size), model.dtype))


@dataclass(frozen=True, slots=True)
class Classify(Operation):
    """Final norm and classifier on the CLS row of [B, T, D] → class logits [B, C]."""

    name: ClassVar[str] = "classify"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "lm_head"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, hidden, size = inputs[0].shape[0], model.hidden_size, model.element_bytes
        kernels = (
            *norm_kernels(model, batch, "end"),
            product(batch, hidden, model.num_classes, size),
        )
        return Cost(kernels, Meta((batch, model.num_classes), model.dtype), batch * hidden * size)


def image_ops(model: ModelSpec) -> tuple[Op, ...]:
    """Pixels → rows of the model, one operation after the other."""
    tower = vision_of(model).tower
    if tower is None:
        return (EmbedImage(),)
    return (EmbedImage(), *(TowerBlock(number) for number in range(tower.used_layers)), ProjectImage())


def vision_of(model: ModelSpec) -> VisionSpec:
    assert model.vision is not None, f"{model.name} sees no pictures"
    return model.vision


def tower_of(model: ModelSpec) -> TowerSpec:
    tower = vision_of(model).tower
    assert tower is not None, f"{model.name} has no tower"
    return tower
