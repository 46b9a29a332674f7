"""Computes the operations of `engine/ops/vision.py` on real tensors.

Shapes are suffixes: B pictures, C colours, X Y pixels, N patches, P numbers of a patch, R rows of a tower,
D hidden, T rows of a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from engine.domain.model import ModelSpec, tower_model
from engine.domain.plan import Slice
from engine.ops.core import Block
from engine.ops.torch_kernels.core import ACTIVATIONS, norm, run_block
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.storage import Caches, Weights
from engine.ops.vision import (
    Classify,
    EmbedImage,
    EmbedPrompt,
    ProjectImage,
    TowerBlock,
    tower_of,
    vision_of,
)


class TowerWeights:
    """The tower's layers inside the slice that holds all of it."""

    def __init__(self, whole: Mapping[str, Tensor]):
        self.whole = whole
        self.found: dict[Any, Any] = {}

    def get(self, piece: Slice) -> Mapping[str, Tensor]:
        prefix = f"{piece.layer}.{piece.part}."
        return {
            key.removeprefix(prefix): tensor for key, tensor in self.whole.items() if key.startswith(prefix)
        }


def _embed_image(
    op: EmbedImage, model: ModelSpec, weights: Weights, caches: Caches, pixels_BCXY: Tensor
) -> Tensor:
    vision, w = vision_of(model), weights.get(op.slices(model)[0])
    patches_BNP = patches_of(pixels_BCXY, vision.patch_size)
    x_BND = linear(patches_BNP, w["patches.weight"].flatten(1), w.get("patches.bias"))
    cls_B1D = w["cls"].expand(x_BND.shape[0], 1, -1)
    x_BRD = torch.cat((cls_B1D, x_BND), dim=1) + w["positions"]
    return norm(tower_model(model), w, x_BRD) if vision.tower else x_BRD


def _tower_block(op: TowerBlock, model: ModelSpec, weights: Weights, caches: Caches, x_BRD: Tensor) -> Tensor:
    tower = TowerWeights(weights.get(op.slices(model)[0]))
    return run_block(Block(op.number), tower_model(model), tower, {}, x_BRD)


def _project(op: ProjectImage, model: ModelSpec, weights: Weights, caches: Caches, x_BRD: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    h_BND = linear(x_BRD[:, 1:], w["projector.up.weight"], w["projector.up.bias"])
    h_BND = ACTIVATIONS[tower_of(model).projector_activation](h_BND)
    return linear(h_BND, w["projector.down.weight"], w["projector.down.bias"])


def _embed_prompt(
    op: EmbedPrompt,
    model: ModelSpec,
    weights: Weights,
    caches: Caches,
    tokens_BT: Tensor,
    image_BND: Tensor,
) -> Tensor:
    x_BTD = torch.embedding(weights.get(op.slices(model)[0])["tokens"], tokens_BT)
    of_image_BT = tokens_BT == tower_of(model).image_token
    of_image_BT &= of_image_BT.cumsum(1) <= image_BND.shape[1]  # an answer may have the image token too
    return x_BTD.masked_scatter(of_image_BT.unsqueeze(-1), image_BND)


def _classify(op: Classify, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    return linear(norm(model, w, x_BTD[:, 0]), w["weight"], w["bias"])


FUNCTIONS: dict[type, Callable[..., Tensor]] = {
    EmbedImage: _embed_image,
    TowerBlock: _tower_block,
    ProjectImage: _project,
    EmbedPrompt: _embed_prompt,
    Classify: _classify,
}


def warm_up(model: ModelSpec) -> None:
    """The kernels that only pictures need, once."""
    dtype, vision = getattr(torch, model.dtype), vision_of(model)
    patches_BNP = patches_of(torch.zeros(1, *vision.pixel_shape, dtype=dtype), vision.patch_size)
    torch.cat((patches_BNP[:, :1], patches_BNP), dim=1)
    if vision.tower:
        ACTIVATIONS[vision.tower.activation](patches_BNP)
        ACTIVATIONS[vision.tower.projector_activation](patches_BNP)
        tokens_BT = torch.zeros(1, vision.num_patches, dtype=torch.int64)
        first_BT1 = (tokens_BT == 0) & (tokens_BT.cumsum(1) <= 0)
        patches_BNP.masked_scatter(first_BT1.unsqueeze(-1), patches_BNP)


def patches_of(pixels_BCXY: Tensor, size: int) -> Tensor:
    """Squares of `size` pixels, row by row, each in the order (colour, y, x) of a convolution's kernel."""
    batch, colours, height, width = pixels_BCXY.shape
    grid = pixels_BCXY.view(batch, colours, height // size, size, width // size, size)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, colours * size * size)
