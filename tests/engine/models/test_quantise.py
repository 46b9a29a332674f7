"""Weights in 8 and 4 bits: what is stored, how far off it is, and a model that computes with it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.domain.errors import PlanError
from engine.domain.plan import Slice, contains
from engine.models.weights.quantise import quantise
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import TensorPart, tensor_parts
from engine.ops.ledger import Ledger
from engine.ops.quantised import QuantisedBlock, quantised_slices
from engine.ops.sizes import quantised_bytes, weight_bytes
from engine.ops.tensors import meta_of
from tests.support.one_device import hidden_states, model_of, relative_error, run, store_of

NAMES = ("tiny-gpt2", "tiny-bert", "tiny-llama", "grouped")


def stored_bytes(matrix):
    """What a quantised matrix takes: packed numbers and scales."""
    return sum(x.numel() * x.element_size() for x in (matrix.packed, matrix.scales))


def matrix(outputs, inputs, seed=0):
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed))


def part_of(weight):
    return TensorPart("w", "w", tuple(weight.shape), 0, 0, weight.shape[0], 1)


@given(st.integers(1, 9), st.integers(1, 300), st.sampled_from([8, 4]), st.floats(1e-3, 1e3))
def test_no_weight_is_off_by_more_than_half_a_step_and_what_is_stored_is_what_is_counted(
    outputs, inputs, bits, magnitude
):
    weight = matrix(outputs, inputs) * magnitude
    stored = quantise(weight, bits)
    assert stored_bytes(stored) == quantised_bytes(part_of(weight), bits)
    group = inputs if bits == 8 else 128
    highest = 127 if bits == 8 else 7
    for start in range(0, inputs, group):
        piece = weight[:, start : start + group]
        step = piece.abs().amax(dim=1, keepdim=True) / highest
        off = (stored.restored(torch.float32)[:, start : start + group] - piece).abs()
        # a scale is off by a float16's rounding (2^-24 apart below 6e-5), which the largest number multiplies
        assert (off <= step * 0.5 + highest * (step * 2**-10 + 2**-24)).all()


def test_bytes_per_weight_are_one_or_a_half_and_the_scales():
    weight = matrix(64, 1024)
    assert stored_bytes(quantise(weight, 8)) == 64 * 1024 + 64 * 2
    assert stored_bytes(quantise(weight, 4)) == 64 * 1024 * (0.5 + 2 / 128)
    assert stored_bytes(quantise(matrix(3, 129), 4)) == 3 * (65 + 2 * 2)


@pytest.mark.parametrize("bits", [8, 4])
def test_numbers_on_the_grid_come_back_exactly(bits):
    highest = 127 if bits == 8 else 7
    numbers = torch.randint(-highest, highest + 1, (5, 256)).float()
    numbers[:, ::128] = highest
    assert torch.equal(quantise(numbers * 0.25, bits).restored(torch.float32), numbers * 0.25)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_row_of_zeros_stays_zero(bits):
    weight = matrix(2, 130)
    weight[1] = 0
    assert not quantise(weight, bits).restored(torch.float32)[1].any()


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", NAMES)
def test_ledger_and_store_agree_on_the_bytes_of_a_quantised_layer(name, bits):
    model, full = model_of(name), store_of(name)
    store, ledger = WeightStore(model, full.ref, full.seed), Ledger("d0", 1e9, model)
    total_bytes = 0
    for piece in quantised_slices(1, bits):
        store.load(piece)
        ledger.load(piece)
        for tensor in store.held[piece].stored.values():
            is_plain = isinstance(tensor, torch.Tensor)
            total_bytes += tensor.numel() * tensor.element_size() if is_plain else stored_bytes(tensor)
    assert ledger.weights_bytes == total_bytes
    full_bytes = sum(weight_bytes(model, Slice(layer=1, part=part)) for part in ("attention", "ffn"))
    assert total_bytes < full_bytes / (3 if bits == 8 else 4)


@pytest.mark.parametrize(("bits", "limit"), [(8, 0.02), (4, 0.25)])
@pytest.mark.parametrize("name", NAMES)
def test_a_quantised_layer_is_nearly_the_layer(name, bits, limit):
    model, full = model_of(name), store_of(name)
    store, x = WeightStore(model, full.ref, full.seed), hidden_states(full)
    for piece in quantised_slices(0, bits):
        store.load(piece)
    ours, theirs = run(QuantisedBlock(0, bits), store, x), run(ops.Block(0), full, x)
    assert 0 < relative_error(ours, theirs) < limit


@pytest.mark.parametrize("name", NAMES)
def test_a_quantised_layer_multiplies_what_a_layer_does_and_restores_every_matrix_once(name):
    model, full = model_of(name), store_of(name)
    store, x = WeightStore(model, full.ref, full.seed), hidden_states(full)
    op = QuantisedBlock(0, 4, "c" if model.causal else None, speed=2.0)
    for piece in op.slices(model):
        store.load(piece)
    block, cost = ops.Block(0, op.cache).cost(model, (meta_of(x),), 0), op.cost(model, (meta_of(x),), 0)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        output = run(op, store, x, caches={})
    assert sum(k.flops for k in cost.kernels if k.kind == "product") == counter.get_total_flops()
    assert cost.output == meta_of(output)
    restored = [kernel for kernel in cost.kernels if kernel.name == "dequantise"]
    matrices = [
        part for piece in op.slices(model) for part in tensor_parts(model, piece) if len(part.shape) == 2
    ]
    assert sum(kernel.flops for kernel in restored) == sum(part.num_elements for part in matrices)
    largest = max(part.num_elements for part in matrices) * model.element_bytes
    assert cost.scratch_bytes == block.scratch_bytes + largest
    assert (cost.kv_bytes, cost.kv_rows, cost.speed) == (block.kv_bytes, block.kv_rows, 2.0)


def test_quantised_weights_serve_only_slices_with_the_same_bits():
    plain, packed = Slice(layer=0, part="ffn"), Slice(layer=0, part="ffn", bits=4)
    assert contains(packed, packed) and not contains(packed, plain) and not contains(plain, packed)
    with pytest.raises(PlanError, match="only whole parts are quantised"):
        tensor_parts(model_of("tiny-gpt2"), packed.model_copy(update={"axis": "columns", "stop": 4}))
