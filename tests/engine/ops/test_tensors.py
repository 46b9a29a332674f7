"""A tensor without numbers has the shape and type that torch gives the real one."""

import pytest
import torch

from engine.domain.errors import WrongProgram
from engine.ops import tensors
from engine.ops.tensors import Meta

X = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "manipulate",
    [
        lambda x: tensors.narrow(x, 1, 1, 3),
        lambda x: tensors.take(x, 2, [3, 0]),
        lambda x: tensors.take(x, 0, [0, 1]),
        lambda x: tensors.concat([x, x, x], 1),
        lambda x: tensors.zeros((2, 5), x, "int64"),
        lambda x: tensors.flatten(x),
        lambda x: tensors.reshape(x, (4, 6)),
    ],
    ids=["narrow", "take", "take-all", "concat", "zeros", "flatten", "reshape"],
)
def test_a_manipulation_gives_both_kinds_of_tensor_the_same_shape_and_type(manipulate):
    real, meta = manipulate(X), manipulate(Meta((2, 3, 4)))
    assert tensors.meta_of(real) == meta
    assert tensors.payload_bytes(real) == tensors.payload_bytes(meta) == real.numel() * real.element_size()


def test_indices_are_taken_in_their_own_order():
    assert torch.equal(tensors.take(X, 2, [3, 0]), torch.stack((X[..., 3], X[..., 0]), dim=-1))


def test_half_open_ranges_keep_their_first_and_lose_their_last_index():
    assert torch.equal(tensors.narrow(X, 1, 1, 3), X[:, 1:3])


def test_a_payload_counts_the_bytes_of_its_type():
    assert tensors.payload_bytes(Meta((2, 3), "bfloat16")) == 12
    assert tensors.payload_bytes(Meta((2, 3), "int64")) == 48
    assert tensors.payload_bytes(Meta((0, 3))) == 0


@pytest.mark.parametrize(
    "manipulate",
    [
        lambda x: tensors.narrow(x, 1, 1, 4),
        lambda x: tensors.narrow(x, 1, 2, 1),
        lambda x: tensors.narrow(x, 1, -4, -3),
        lambda x: tensors.narrow(x, 3, 0, 1),
        lambda x: tensors.take(x, 2, [4]),
        lambda x: tensors.take(x, 2, [-1]),
        lambda x: tensors.concat([x, tensors.narrow(x, 2, 0, 1)], 1),
        lambda x: tensors.concat([x, tensors.flatten(x)], 1),
        lambda x: tensors.zeros((2, -1), x, "int64"),
        lambda x: tensors.reshape(x, (5, 5)),
        lambda x: tensors.reshape(x, (-1, 5)),
        lambda x: tensors.reshape(x, (-1, -1)),
        lambda x: tensors.reshape(x, (-2, -12)),
    ],
)
def test_what_torch_refuses_a_shape_refuses_too(manipulate):
    with pytest.raises((RuntimeError, IndexError)):
        manipulate(X)
    with pytest.raises(WrongProgram, match="cannot give"):
        manipulate(Meta((2, 3, 4)))


@pytest.mark.parametrize(
    "manipulate",
    [
        lambda x: tensors.narrow(x, 1, -2, -1),
        lambda x: tensors.narrow(x, -1, 4, 4),
        lambda x: tensors.reshape(x, (-1, 6)),
        lambda x: tensors.concat([x, x], -1),
    ],
)
def test_what_torch_takes_a_shape_takes_too(manipulate):
    assert tensors.meta_of(manipulate(X)) == manipulate(Meta((2, 3, 4)))
