"""How a vision model turns an image into rows of a transformer.

There are two kinds. ViT (Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021): the model's own
layers work on patches, behind a CLS row. LLaVA-1.5 (Liu et al., "Improved Baselines with Visual Instruction
Tuning", CVPR 2024): a tower of its own layers and a projector make rows that stand among those of the text.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from engine.domain.values import Count, Positive, Value

NUM_CHANNELS = 3
"""Red, green, blue."""

Channels = tuple[float, float, float]


class TowerSpec(Value):
    """An image encoder before a language model, and the two-layer projector between them.

    `num_layers` counts the stored encoder's layers. The projector takes its hidden states `feature_layer`
    (-1: the last ones) without the CLS row. A prompt has `image_token` at the positions of the image's rows.
    """

    num_layers: int = Field(gt=0)
    hidden_size: int = Field(gt=0)
    num_heads: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    activation: Literal["gelu", "gelu_new", "quick_gelu"] = "quick_gelu"
    norm_eps: Positive = 1e-5
    feature_layer: int = Field(default=-2, lt=0)
    projector_activation: Literal["gelu", "gelu_new"] = "gelu"
    image_token: Count

    @model_validator(mode="after")
    def _shape(self) -> TowerSpec:
        if self.hidden_size % self.num_heads:
            raise ValueError(f"hidden_size {self.hidden_size} is no multiple of num_heads {self.num_heads}")
        if self.used_layers < 1:
            raise ValueError(f"feature_layer {self.feature_layer} is before the first of {self.num_layers}")
        return self

    @property
    def used_layers(self) -> int:
        """Layers that are computed: later ones do not change the features."""
        return self.num_layers + 1 + self.feature_layer


class VisionSpec(Value):
    """How a model resizes an image, normalises it and cuts it into patches.

    `crop`: the shorter edge becomes `image_size` and the middle is kept; otherwise both edges are scaled to
    `image_size`. Numbers are (value / 255 - mean) / std for each channel.
    """

    image_size: int = Field(gt=0, description="Pixels of each edge.")
    patch_size: int = Field(gt=0)
    resample: Literal["bilinear", "bicubic"]
    crop: bool
    mean: Channels
    std: Channels
    tower: TowerSpec | None = None

    @model_validator(mode="after")
    def _patches_divide(self) -> VisionSpec:
        if self.image_size % self.patch_size:
            raise ValueError(f"image_size {self.image_size} is no multiple of patch_size {self.patch_size}")
        return self

    @property
    def num_patches(self) -> int:
        return (self.image_size // self.patch_size) ** 2

    @property
    def patch_elements(self) -> int:
        """Numbers in one patch."""
        return NUM_CHANNELS * self.patch_size**2

    @property
    def num_rows(self) -> int:
        """Rows of an image in the model's layers: its patches, and the CLS row unless there is a tower."""
        return self.num_patches + (self.tower is None)

    @property
    def pixel_shape(self) -> tuple[int, int, int]:
        return (NUM_CHANNELS, self.image_size, self.image_size)
