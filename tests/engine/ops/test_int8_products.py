"""Products of whole numbers of 8 bits: exactly those of numpy, in any cut between groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models.reference.transformers_outputs import rounded_inputs
from engine.models.weights.quantise import quantise
from engine.ops.torch_kernels.int8_products import int8_product, int8_product_by_torch, rounded
from engine.ops.torch_kernels.row_library import make_library


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    make_library()


def by_numpy(x: np.ndarray, whole: np.ndarray, scales: np.ndarray, group: int) -> np.ndarray:
    """The product of rounded rows, all sums in whole numbers of 64 bits, then in float64."""
    y = np.zeros((len(x), len(whole)))
    for first in range(0, x.shape[1], group):
        part = x[:, first : first + group]
        steps = np.abs(part).max(axis=1, keepdims=True) / np.float32(127)
        numbers = np.round(np.divide(part, steps, out=np.zeros_like(part), where=steps > 0))
        sums = numbers.astype(np.int64) @ whole[:, first : first + group].astype(np.int64).T
        y += sums * steps.astype(np.float64)
    return y * scales.astype(np.float64)


@settings(deadline=None)
@given(
    rows=st.integers(1, 5),
    outputs=st.integers(1, 9),
    groups=st.integers(1, 6),
    group=st.sampled_from([4, 8, 32]),
    seed=st.integers(0, 99),
)
def test_products_are_those_of_numpy(rows: int, outputs: int, groups: int, group: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, groups * group)) * 10.0 ** random.integers(-3, 4)
    x[:, :group] *= random.integers(0, 2)
    x = x.astype(np.float32)
    weight = quantise(
        torch.from_numpy(random.normal(size=(outputs, groups * group)).astype(np.float32)),
        8,
        torch.float32,
        group,
    )
    bias = torch.from_numpy(random.normal(size=outputs).astype(np.float32))
    packed, scales = (stored.numpy() for stored in weight.tensors)
    expected = by_numpy(x, packed, scales[:, 0], group)
    given = torch.from_numpy(x)
    size = np.abs(expected).max() + 1e-6
    ours = int8_product(given, weight, bias).numpy() - bias.numpy()
    other = int8_product_by_torch(*rounded(given, group), *weight.tensors[:1], weight.numbers.scales.float())
    assert np.abs(ours - expected).max() < 1e-5 * size + 1e-6
    assert np.abs(other.numpy() - expected).max() < 1e-5 * size


def test_sums_are_whole_numbers_of_32_bits_and_lose_nothing() -> None:
    """With scales of 1 the result is a whole number, which numbers of 16 bits would not hold."""
    x = torch.full((1, 32), 127.0)
    weight = quantise(torch.full((3, 32), 127.0), 8, torch.float32, 32)
    assert int8_product(x, weight, None).tolist() == [[32 * 127 * 127] * 3]
    assert rounded(x, 32)[1].tolist() == [[1.0]]


def test_a_cut_between_groups_gives_the_same_partial_sums() -> None:
    torch.manual_seed(1)
    x, weight = torch.randn(3, 96), quantise(torch.randn(5, 96), 8, torch.float32, 32)
    left, right = weight.cut(1, 0, 32), weight.cut(1, 32, 96)
    together = int8_product(x[:, :32], left, None) + int8_product(x[:, 32:], right, None)
    assert torch.allclose(together, int8_product(x, weight, None), rtol=1e-5, atol=1e-5)


def test_what_the_reference_rounds_is_what_products_take_in() -> None:
    torch.manual_seed(2)
    x = torch.randn(4, 64)
    numbers, scales = rounded(x, 32)
    restored = (numbers.float().unflatten(-1, (-1, 32)) * scales[..., None]).flatten(-2)
    assert torch.equal(rounded_inputs(x, 32), restored)
