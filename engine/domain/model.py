"""ModelSpec: the shape and the variants of a transformer, named as in Hugging Face configs."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from engine.domain.errors import PlanError, SpecError
from engine.domain.rope import Rope, RopeScaling
from engine.domain.units import DTYPE_BYTES
from engine.domain.values import Count, Fraction, NonNegative, Positive, Value
from engine.domain.vision import VisionSpec


class SlidingWindow(Value):
    """Layers whose queries see only the newest `size` keys, their own included (Mistral, arXiv 2310.06825).

    With `rope_theta` these layers have this rotary base, unscaled, instead of the model's (Gemma 3,
    arXiv 2503.19786, section 2.1).
    """

    size: int = Field(gt=0, description="Keys.")
    layers: tuple[Count, ...] = Field(min_length=1, description="Numbers of the layers, ascending.")
    rope_theta: Positive | None = None


LARGEST_INT8_GROUP, SMALLEST_INT8_GROUP = 32, 4
"""Inputs of a product that share a scale where its activations have 8 bits, at most and at least."""

QuantisedBits = Literal[8, 4]
"""Bits per number of a matrix in which runs compute, beside those of its dtype."""


LIKELY_ACCEPTANCE = 0.7
"""The mean of what Leviathan et al. (2023, Table 2) measured of T5-small as the draft of T5-XXL with greedy
decoding: 0.75 on translations, 0.65 on summaries.
"""


class ModelSpec(Value):
    """One model, in the names of `transformers`. A family sets the fields after `dtype`.

    Shapes everywhere: B batch, T new tokens, S all tokens, D hidden_size, H num_heads, K num_kv_heads,
    E head_dim, F intermediate_size, V vocab_size. There are `num_layers` layers of an attention and a
    feed-forward part each, and positions up to `max_positions`.

    `causal`: rows see only those before them (a decoder). `norm`, with `norm_eps`, is before a part
    (`norm_position` pre) or after its sum (post). `positions` are rows of a table (learned), or rotary with
    `rope_theta` and `rope_scaling`; some layers may have a `sliding_window`. A `gated_ffn` has two first
    matrices, of which one goes through `activation`. `attention_bias`, `ffn_bias`: whether its products have
    biases. `token_types` and `embedding_norm` are BERT's. `has_head`: whether there is an output matrix;
    `tied_head`: it is the table of embeddings. `vision`: what sees pictures.
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
    weight_bits: NonNegative = Field(
        default=0.0, description="Bits per number of a matrix, scales included; 0: those of dtype."
    )
    activation_bits: Literal[0, 8] = Field(
        default=0,
        description="Bits of the numbers that products of its layers take in, with matrices of as many: "
        "whole numbers are multiplied and added, as microcontrollers do; 0: those of dtype.",
        exclude_if=lambda bits: not bits,
    )
    # fields in which families differ
    causal: bool = True
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_eps: Positive = 1e-5
    norm_position: Literal["pre", "post", "sum"] = Field(
        default="pre",
        description="Before each part and once at the end; after each addition; or of each part's sum alone "
        "(sublayer_norm) and once at the end.",
    )
    norm_adds_one: bool = Field(default=False, description="RMS norms multiply by 1 + weight, in float32.")
    sublayer_norm: bool = Field(
        default=False, description="One more norm of each part's sum, before it is added to its input."
    )
    positions: Literal["learned", "rope"] = "learned"
    position_offset: Count = Field(default=0, description="Rows of the position table before position 0.")
    rope_theta: Positive = 10000.0
    rope_scaling: RopeScaling | None = None
    partial_rotary_factor: float = Field(
        default=1.0, gt=0, le=1, description="Share of every head's numbers that turn: the first ones."
    )
    layers_without_rope: tuple[Count, ...] = Field(
        default=(), description="Numbers of the layers without any positions, ascending."
    )
    sliding_window: SlidingWindow | None = None
    query_pre_attn_scalar: int | None = Field(
        default=None, gt=0, description="Scores are divided by its square root; none: by that of head_dim."
    )
    attention_multiplier: Positive | None = Field(
        default=None, description="Factor of the scores, in place of that root."
    )
    residual_multiplier: Positive = Field(
        default=1.0, description="Factor of each part's sum before it is added to its input."
    )
    logits_scaling: Positive = Field(default=1.0, description="Logits are divided by it.")
    score_softcap: Positive | None = Field(
        default=None, description="Scores s become c·tanh(s/c) before the mask, c being this."
    )
    logit_softcap: Positive | None = Field(default=None, description="The same for the logits.")
    attention_sinks: bool = Field(
        default=False, description="A learned number per query head is beside its scores in the softmax."
    )
    qk_norm: bool = Field(default=False, description="RMS norm of every query and key head.")
    qk_norm_over_heads: bool = Field(
        default=False,
        description="That norm is one over all heads of a row, so that no cut between heads has it.",
    )
    activation: Literal["gelu", "gelu_new", "silu", "relu", "quick_gelu"] = "gelu_new"
    gated_ffn: bool = False
    swiglu_limit: Positive | None = Field(
        default=None,
        description="Experts' gates g and other products u are clamped at it, g from above alone, and become "
        "g·sigmoid(swiglu_alpha·g)·(u + 1).",
    )
    swiglu_alpha: Positive = Field(default=1.702, description="The gain in that sigmoid.")
    attention_bias: bool = True
    output_bias: bool = Field(
        default=True, description="Whether attention_bias holds for the output matrix too."
    )
    ffn_bias: bool = True
    num_experts: Count = Field(
        default=0,
        description="Feed-forward parts of intermediate_size in each layer, of which every row chooses some; "
        "0: there is one, which all rows go through.",
    )
    experts_per_token: Count = Field(default=0, description="Experts that a row chooses.")
    norm_topk_prob: bool = Field(
        default=True, description="Whether the weights of a row's experts are scaled to the sum 1."
    )
    shared_intermediate_size: Count = Field(
        default=0, description="Columns of an expert that every row goes through; 0: there is none."
    )
    shared_expert_gate: bool = Field(
        default=False, description="Whether each row weighs the shared expert's sum."
    )
    likely_experts: Count = Field(
        default=0,
        description="Predictions take rows to choose evenly and independently among so many experts; 0: all.",
    )
    expert_load: tuple[Count, ...] = Field(
        default=(),
        description="How often rows chose each expert in a run, all layers together: predictions take them "
        "to choose so; empty: not recorded.",
    )
    draft: ModelSpec | None = Field(
        default=None,
        description="A smaller model of the same vocabulary: methods that draft let it guess tokens, all "
        "others leave it aside.",
        exclude_if=lambda draft: draft is None,
    )
    likely_acceptance: Fraction = Field(
        default=LIKELY_ACCEPTANCE,
        description="Predictions take each drafted token to be the model's own with this probability.",
        exclude_if=lambda share: share == LIKELY_ACCEPTANCE,
    )
    token_types: Count = 0
    embedding_norm: bool = False
    embedding_scale: Positive | None = Field(default=None, description="Factor of the tokens' embeddings.")
    tied_head: bool = True
    has_head: bool = True
    vision: VisionSpec | None = None
    num_classes: Count = Field(default=0, description="Of a classifier on the first row; 0: there is none.")
    source: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> ModelSpec:
        if self.sliding_window and not self.causal:
            raise ValueError("sliding_window is of causal models only: leave it out or set causal")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} is no multiple of num_kv_heads {self.num_kv_heads}")
        if self.num_experts and not 0 < self.experts_per_token <= (self.likely_experts or self.num_experts):
            raise ValueError(
                f"experts_per_token is {self.experts_per_token}, expected 1 to "
                f"{self.likely_experts or self.num_experts}, the experts that rows choose among"
            )
        if self.likely_experts > self.num_experts:
            raise ValueError(
                f"likely_experts is {self.likely_experts}, and there are {self.num_experts} experts"
            )
        self._check_load()
        if self.activation_bits:
            self._check_activations()
        if self.draft is not None:
            self._check_draft(self.draft)
        return self

    def _check_load(self) -> None:
        if not self.expert_load:
            return
        if len(self.expert_load) != self.num_experts:
            raise ValueError(
                f"expert_load is of {len(self.expert_load)} experts, and there are {self.num_experts}: give "
                "the record of a run with this model"
            )
        if sum(load > 0 for load in self.expert_load) < self.experts_per_token:
            raise ValueError(
                f"expert_load says that fewer than {self.experts_per_token} experts were chosen, which each "
                "row chooses: give the record of a run"
            )

    def _check_activations(self) -> None:
        """Check that products of whole numbers compute this model: their groups lie within heads and within
        any cut of columns by groups.
        """
        if self.weight_bits != 8:
            raise ValueError(
                f"activation_bits is 8 and weight_bits {self.weight_bits:g}: whole numbers of 8 bits are "
                "multiplied by such: set weight_bits = 8, too"
            )
        found = [
            *([f"dtype {self.dtype}"] if self.dtype != "float32" else []),
            *([f"{self.num_experts} experts"] if self.num_experts else []),
            *(["a part that sees pictures"] if self.vision is not None else []),
        ]
        if found:
            raise ValueError(
                f"activation_bits is 8 and the model has {' and '.join(found)}, expected a text model in "
                "float32 without experts: leave activation_bits out"
            )
        if self.int8_group < SMALLEST_INT8_GROUP:
            raise ValueError(
                f"activation_bits is 8 and head_dim {self.head_dim}, hidden_size {self.hidden_size}, "
                f"intermediate_size {self.intermediate_size}, expected multiples of {SMALLEST_INT8_GROUP}, "
                "the fewest inputs that share a scale: leave activation_bits out"
            )

    def _check_draft(self, draft: ModelSpec) -> None:
        """Check that the tokens of `draft` are this model's; raises `ValueError`."""
        if draft.draft is not None:
            raise ValueError(f"the draft model {draft.name} has one of its own: leave that out")
        for model in (self, draft):
            if not (model.causal and model.has_head) or model.vision is not None:
                raise ValueError(f"{model.name} does not generate text alone: no tokens of it are drafted")
        if draft.vocab_size != self.vocab_size:
            raise ValueError(
                f"the draft model {draft.name} has {draft.vocab_size} tokens and {self.name} has "
                f"{self.vocab_size}: choose one of the same vocabulary"
            )

    @property
    def int8_group(self) -> int:
        """Inputs that share a scale where activations have 8 bits: no head and no row ends within them."""
        return math.gcd(LARGEST_INT8_GROUP, self.head_dim, self.hidden_size, self.intermediate_size)

    @property
    def group_size(self) -> int:
        """Query heads per KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def answer_row(self) -> int | None:
        """The row of the last layer from which the answer is read, 0 or -1; None: all rows are it."""
        if self.num_classes:
            return 0
        return -1 if self.causal and self.has_head else None

    @property
    def scores_reorder(self) -> bool:
        """Whether softmax((q W_K) xᵀ) is that of q Kᵀ: neither RoPE nor a norm of each key is between q and
        W_K, and neither a cap nor a sink makes the result depend on the bias of K.
        """
        return self.positions != "rope" and not self.qk_norm and self.fuses_attention

    @property
    def fuses_attention(self) -> bool:
        """Whether hosts compute scores, softmax and values in one go: scores have neither caps nor sinks."""
        return self.score_softcap is None and not self.attention_sinks

    @property
    def adds_ffn_bias(self) -> bool:
        """Whether the sum of a feed-forward part has one bias, which one device adds. Experts have theirs
        with their first column, as they are weighed.
        """
        return self.ffn_bias and not self.num_experts

    @property
    def has_output_bias(self) -> bool:
        """Whether the attention's output matrix has a bias."""
        return self.attention_bias and self.output_bias

    @property
    def norms_inputs(self) -> bool:
        """Whether a norm precedes each part."""
        return self.norm_position == "pre"

    @property
    def norms_end(self) -> bool:
        """Whether a norm follows the last layer."""
        return self.norm_position != "post"

    @property
    def norms_sums(self) -> bool:
        """Whether a norm follows the complete sum of a part: before or after the residual addition."""
        return self.norm_position == "post" or self.sublayer_norm

    @property
    def adds_bare_sums(self) -> bool:
        """Whether the products at the end of both parts of a layer are added as they are, without a bias or a
        norm.
        """
        bare = not (self.norms_sums or self.has_output_bias or self.ffn_bias or self.num_experts)
        return bare and self.residual_multiplier == 1

    @property
    def has_llama_parts(self) -> bool:
        """Whether the parts of a layer are made as Llama's are, in float32: RMS norms before them, rotary
        positions or none, SiLU gates. A single row goes through such a part in one call.
        """
        return (
            self.norm == "rmsnorm"
            and self.norm_position == "pre"
            and not (self.norm_adds_one or self.sublayer_norm or self.qk_norm)
            and self.fuses_attention
            and self.causal
            and self.gated_ffn
            and self.activation == "silu"
            and self.dtype == "float32"
            and not self.activation_bits
        )

    @property
    def score_scale(self) -> float:
        """Factor of q·k."""
        scale: float = (self.query_pre_attn_scalar or self.head_dim) ** -0.5
        return self.attention_multiplier or scale

    @property
    def rotary_dim(self) -> int:
        """Numbers of every head that rotary positions turn."""
        return int(self.head_dim * self.partial_rotary_factor)

    def rope_of(self, layer: int) -> Rope | None:
        """The rotary positions of `layer`, None if it has none."""
        if self.positions != "rope" or layer in self.layers_without_rope:
            return None
        window = self.sliding_window
        if window and window.rope_theta and layer in window.layers:
            return Rope(window.rope_theta, None, self.rotary_dim)
        return Rope(self.rope_theta, self.rope_scaling, self.rotary_dim)

    def window_of(self, layer: int) -> int | None:
        """Keys that a query of `layer` sees at most, None if it sees all before it."""
        window = self.sliding_window
        return window.size if window and layer in window.layers else None

    def first_key(self, layer: int, row: int) -> int:
        """Position of the oldest key that the query at position `row` sees in `layer`."""
        size = self.window_of(layer)
        return max(0, row - size + 1) if size else 0

    @property
    def element_bytes(self) -> int:
        """Bytes of a number of its dtype."""
        return DTYPE_BYTES[self.dtype]

    @property
    def reads_text(self) -> bool:
        """Whether its input are tokens: all models but those that classify pictures."""
        return self.vocab_size > 0

    @property
    def has_tower(self) -> bool:
        """Whether a tower of its own reads pictures, besides the layers."""
        return self.vision is not None and self.vision.tower is not None

    @property
    def image_rows(self) -> int:
        """Rows of a prompt that are an image's."""
        return self.vision.num_rows if self.vision else 0

    @property
    def num_text_tokens(self) -> int:
        """The number of token ids that are text, the first ones; a model with a tower reserves one for
        images.
        """
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


def with_draft(
    model: ModelSpec, draft: ModelSpec | None, likely_acceptance: float | None = None
) -> ModelSpec:
    """`model` with a draft model, and with another likely acceptance. Raises `SpecError` if they do not go
    together.
    """
    fields: dict[str, Any] = {} if draft is None else {"draft": draft.model_dump(mode="json")}
    if likely_acceptance is not None:
        fields["likely_acceptance"] = likely_acceptance
    if not fields:
        return model
    found: ModelSpec = ModelSpec.parse(model.model_dump(mode="json") | fields, f"model {model.name}")
    return found


def draft_of(model: ModelSpec) -> ModelSpec:
    """The draft model of `model`. Raises `PlanError` if it has none."""
    if model.draft is None:
        raise PlanError(f"{model.name} has no draft model: name one as draft model (--draft-model).")
    return model.draft


class LayerKind(NamedTuple):
    """Layers of a model whose operations cost the same: one of them, and what share of all they are."""

    layer: int
    share: float


def layer_kinds(model: ModelSpec) -> tuple[LayerKind, ...]:
    """The different layers of `model`. Most models have one kind."""
    if model.sliding_window is None and not model.layers_without_rope:
        return (LayerKind(0, 1.0),)
    return _layer_kinds(model)


@lru_cache(maxsize=64)
def _layer_kinds(model: ModelSpec) -> tuple[LayerKind, ...]:
    alike: dict[int, list[int]] = {}
    for layer in range(model.num_layers):
        alike.setdefault(first_alike(model, layer), []).append(layer)
    return tuple(LayerKind(first, len(layers) / model.num_layers) for first, layers in alike.items())


def first_alike(model: ModelSpec, layer: int) -> int:
    """The first layer whose operations cost the same as those of `layer`."""
    if model.sliding_window is None and not model.layers_without_rope:
        return 0
    kind = model.window_of(layer), model.rope_of(layer) is None
    return next(one for one in range(layer + 1) if (model.window_of(one), model.rope_of(one) is None) == kind)


def in_bits(model: ModelSpec, bits: QuantisedBits | None) -> ModelSpec:
    """`model` with its matrices rounded to so many bits, in which runs compute; None: as they are."""
    return model.model_copy(update={"weight_bits": float(bits)}) if bits else model


def in_int8(model: ModelSpec) -> ModelSpec:
    """`model`, whose matrices have 8 bits, with products of whole numbers. Raises `SpecError` about
    activation_bits if it is no model that these compute.
    """
    try:
        found: ModelSpec = ModelSpec.parse(
            model.model_dump(mode="json") | {"activation_bits": 8}, f"model {model.name}"
        )
    except SpecError as error:
        raise SpecError(str(error), [("activation_bits", str(error))]) from error
    return found


def computed_bits(model: ModelSpec) -> QuantisedBits | None:
    """The bits to which `in_bits` has rounded `model`."""
    return 8 if model.weight_bits == 8 else 4 if model.weight_bits == 4 else None
