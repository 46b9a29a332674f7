"""A published rate is tested by what other sources say, never by its own."""

from __future__ import annotations

from bench.published.fit import bare, by_other_sources, each_source
from topologies.published import published_rates
from topologies.published_runs import compared
from topologies.rate_fit import fit

BOARD = "apple-m2-pro"
"""Two sources have rates of it in 8 bits."""


def test_each_rate_is_predicted_by_a_fit_to_the_other_sources_of_its_board() -> None:
    rows = [row for row in published_rates() if row.board == BOARD and 8 <= row.weight_bits < 16]
    assert len({row.page for row in rows}) == 2
    found = {one.row.id: one for one in by_other_sources(rows, each_source(rows)) if one.what == "decoding"}
    for row in rows:
        others = [other for other in rows if other.page != row.page]
        expected = next(one for one in compared(fit(bare(BOARD), others), row) if one.what == "decoding")
        assert found[row.id].predicted == expected.predicted
        assert abs(found[row.id].ratio - 1) > 0.01


def test_a_format_of_few_bits_without_prompts_computes_them_as_the_other_one() -> None:
    """Nobody has published prompts in 8 bits here, and in 16 bits nothing at all."""
    rows = [row for row in published_rates() if row.board == "a100-80gb" and row.weight_bits < 16]
    four = [row for row in rows if row.weight_bits < 6]
    eight = [row for row in rows if row.weight_bits >= 8]
    assert any(row.prompt_tokens_per_s for row in four) and not any(row.prompt_tokens_per_s for row in eight)
    board = bare("a100-80gb")
    both, alone = fit(board, [*four, *eight]), fit(board, eight)
    rates = {rate.bits: rate.flop_per_s for rate in both.format_rates}
    assert rates[8] == rates[4] > board.flop_per_s
    assert rates[16] == board.flop_per_s
    assert {rate.flop_per_s for rate in alone.format_rates} == {board.flop_per_s}
