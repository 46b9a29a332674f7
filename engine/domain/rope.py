"""Rotary positions (RoPE, Su et al., arXiv 2104.09864) of a layer, and how their wavelengths are stretched.

Pair i of the R rotated numbers of a head turns by position / theta^(2i/R) radians. A scaling changes these
frequencies for texts longer than those of the training.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Discriminator, Field, Tag, model_validator

from engine.domain.values import Positive, Value


class Llama3Scaling(Value):
    """Llama 3's stretching of the long wavelengths.

    Wavelengths longer than `original_max_positions / low_freq_factor` become `factor` times as long,
    those shorter than `original_max_positions / high_freq_factor` stay, and those between are blended.
    """

    kind: Literal["llama3"] = "llama3"
    factor: Positive
    low_freq_factor: Positive
    high_freq_factor: Positive
    original_max_positions: int = Field(gt=0)

    @model_validator(mode="after")
    def _blends(self) -> Llama3Scaling:
        if self.low_freq_factor >= self.high_freq_factor:
            low, high = self.low_freq_factor, self.high_freq_factor
            raise ValueError(f"low_freq_factor {low} is not below high_freq_factor {high}")
        return self


class LinearScaling(Value):
    """All wavelengths become `factor` times as long (Chen et al., arXiv 2306.15595)."""

    kind: Literal["linear"] = "linear"
    factor: Positive


class YarnScaling(Value):
    """YaRN (Peng et al., arXiv 2309.00071, sections 3.2 and 3.4).

    Pairs that turn more than `beta_fast` times within `original_max_positions` keep their wavelength, those
    that turn less than `beta_slow` times get one `factor` times as long, and pairs between are blended
    linearly. `truncate` rounds both ends of that range outwards to whole pairs. cos and sin are multiplied by
    `attention_factor`.
    """

    kind: Literal["yarn"] = "yarn"
    factor: Positive
    original_max_positions: int = Field(gt=0)
    attention_factor: Positive
    beta_fast: Positive = 32.0
    beta_slow: Positive = 1.0
    truncate: bool = True


class LongRopeScaling(Value):
    """LongRoPE (Ding et al., arXiv 2402.13753) for texts within the positions of the training.

    The wavelength of each pair becomes its own of `factors` times as long. cos and sin are multiplied by
    `attention_factor`.
    """

    kind: Literal["longrope"] = "longrope"
    factors: tuple[Positive, ...] = Field(min_length=1)
    attention_factor: Positive


def _kind_of(scaling: Any) -> str:
    """The kind of a scaling: specs that were stored before there were others have Llama 3's
    without its name.
    """
    kind = scaling.get("kind", "llama3") if isinstance(scaling, dict) else scaling.kind
    return str(kind)


RopeScaling = Annotated[
    Annotated[Llama3Scaling, Tag("llama3")]
    | Annotated[LinearScaling, Tag("linear")]
    | Annotated[YarnScaling, Tag("yarn")]
    | Annotated[LongRopeScaling, Tag("longrope")],
    Discriminator(_kind_of),
]


class Rope(NamedTuple):
    """Rotary positions of one layer: the first `rotary_dim` numbers of every head turn."""

    theta: float
    scaling: Llama3Scaling | LinearScaling | YarnScaling | LongRopeScaling | None
    rotary_dim: int
