"""Operations on tensors with their exact cost, and what they take of memory and time."""

from __future__ import annotations

from engine.domain.sampling import candidates_of_part, is_filtered
from engine.models.families.registry import family
from engine.models.families.tensor_names import stored_as
from engine.ops.core import Add, Attention, Block, Embed, FeedForward, FinalHidden, Head, Norm, Residual
from engine.ops.cost import flops_s, op_time_s
from engine.ops.draft import OfDraft
from engine.ops.head_columns import Best, Candidates, Choose, DrawAmong, HeadColumns
from engine.ops.heads import (
    Attend,
    Features,
    Heads,
    Importance,
    Join,
    Mix,
    Project,
    Recall,
    Regroup,
    Statistics,
    Weigh,
    kv_of,
)
from engine.ops.kv_cache import DropRows, PutRows, TakeRows
from engine.ops.layers import Layers, layers
from engine.ops.layout import kv_heads, tensor_parts
from engine.ops.ledger import Ledger
from engine.ops.mixture import Experts, Route, SharedExpert
from engine.ops.operation import LayerPart, Op, Operation, Share, cost_of, norm_piece, piece_of
from engine.ops.positions import Order, PositionBlock
from engine.ops.quantised import QuantisedBlock, quantised_layers, quantised_slices
from engine.ops.ragged import CacheName, Piece, Ragged
from engine.ops.recompute import AttentionAgain, EmbedAgain
from engine.ops.sizes import bits_of, kv_bytes_per_row, part_bytes, weight_bytes
from engine.ops.summa import SummaActivate, SummaDown, SummaUp
from engine.ops.tiles import Contract, Expand
from engine.ops.tokens import Draw, Greedy
from engine.ops.vision import Classify, EmbedPrompt, ImagePrompt, image_ops, pixels_meta

__all__ = [
    "Add",
    "Attend",
    "Attention",
    "AttentionAgain",
    "Best",
    "Block",
    "CacheName",
    "Candidates",
    "Choose",
    "Classify",
    "Contract",
    "Draw",
    "DrawAmong",
    "DropRows",
    "Embed",
    "EmbedAgain",
    "EmbedPrompt",
    "Expand",
    "Experts",
    "Features",
    "FeedForward",
    "FinalHidden",
    "Greedy",
    "Head",
    "HeadColumns",
    "Heads",
    "ImagePrompt",
    "Importance",
    "Join",
    "LayerPart",
    "Layers",
    "Ledger",
    "Mix",
    "Norm",
    "OfDraft",
    "Op",
    "Operation",
    "Order",
    "Piece",
    "PositionBlock",
    "Project",
    "PutRows",
    "QuantisedBlock",
    "Ragged",
    "Recall",
    "Regroup",
    "Residual",
    "Route",
    "Share",
    "SharedExpert",
    "Statistics",
    "SummaActivate",
    "SummaDown",
    "SummaUp",
    "TakeRows",
    "Weigh",
    "bits_of",
    "candidates_of_part",
    "cost_of",
    "family",
    "flops_s",
    "image_ops",
    "is_filtered",
    "kv_bytes_per_row",
    "kv_heads",
    "kv_of",
    "layers",
    "norm_piece",
    "op_time_s",
    "part_bytes",
    "piece_of",
    "pixels_meta",
    "quantised_layers",
    "quantised_slices",
    "stored_as",
    "tensor_parts",
    "weight_bytes",
]
