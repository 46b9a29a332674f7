"""Weights in 8 and 4 bits: what is stored, how far off it is, and a model that computes with it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.domain.errors import PlanError
from engine.domain.plan import Slice, contains
from engine.domain.spec import WeightsRef
from engine.models.weights import quantise as quantising
from engine.models.weights.quantise import quantise as packed_form
from engine.models.weights.store import WeightStore, load
from engine.ops import core as ops
from engine.ops.layout import TensorPart, tensor_parts, whole_model
from engine.ops.ledger import Ledger
from engine.ops.quantised import QuantisedBlock, quantised_slices
from engine.ops.sizes import quantised_bytes, weight_bytes
from engine.ops.tensors import meta_of
from engine.ops.torch_kernels.own_memory import copies
from engine.ops.torch_kernels.packed import Packed
from tests.support.one_device import hidden_states, model_of, relative_error, run, store_of

NAMES = ("tiny-gpt2", "tiny-bert", "tiny-llama", "grouped")


def stored_bytes(matrix):
    """What a matrix takes: a packed one, its numbers and scales."""
    tensors = matrix.tensors if isinstance(matrix, Packed) else (matrix,)
    return sum(x.numel() * x.element_size() for x in tensors)


def quantise(weight, bits, dtype=torch.float32):
    return packed_form(weight, bits, dtype)


def matrix(outputs, inputs, seed=0):
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed))


def part_of(weight):
    return TensorPart("w", "w", tuple(weight.shape), 0, 0, weight.shape[0], 1)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_matrix_is_the_same_in_however_many_blocks_it_is_quantised(bits, monkeypatch):
    weight = matrix(11, 301)
    whole = quantise(weight, bits)
    for numbers in (1, 2 * 301, 10**6):
        monkeypatch.setattr(quantising, "BLOCK_NUMBERS", numbers)
        parts = quantise(weight, bits)
        assert all(torch.equal(one, other) for one, other in zip(whole.tensors, parts.tensors, strict=True))


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
        off = (stored.restored()[:, start : start + group] - piece).abs()
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
    assert torch.equal(quantise(numbers * 0.25, bits).restored(), numbers * 0.25)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_row_of_zeros_stays_zero(bits):
    weight = matrix(2, 130)
    weight[1] = 0
    assert not quantise(weight, bits).restored()[1].any()


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", NAMES)
def test_ledger_and_store_agree_on_the_bytes_of_a_quantised_layer(name, bits):
    model, full = model_of(name), store_of(name)
    store, ledger = WeightStore(model, full.ref, full.seed), Ledger("d0", 1e9, model)
    total_bytes = 0
    for piece in quantised_slices(1, bits):
        store.load(piece)
        ledger.load(piece)
        total_bytes += sum(map(stored_bytes, store.held[piece].values()))
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


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 99),
    st.sampled_from([8, 4]),
    st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3),
)
def test_a_cut_of_a_packed_matrix_is_that_cut_of_its_numbers(seed, bits, cuts):
    """Cuts of cuts, at odd places and within groups, too; and each is the same in memory of its own."""
    weight = matrix(7, 700, seed)
    packed, plain = quantise(weight, bits), quantise(weight, bits).restored()
    for dim, low, high in cuts:
        start, stop = sorted(round(at * packed.shape[dim]) for at in (low, high))
        packed = packed[start:stop] if dim == 0 else packed.narrow(1, start, stop - start)
        plain = plain.narrow(dim, start, stop - start)
        assert isinstance(packed, Packed) and packed.shape == plain.shape
    assert torch.equal(packed.restored(), plain)
    assert torch.equal(copies([weight, packed])[1].restored(), plain)


@pytest.mark.parametrize("bits", [8, 4])
def test_whatever_computes_with_a_packed_matrix_gets_its_numbers(bits):
    packed = quantise(matrix(6, 300), bits)
    plain, ids = packed.restored(), torch.tensor([[4, 0], [5, 5]])
    assert torch.equal(torch.embedding(packed, ids), plain[ids])
    assert torch.equal(packed[2], plain[2]) and torch.equal(packed[:, 5::2], plain[:, 5::2])
    assert torch.equal(packed.view(3, 2, 300) @ torch.ones(300), plain.view(3, 2, 300) @ torch.ones(300))
    assert packed.numel() == 1800 and packed.dtype is torch.float32


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", NAMES)
def test_slices_of_a_model_in_few_bits_are_cut_from_the_same_numbers(name, bits):
    """Else parts of a split model would have scales of their own, and other sums."""
    model = model_of(name).model_copy(update={"weight_bits": bits})
    ref, columns = WeightsRef(kind="random"), model.intermediate_size
    whole = load(model, ref, Slice(layer=1, part="ffn"), 3)
    assert isinstance(whole["down.weight"], Packed)
    for start, stop in ((0, columns), (1, columns // 2), (columns // 3, columns), (5, 5)):
        piece = Slice(layer=1, part="ffn", axis="columns", start=start, stop=stop)
        got = load(model, ref, piece, 3)
        assert torch.equal(got["down.weight"].restored(), whole["down.weight"].restored()[:, start:stop])
        assert torch.equal(got["up.weight"].restored(), whole["up.weight"].restored()[start:stop])
        assert got["down.weight"].numbers.packed.is_contiguous()


@pytest.mark.parametrize("bits", [8, 4])
def test_a_model_in_few_bits_takes_what_is_counted_and_its_table_is_there_once(bits):
    model = model_of("tiny-gpt2").model_copy(update={"weight_bits": bits})
    store, ledger = WeightStore(model, WeightsRef(kind="random"), 3), Ledger("d0", 1e9, model)
    for piece in whole_model(model):
        store.load(piece)
        ledger.load(piece)
    tensors = {id(tensor): tensor for held in store.held.values() for tensor in held.values()}
    assert model.tied_head and sum(map(stored_bytes, tensors.values())) == ledger.weights_bytes
    store.own()
    assert (
        store.get(Slice(layer=-1, part="embed"))["tokens"]
        is store.get(Slice(layer=-1, part="lm_head"))["weight"]
    )
