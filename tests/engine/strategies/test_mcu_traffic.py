"""Bytes between a microcontroller's memories, against a tiling that is carried out, and by hand."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from engine.models import catalogue
from engine.strategies.mcu.traffic import Product, block_traffic, operators

SMALL = st.integers(1, 9)


def carried_out(rows: int, inner: int, cols: int, fitting: int) -> float:
    """The fewest numbers that any tiling with whole rows and columns moves: every tile height and width that
    fits, both orders, with a memory that is filled and emptied tile by tile.
    """
    best: float = inf
    for high in range(1, rows + 1):
        for wide in range(1, cols + 1):
            if high * inner + inner * wide + high * wide > fitting:
                continue
            for is_rows_first in (True, False):
                moved, left, right = rows * cols, None, None
                tiles = [(i, j) for i in range(0, rows, high) for j in range(0, cols, wide)]
                for i, j in sorted(tiles, key=None if is_rows_first else lambda tile: tile[::-1]):
                    if left != i:
                        moved, left = moved + min(high, rows - i) * inner, i
                    if right != j:
                        moved, right = moved + min(wide, cols - j) * inner, j
                best = min(best, moved)
    return best


@given(rows=SMALL, inner=SMALL, cols=SMALL, fitting=st.integers(3, 200))
def test_tiles_move_as_much_as_the_best_tiling_that_is_carried_out(
    rows: int, inner: int, cols: int, fitting: int
) -> None:
    found = carried_out(rows, inner, cols, fitting)
    if found != inf:
        assert Product(rows, inner, cols).tiled_numbers(fitting) == found


def test_the_intermediate_tensors_of_mobilebert_are_those_counted_by_hand() -> None:
    """268 rows of 512 numbers cross 28 times, 4 heads' scores four times."""
    model = catalogue.resolve("mcu-mobilebert", "random")[0]
    moved = block_traffic(model, (0, 4), (0, 512), True, (1, 268, 268), inf)
    assert moved.tensors == 4 * (28 * 268 * 512 + 4 * 4 * 268 * 268)
    assert moved.weights == 4 * 6 * 512 * 512
    assert moved.tiles == moved.tensors + moved.weights, "in a large L1 all cross once"


def test_chips_together_have_the_operators_of_one_but_read_the_same_input_each() -> None:
    model = catalogue.resolve("mcu-tinyllama", "random")[0]

    def numbers(heads: tuple[int, int], columns: tuple[int, int], is_root: bool) -> tuple[int, int]:
        found = list(operators(model, heads, columns, is_root, (1, 16, 16)))
        return sum(one.weight_numbers() for one in found), sum(one.tensor_numbers() for one in found)

    whole = numbers((0, 8), (0, 2048), True)
    halves = numbers((0, 4), (0, 1024), True), numbers((4, 8), (1024, 2048), False)
    assert sum(half[0] for half in halves) == whole[0]
    # Q, K, V and the first matrix read the input, the last matrices of both parts write a partial sum
    assert sum(half[1] for half in halves) == whole[1] + 6 * 16 * 512
