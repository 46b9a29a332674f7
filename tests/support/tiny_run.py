"""A model of two layers and two devices with one link, for reports whose figures are chosen by hand."""

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.model import ModelSpec

MODEL = ModelSpec(
    name="tiny",
    family="gpt2",
    num_layers=2,
    hidden_size=8,
    num_heads=2,
    num_kv_heads=2,
    head_dim=4,
    intermediate_size=16,
    vocab_size=32,
    max_positions=64,
)
PAIR = ClusterSpec(
    name="pair",
    source="a",
    devices=tuple(
        DeviceSpec(name=name, flop_per_s=1e9, memory_bytes=1e9, memory_byte_per_s=1e9) for name in "ab"
    ),
    links=(LinkSpec(a="a", b="b", bit_per_s=1e6),),
)
