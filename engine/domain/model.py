"""ModelSpec: the shape and the variants of a transformer, named as in Hugging Face configs."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import Field, model_validator

from engine.domain.units import DTYPE_BYTES
from engine.domain.values import Count, Positive, Value
from engine.domain.vision import VisionSpec


class RopeScaling(Value):
    """Llama 3's stretching of rotary wavelengths beyond the positions it was first trained on.

    Wavelengths longer than `original_max_positions / low_freq_factor` become `factor` times as long,
    those shorter than `original_max_positions / high_freq_factor` stay, and those between are blended.
    """

    factor: Positive
    low_freq_factor: Positive
    high_freq_factor: Positive
    original_max_positions: int = Field(gt=0)

    @model_validator(mode="after")
    def _blends(self) -> RopeScaling:
        if self.low_freq_factor >= self.high_freq_factor:
            low, high = self.low_freq_factor, self.high_freq_factor
            raise ValueError(f"low_freq_factor {low} is not below high_freq_factor {high}")
        return self


class ModelSpec(Value):
    """One model. A family sets the fields after `dtype` (`engine/models/families/`).

    Shapes everywhere: B batch, T new tokens, S all tokens, D hidden_size, H num_heads, K num_kv_heads,
    E head_dim, F intermediate_size, V vocab_size.
    """

    name: str
    family: str
    num_layers: int = Field(gt=0)
    hidden_size: int = Field(gt=0)
    num_heads: int = Field(gt=0)
    num_kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    vocab_size: Count = Field(description="0 for a model that reads no text.")
    max_positions: int = Field(gt=0)
    dtype: Literal["float32", "bfloat16"] = "float32"
    # fields in which families differ
    causal: bool = True
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_eps: Positive = 1e-5
    norm_position: Literal["pre", "post"] = "pre"
    positions: Literal["learned", "rope"] = "learned"
    position_offset: Count = Field(default=0, description="Rows of the position table before position 0.")
    rope_theta: Positive = 10000.0
    rope_scaling: RopeScaling | None = None
    qk_norm: bool = Field(default=False, description="RMS norm of every query and key head.")
    activation: Literal["gelu", "gelu_new", "silu", "relu", "quick_gelu"] = "gelu_new"
    gated_ffn: bool = False
    attention_bias: bool = True
    ffn_bias: bool = True
    token_types: Count = 0
    embedding_norm: bool = False
    tied_head: bool = True
    has_head: bool = True
    vision: VisionSpec | None = None
    num_classes: Count = Field(default=0, description="Of a classifier on the first row; 0: there is none.")
    source: str = ""

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelSpec:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} is no multiple of num_kv_heads {self.num_kv_heads}")
        return self

    @property
    def group_size(self) -> int:
        """Query heads per KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def scores_reorder(self) -> bool:
        """Whether (q W_K) xᵀ equals q Kᵀ: neither RoPE nor a norm of each key is between q and W_K."""
        return self.positions != "rope" and not self.qk_norm

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def reads_text(self) -> bool:
        return self.vocab_size > 0

    @property
    def has_tower(self) -> bool:
        return self.vision is not None and self.vision.tower is not None

    @property
    def image_rows(self) -> int:
        """Rows of a prompt that are an image's."""
        return self.vision.num_rows if self.vision else 0

    @property
    def num_text_tokens(self) -> int:
        """Token ids below this are text; a model with a tower reserves one for images."""
        tower = self.vision.tower if self.vision else None
        return tower.image_token if tower else self.vocab_size


@lru_cache(maxsize=64)
def tower_model(model: ModelSpec) -> ModelSpec:
    """The vision tower of a model as a model of its own, with ordinary layers."""
    assert model.vision is not None and model.vision.tower is not None
    tower = model.vision.tower
    return ModelSpec(
        name=f"{model.name} tower",
        family=model.family,
        num_layers=tower.used_layers,
        hidden_size=tower.hidden_size,
        num_heads=tower.num_heads,
        num_kv_heads=tower.num_heads,
        head_dim=tower.hidden_size // tower.num_heads,
        intermediate_size=tower.intermediate_size,
        vocab_size=0,
        max_positions=model.vision.num_patches + 1,
        dtype=model.dtype,
        causal=False,
        norm_eps=tower.norm_eps,
        activation=tower.activation,
        tied_head=False,
        has_head=False,
    )
