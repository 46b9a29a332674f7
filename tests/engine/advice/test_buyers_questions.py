"""The questions: each answer holds by whole predictions, and the next cheaper one does not."""

from __future__ import annotations

from typing import Any

import pytest

from engine.advice.assess import assess, assess_with_interval
from engine.advice.buying import largest_model, to_buy
from engine.advice.changes import ranked, told_once
from engine.advice.owning import (
    YEAR_S,
    YEARS,
    cost_per_token,
    link_to_upgrade,
    longest_context,
    time_to_start,
)
from engine.advice.replies import METHODS, Asker, Prices
from engine.advice.values import Assessment
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import PlanError, SpecError
from engine.domain.model import in_bits
from engine.domain.spec import RunSpec, spec_digest
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.sizes import model_bytes
from engine.runs.predict import predict

MODEL, WEIGHTS = catalogue.resolve("demo-lm")
NO_PRICES = Prices()
NOT_COUNTED = " Boards are not counted for any method: no price of b is known."
ASKER = Asker(
    lambda specs: [assess(spec) for spec in specs],
    lambda specs: [assess_with_interval(spec) for spec in specs],
)


def board(name: str, **changed: Any) -> DeviceSpec:
    fields = {"memory_bytes": 1e9, "memory_byte_per_s": 2e8, "flop_per_s": 1e11, "watts": 5.0, **changed}
    return DeviceSpec.model_validate({"name": name, **fields})


WEAK, WEAK_TOO = (board(name, memory_byte_per_s=1e6) for name in ("weak", "weak-too"))


def base(*devices: DeviceSpec, rates: tuple[float, ...] = ()) -> RunSpec:
    names = [device.name for device in devices]
    rates = rates or (1e9,) * len(names)
    links = [{"a": name, "b": "hub", "bit_per_s": rate} for name, rate in zip(names, rates, strict=True)]
    cluster = ClusterSpec(
        name="drawn", source=names[0], devices=devices, switches=[{"name": "hub"}], links=links
    )
    work = Workload(prompt_tokens=8, new_tokens=12)
    return RunSpec(cluster=cluster, model=MODEL, weights=WEIGHTS, strategy="single", workload=work)


def rows_of(spec: RunSpec) -> tuple[Assessment, ...]:
    specs = [spec.model_copy(update={"strategy": name}) for name in METHODS]
    return told_once(ranked([assess_with_interval(one) for one in specs], "tokens_per_s"))


def rate(spec: RunSpec) -> float:
    found = predict(spec).tokens_per_s
    assert found
    return found


def test_what_it_says_to_buy_reaches_the_rate_and_half_as_many_do_not() -> None:
    slow = board("slow")
    alone = rate(base(slow))
    found = to_buy(base(slow), [slow], 1.3 * alone, NO_PRICES, ASKER)
    assert found.sentence.startswith(
        f"What is there gives at most {alone:.3g} tokens/s, on slow alone. Buy 2 "
    )
    assert "at 10 W, the least power" in found.sentence
    assert found.options[0].figure >= 1.3 * alone
    assert to_buy(base(WEAK), [slow], 0.9 * alone, NO_PRICES, ASKER).options[0].words == "1 × slow"


def test_nothing_is_to_buy_where_a_device_that_is_there_suffices() -> None:
    strong = board("strong", title="Strong Board")
    alone = rate(base(strong))
    found = to_buy(base(WEAK, strong, WEAK_TOO), [board("new", watts=0.1)], 0.9 * alone, NO_PRICES, ASKER)
    assert found.sentence.startswith("Buy nothing for ")
    assert "your Strong Board alone gives " in found.sentence
    assert found.options[0].figure == pytest.approx(alone, rel=0.05)


def test_nothing_is_to_buy_where_what_is_there_suffices_together() -> None:
    one, other = board("one"), board("other")
    wanted = 1.3 * rate(base(one))
    found = to_buy(base(one, other), [board("new", watts=0.1)], wanted, NO_PRICES, ASKER)
    assert "your one and other gives " in found.sentence and found.options[0].figure >= wanted


def test_the_cheapest_by_price_may_be_another_than_the_one_that_draws_least() -> None:
    frugal, cheap = board("frugal", watts=2.0), board("cheap", watts=20.0)
    wanted, prices = 0.9 * rate(base(frugal)), Prices(boards={"frugal": 90, "cheap": 35})
    by_power = to_buy(base(WEAK), [cheap, frugal], wanted, prices, ASKER, "power")
    by_price = to_buy(base(WEAK), [cheap, frugal], wanted, prices, ASKER)
    assert [option.words for option in by_power.options] == ["1 × frugal", "1 × cheap"]
    assert [option.words for option in by_price.options] == ["1 × cheap", "1 × frugal"]
    assert "for 35 dollars, the cheapest" in by_price.sentence


def test_the_fewest_boards_may_be_neither_the_cheapest_nor_the_most_frugal() -> None:
    small, large = board("small", watts=1.0), board("large", memory_byte_per_s=4e8, watts=50.0)
    wanted = 1.3 * rate(base(small))
    options = to_buy(base(WEAK), [small, large], wanted, NO_PRICES, ASKER, "number").options
    assert [option.words for option in options] == ["1 × large", "2 × small"]
    options = to_buy(base(WEAK), [small, large], wanted, NO_PRICES, ASKER, "power").options
    assert [option.words for option in options] == ["2 × small", "1 × large"]


def test_without_a_price_of_a_preset_nothing_is_ranked_by_price() -> None:
    with pytest.raises(SpecError, match="give some, or rank by power"):
        to_buy(base(WEAK), [board("slow")], 1.0, NO_PRICES, ASKER, "price")
    with pytest.raises(SpecError, match="prices: unknown is no preset"):
        to_buy(base(WEAK), [board("slow")], 1.0, Prices(boards={"unknown": 5}), ASKER)


def test_a_card_whose_price_is_without_a_computer_is_said_to_be_alone_unless_another_price_is_given() -> None:
    card = board("card", price_usd=35, price_source="the card alone, at its start: a shop, 2025")
    whole = board("whole", price_usd=90, price_source="with 16 GB: a shop, 2025")
    wanted = 0.9 * rate(base(card))
    found = to_buy(base(WEAK), [whole, card], wanted, NO_PRICES, ASKER)
    assert [option.words for option in found.options] == ["1 × card (the card alone)", "1 × whole"]
    assert "Buy 1 × card (the card alone): gives " in found.sentence
    given = to_buy(base(WEAK), [whole, card], wanted, Prices(boards={"card": 80}), ASKER)
    assert [option.words for option in given.options] == ["1 × card", "1 × whole"]


def test_boards_have_their_published_prices_unless_others_are_given() -> None:
    cheap, dear, unknown = board("cheap", price_usd=35), board("dear", price_usd=90), board("unknown")
    wanted = 0.9 * rate(base(cheap))
    by_default = to_buy(base(WEAK), [dear, cheap, unknown], wanted, NO_PRICES, ASKER)
    assert [option.words for option in by_default.options] == ["1 × cheap", "1 × dear"]
    assert by_default.sentence.endswith(" Left out for want of a price: 1 of 3 presets.")
    given = to_buy(base(WEAK), [dear, cheap, unknown], wanted, Prices(boards={"dear": 5}), ASKER)
    assert "1 × dear" in given.sentence and "for 5 dollars" in given.sentence


def test_what_boards_give_for_a_dollar_and_a_joule_is_that_of_all_of_them() -> None:
    pair = board("slow", price_usd=40)
    found = to_buy(base(pair), [pair], 1.3 * rate(base(pair)), NO_PRICES, ASKER)
    two = base(*(pair.model_copy(update={"name": name}) for name in ("board-1", "board-2")))
    option = found.options[0]
    whole = predict(two.model_copy(update={"strategy": option.strategy}))
    assert option.words == "2 × slow" and option.tokens_per_s_per_usd == pytest.approx(option.figure / 80)
    assert option.tokens_per_j == pytest.approx(12 / whole.energy_j, rel=0.02)
    assert f"That is {option.figure / 80:.3g} tokens/s per dollar and " in found.sentence


def test_no_board_is_said_where_none_reaches_the_rate() -> None:
    found = to_buy(base(board("slow")), [board("slow")], 1e6, NO_PRICES, ASKER)
    assert found.sentence.endswith(
        " on slow alone. No preset reaches 1e+06 tokens/s of demo-lm, up to 8 of a kind on links of 1 Gbit/s."
    )


def test_a_board_from_a_data_sheet_has_an_interval_around_its_rate() -> None:
    sheet = board("sheet", basis="data sheet", assumed_efficiency=0.5)
    (option,) = to_buy(base(WEAK), [sheet], 0.9 * rate(base(sheet)), NO_PRICES, ASKER).options
    assert option.low is not None and option.high is not None
    assert option.low < option.figure < option.high


def test_the_largest_model_reaches_the_rate_and_the_next_larger_does_not() -> None:
    models = {name: catalogue.resolve(name, "random") for name in ("tiny-gpt2", "demo-lm", "gpt2")}
    sizes = sorted(model_bytes(model) for model, _ in models.values())
    assert model_bytes(models["demo-lm"][0]) == sizes[1]
    spec = base(board("a"), board("b"))
    rates = {
        name: max(row.tokens_per_s or 0.0 for row in rows_of(spec.model_copy(update={"model": model})))
        for name, (model, _) in models.items()
    }
    between = (rates["demo-lm"] * rates["gpt2"]) ** 0.5
    found = largest_model(spec, models, between, ASKER)
    assert found.options[0].words.startswith("demo-lm")
    assert found.options[0].figure == pytest.approx(rates["demo-lm"])


def test_the_slow_link_is_the_one_to_upgrade() -> None:
    tight = board("a", memory_bytes=0.7 * model_bytes(MODEL))
    spec = base(tight, tight.model_copy(update={"name": "b"}), rates=(1e9, 1e6))
    found = link_to_upgrade(spec, rows_of(spec), "tokens_per_s", ASKER)
    assert found.sentence.startswith("b--hub with 10 Mbit/s: ")
    upgraded = base(*spec.cluster.devices, rates=(1e9, 1e7))
    name = found.options[0].strategy
    gain = max(row.tokens_per_s or 0 for row in rows_of(upgraded)) / max(
        row.tokens_per_s or 0 for row in rows_of(spec)
    )
    assert name in METHODS and found.options[0].figure == pytest.approx(gain, rel=1e-6)


def test_no_link_is_worth_it_where_one_device_does_all() -> None:
    spec = base(board("a", memory_byte_per_s=1e11), board("b"), rates=(1e6, 1e6))
    assert link_to_upgrade(spec, rows_of(spec), "tokens_per_s", ASKER).sentence.startswith(
        "None: no single link"
    )


def test_a_token_costs_the_energy_of_the_run_over_its_tokens() -> None:
    spec = base(board("a"))
    found = cost_per_token(spec, rows_of(spec), NO_PRICES)
    whole = predict(spec)
    assert found.unit == "J"
    assert found.options[0].figure == pytest.approx(whole.energy_j / 12, rel=0.02)


def test_a_million_tokens_cost_boards_over_three_years_and_energy() -> None:
    spec = base(board("a"))
    found = cost_per_token(spec, rows_of(spec), Prices(boards={"a": 100}, per_kwh=0.3))
    joules = cost_per_token(spec, rows_of(spec), NO_PRICES).options[0].figure
    assert f"{1e6 * joules / 3.6e6:.3g} kWh per million tokens" in found.sentence
    by_hand = 1e6 * (100 / (YEARS * YEAR_S * rate(spec)) + joules / 3.6e6 * 0.3)
    assert found.options[0].figure == pytest.approx(by_hand, rel=0.02)


def test_a_device_without_a_price_is_an_error_where_another_is_given_one() -> None:
    spec = base(board("a"), board("b"))
    with pytest.raises(SpecError, match="prices: a has none"):
        cost_per_token(spec, rows_of(spec), Prices(boards={"b": 1}))
    with pytest.raises(SpecError, match="prices: c is no device of drawn"):
        cost_per_token(spec, rows_of(spec), Prices(boards={"c": 1}))


def test_a_token_costs_what_the_devices_own_prices_say_unless_one_has_none() -> None:
    own = base(board("a", price_usd=100))
    given = cost_per_token(base(board("a")), rows_of(own), Prices(boards={"a": 100}))
    assert cost_per_token(own, rows_of(own), NO_PRICES) == given
    both = base(board("a", price_usd=100), board("b"))
    found = cost_per_token(both, rows_of(both), NO_PRICES)
    worth = {option.words.partition(" on ")[2]: option.tokens_per_s_per_usd for option in found.options}
    assert worth["a"] == pytest.approx(rate(base(board("a"))) / 100, rel=0.02) and worth["a, b"] is None
    assert found.unit == "J" and found.sentence.endswith(NOT_COUNTED)


def test_boards_are_counted_for_no_method_where_one_has_no_price() -> None:
    """Board a costs a hundred dollars and b nobody knows what: energy of both, at 0.3 dollars, by hand."""
    both = base(board("a", price_usd=100, watts=5.0), board("b", watts=1.0))
    rows = rows_of(both)
    found = cost_per_token(both, rows, Prices(per_kwh=0.3))
    by_hand = {row.strategy: (row.energy_j or 0.0) / 12 * 1e6 / 3.6e6 * 0.3 for row in rows if not row.like}
    assert {option.strategy: option.figure for option in found.options} == pytest.approx(by_hand)
    assert len({row.devices for row in rows}) > 1, "some of them use a alone"
    assert found.options[0].strategy == min(by_hand, key=lambda name: by_hand[name])
    assert "dollars per million tokens" in found.sentence and "boards over" not in found.sentence
    assert found.sentence.endswith(NOT_COUNTED)


def test_a_price_changes_no_run() -> None:
    own = base(board("a", price_usd=100, price_source="a shop, 2026"))
    assert spec_digest(own) == spec_digest(base(board("a")))


def with_sizes(spec: RunSpec, name: str, prompt_tokens: int, together: int = 1) -> RunSpec:
    pattern = {"requests": together, "pattern": "bursty"} if together > 1 else {}
    work = Workload(prompt_tokens=prompt_tokens, new_tokens=spec.workload.new_tokens, **pattern)
    params = {"planner": "paper"} if name == "megatron" else {}
    return spec.model_copy(update={"strategy": name, "params": params, "workload": work})


def has_prediction(spec: RunSpec) -> bool:
    try:
        return predict(spec).latency_s > 0
    except PlanError:
        return False


def test_the_longest_context_and_the_most_requests_have_a_plan_and_one_more_has_none() -> None:
    short = base(board("one", memory_bytes=model_bytes(MODEL) + 1e6))
    reply = longest_context(short)
    longest = round(reply.options[-1].figure)
    together = int(reply.sentence.split("; or ")[-1].split()[0].replace(",", ""))
    assert reply.sentence.count("at once)") == 3 and 12 < longest < MODEL.max_positions
    for sizes, more in (((longest - 12,), (longest - 11,)), ((8, together), (8, together + 1))):
        for name in METHODS:
            with pytest.raises(PlanError, match="needs"):
                predict(with_sizes(short, name, *more))
        assert any(has_prediction(with_sizes(short, name, *sizes)) for name in METHODS)


def test_fewer_bits_leave_room_for_a_longer_context() -> None:
    room = model_bytes(in_bits(MODEL, 8)) + 1e6
    figures = [one.figure for one in longest_context(base(board("one", memory_bytes=room))).options]
    assert figures[0] > figures[1] > figures[2] == 0


def test_weights_start_between_all_at_once_and_one_board_after_another() -> None:
    """Three equal links of 100 Mbit/s: the source sends both boards' weights over its own one."""
    half = base(
        *(board(name, memory_bytes=0.6 * model_bytes(MODEL)) for name in "abc"), rates=(1e8, 1e8, 5e7)
    )
    reply = time_to_start(half, rows_of(half), "tokens_per_s")
    times = sorted(one.figure for one in reply.options)
    sizes = [one.words.split(" to ") for one in reply.options]
    assert {name for _, name in sizes} <= {"b", "c"}
    for one in reply.options:
        size, name = one.words.split(" to ")
        number, unit = size.split()
        by_hand = float(number) * {"kB": 1e3, "MB": 1e6}[unit] * 8 * 1514 / 1448 / {"b": 1e8, "c": 5e7}[name]
        assert one.figure == pytest.approx(by_hand, rel=0.01)
    assert reply.sentence.endswith("is busiest, or one board after another.")
    assert sum(times) >= times[-1]


def test_a_board_that_holds_all_waits_for_nothing() -> None:
    alone = base(board("one"))
    assert time_to_start(alone, rows_of(alone), "tokens_per_s").sentence.startswith("No time: ")
