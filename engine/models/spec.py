"""A transformer's shape, in Hugging Face's meaning of the words."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from engine.units import DTYPE_BYTES
from engine.values import Count, Positive, Value


class ModelSpec(Value):
    """One model. A family is a row of differences (`engine/models/families.py`), not a class.

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
    vocab_size: int = Field(gt=0)
    max_positions: int = Field(gt=0)
    dtype: Literal["float32", "bfloat16"] = "float32"
    # the row of differences
    causal: bool = True
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_eps: Positive = 1e-5
    norm_position: Literal["pre", "post"] = "pre"
    positions: Literal["learned", "rope"] = "learned"
    rope_theta: Positive = 10000.0
    activation: Literal["gelu", "gelu_new", "silu", "relu"] = "gelu_new"
    gated_ffn: bool = False
    attention_bias: bool = True
    ffn_bias: bool = True
    token_types: Count = 0
    embedding_norm: bool = False
    tied_head: bool = True
    has_head: bool = True
    source: str = ""

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelSpec:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads {self.num_heads} is no multiple of num_kv_heads {self.num_kv_heads}"
            )
        return self

    @property
    def group_size(self) -> int:
        """Query heads per KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]
