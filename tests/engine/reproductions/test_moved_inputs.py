"""What of ours moves when an input does, and which runs are predicted again to find it out."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import topologies
from engine.domain.claim import BreakEven, Compared, Within
from engine.experiments.design.expand import expand
from engine.experiments.design.sources import Sources
from engine.reproductions import moved, verdicts
from engine.reproductions.declared import (
    Input,
    InputField,
    Move,
    inputs_moved_in,
    moves_of,
    stated_in,
)
from engine.reproductions.shipped import experiment, experiments, figure_ids, shipped_rows
from engine.reproductions.states import follows
from engine.reproductions.verdicts import figure_verdicts
from tests.support.small_cases import GPT2, spec_of, star
from tests.support.voltage_rows import ROWS, TIMES, only_bert, voltage

RATIO: dict[str, Any] = {"name": "c", "text": "t", "relation": "ratio"}


def test_ours_moves_with_an_input_that_it_is_proportional_to() -> None:
    one = experiment("voltage-fig4")
    slower = voltage({key: 2 * seconds for key, seconds in TIMES.items()})
    before, after = moved.ours_of(one, ROWS), moved.ours_of(one, slower)
    assert moved.moves(before, after)["voltage.fig4.BERT-Large-Uncased"] == 1.0
    tenth = voltage(TIMES | {("voltage", 6): 0.9, ("megatron", 6): 1.1})
    assert moved.moves(before, moved.ours_of(one, tenth)) == pytest.approx(
        {
            "voltage.fig4.BERT-Large-Uncased": 0.4,  # 25 % less is 10 % less, and not 0.9 of 0.75
            "voltage.fig4.tp": 0.0,  # a claim that did not hold holds
        }
        | dict.fromkeys(("voltage.fig4.ViT", "voltage.fig4.GPT2", "voltage.abs.reduction"), 1.0)
    )
    ended, two, more = moved.Found("no_plan"), moved.Found("finished", 2.0), moved.Found("finished", 2.5)
    found = moved.moves({"a": two, "b": ended, "c": ended}, {"a": more, "b": two, "c": ended})
    assert found == {"a": 1.25, "b": 0.0, "c": 1.0}


def test_a_claim_that_goes_on_holding_moves_by_its_effect_and_one_that_ends_by_all() -> None:
    one = experiment("voltage-fig4")
    claim = Within(
        **RATIO, relative_to={"machines": 1, "strategy": "single"}, low=1.1, high=2, figures=("f",)
    )
    one = one.model_copy(update={"claims": (claim.model_copy(update={"at": {"strategy": "megatron"}}),)})
    slow = voltage({("single", 1): 1.0, ("megatron", 6): 1.5})
    slower = voltage({("single", 1): 1.0, ("megatron", 6): 1.75})
    outside = voltage({("single", 1): 1.0, ("megatron", 6): 2.5})
    before, after = moved.ours_of(one, slow), moved.ours_of(one, slower)
    assert moved.moves(before, after)["f"] == pytest.approx(1.5)
    assert moved.moves(before, moved.ours_of(one, outside))["f"] == 0


def test_comparisons_and_break_evens_move_by_their_numbers_and_not_by_a_flip_alone() -> None:
    """A method that is 10 % faster in place of 20 is still faster: what moved it would not be found."""
    one = experiment("voltage-fig4")
    alone = {"strategy": "single", "machines": 1}
    six: dict[str, Any] = {"name": "c", "text": "t", "b": alone}
    below = Compared(**six, figures=("f",), a={"strategy": "voltage", "machines": 6}, side="below")
    faster = Compared(**six, figures=("g",), a={"strategy": "megatron", "machines": 6}, side="above")
    one = one.model_copy(update={"claims": (below, faster), "published": ()})
    start = moved.ours_of(one, voltage({("single", 1): 1.0, ("voltage", 6): 0.8, ("megatron", 6): 1.2}))
    after = moved.ours_of(one, voltage({("single", 1): 1.0, ("voltage", 6): 0.9, ("megatron", 6): 1.2}))
    assert moved.moves(start, after) == pytest.approx({"f": 0.5, "g": 1.0})

    rates = experiment("adaptlink-bandwidth")
    crossing = next(claim for claim in rates.claims if isinstance(claim, BreakEven))
    rows = shipped_rows(rates)
    found = moved.ours_of(rates, rows)[crossing.figures[0]]
    assert found.number == pytest.approx(1.81e9, rel=0.01)


def test_an_effect_that_is_none_but_for_rounding_moves_with_nothing() -> None:
    one = only_bert()
    ratio = one.published[0].model_copy(update={"relation": "ratio"})
    one = one.model_copy(update={"published": (ratio,)})

    def ours(seconds: float) -> moved.Ours:
        return moved.ours_of(one, voltage({("single", 1): 1.0, ("voltage", 6): seconds}))

    assert moved.moves(ours(1.00002), ours(1.00005)) == {ratio.id: 1.0}
    assert moved.moves(ours(1.00002), ours(1.05)) == {ratio.id: 0.0}


def test_what_is_arithmetic_of_sizes_is_an_input_and_moved_all_the_same() -> None:
    """A plan that does not fit, and bytes of weights, need no run: they were put in with the models."""
    for name, figures_of_sizes in (
        ("edgeformer-fig5", {f"edgeformer.fig6.dev{n}" for n in (1, 2, 3)}),
        ("lime-settings", {f"lime.vc.setting3.{one}" for one in ("edgeshard", "pipeline_parallelism")}),
    ):
        one = experiment(name)
        rows = shipped_rows(one)
        unmoved = {found.id: found for found in figure_verdicts(one, rows, {})}
        assert {unmoved[figure].why for figure in figures_of_sizes} == {verdicts.OF_SIZES}
        assert {unmoved[figure].state for figure in figures_of_sizes} == {"input"}
        assert figures_of_sizes <= verdicts.agreements(one, rows)


@pytest.mark.parametrize("name", ["lime-settings", "mcu-blocks", "voltage-fig5", "adaptlink-bandwidth"])
def test_both_sides_of_every_claim_are_moved(name: str) -> None:
    """A relation without the runs of its baseline is not known, which would look as if it followed."""
    one = experiment(name)
    points = expand(one, Sources(topologies.load, topologies.preset))
    unmoved = Move((Input(name="nothing", experiments=(name,), fields=("flop_per_s",), by=1),))
    rows = shipped_rows(one)
    for claim in one.claims:
        if claim.figures:
            only = moved.about(one, set(claim.figures))
            digests = {point.digest for point in moved.moved_points(only, points, unmoved)}
            some = [row for row in rows if row.digest in digests]
            assert moved.ours_of(only, some) == moved.ours_of(only, rows), claim.name


def test_of_a_speed_up_what_moves_is_what_it_is_above_one() -> None:
    one = only_bert()
    gain = one.published[0].model_copy(update={"relation": "speedup"})
    one = one.model_copy(update={"published": (gain,)})
    slower = voltage({("single", 1): 1.0, ("voltage", 6): 0.9})
    before, after = moved.ours_of(one, ROWS), moved.ours_of(one, slower)
    expected = (1 / 0.9 - 1) / (1 / 0.75 - 1)
    assert moved.moves(before, after) == pytest.approx({gain.id: expected}, abs=1e-4)


def test_an_input_is_moved_on_all_workers_or_links_by_its_factor_and_nothing_else_is() -> None:
    spec = spec_of("gpipe", GPT2, star((1e10, 1e10), terminal=True))
    fields = ("flop_per_s", "disk_byte_per_s", "links.bit_per_s")
    for by in (0.8, 1.25):
        now = moved.moved(spec, Input(name="x", experiments=("e",), fields=fields, by=by)).cluster
        ratios = [device.flop_per_s / 1e10 for device in now.devices]
        assert ratios == pytest.approx([by, by, 1.0]), "the terminal stays"
        for device, before in zip(now.devices[:2], spec.cluster.devices, strict=False):
            assert device.disk_byte_per_s == pytest.approx(by * before.disk_byte_per_s)
            assert device.memory_byte_per_s == before.memory_byte_per_s, "it was not asked for"
        for link, before in zip(now.links, spec.cluster.links, strict=True):
            assert link.bit_per_s == pytest.approx(by * before.bit_per_s)


def test_memory_that_the_system_keeps_can_be_left_out_of_a_moved_run() -> None:
    spec = spec_of("gpipe", GPT2, star((1e10, 1e10), reserved_bytes=5e6))
    now = moved.moved(spec, Input(name="x", experiments=("e",), fields=("reserved_bytes",), by=0)).cluster
    for device, before in zip(now.devices, spec.cluster.devices, strict=True):
        assert (before.reserved_bytes, device.reserved_bytes) == (5e6, 0)
        assert device.memory_bytes == before.memory_bytes


def test_an_input_of_one_method_and_the_bits_of_weights_move_where_there_are_any() -> None:
    bits = Input(name="x", experiments=("e",), fields=("model.weight_bits",), by=2, strategies=("gpipe",))
    model = GPT2.model_copy(update={"weight_bits": 8.0})
    for strategy, weight_bits in (("gpipe", 16.0), ("single", 8.0)):
        assert (
            moved.moved(spec_of(strategy, model, star((1e10, 1e10))), bits).model.weight_bits == weight_bits
        )
    assert moved.moved(spec_of("gpipe", GPT2, star((1e10, 1e10))), bits).model.weight_bits == 0


def test_an_input_to_experiments_without_fields_is_refused_since_it_would_never_be_moved() -> None:
    with pytest.raises(ValueError, match="give both or neither"):
        Input(name="the uplink", experiments=("adaptlink-table1",))
    assert Input(name="a choice", set_by=("x",)).fields == ()


def test_rates_of_model_families_move_with_the_rate_of_computing() -> None:
    rate = {"family": "gpt2", "flop_per_s": 4e9}
    spec = spec_of("single", GPT2, star((1e10,), family_rates=[rate]))
    now = moved.moved(spec, Input(name="x", experiments=("e",), fields=("flop_per_s",))).cluster.devices[0]
    assert [found.flop_per_s for found in now.family_rates] == pytest.approx([0.8 * 4e9])


def test_every_declared_input_was_moved_until_each_agreement_followed_from_one() -> None:
    shipped = moved.shipped_moves()
    for one in experiments():
        found = dict(shipped[one.name])
        left = verdicts.agreements(one, shipped_rows(one))
        for move in moves_of(one.name):
            ratios = found.pop(move.name, {})
            assert left == ratios.keys(), (one.name, move.name)
            left = {figure for figure in left if not follows(ratios[figure], move)}
        assert not found, (one.name, "moved, and not declared")


def test_whatever_could_have_been_put_in_is_moved_or_stated_by_the_paper() -> None:
    for one in experiments():
        moved_fields = {field for put_in in inputs_moved_in(one.name) for field in put_in.fields}
        if figure_ids(one):
            assert moved_fields | stated_in(one.name) == set(get_args(InputField)), one.name
