"""Published figures that are no result of a run: sizes of models and devices, formulas, plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import topologies
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.sizes import model_bytes, weight_bytes
from engine.reproductions.coverage import figures_of, rule_of, rules
from engine.reproductions.figures import figures
from engine.strategies.edgeformer.table_size import CAPACITY, entry_bytes
from engine.strategies.registry import strategy
from tests.support.small_cases import BERT, GPT2, play, sends, spec_of, star

NAMES = {
    "GPT2-L": "gpt2-large",
    "OPT-1.3B": "opt-1.3b",
    "OPT-6.7B": "opt-6.7b",
    "OPT-13B (FP16)": "opt-13b",
    "llama2-13b": "llama-2-13b",
    "qwen3-32b": "qwen3-32b",
    "llama3.3-70b": "llama-3.3-70b",
}
PRESETS = {
    "xavier_nx_16gb": "jetson-xavier-nx-16",
    "agx_orin_32gb": "jetson-agx-orin-32",
    "agx_orin_64gb": "jetson-agx-orin-64",
}
REGIMES = {
    "off-chip weights needed": "streamed",
    "double-buffered from L3": "double-buffered",
    "all weights on chip": "resident",
}
ELEMENTS: dict[str, Callable[[int, int, int], float]] = {
    "(K-1)*N*F/K": lambda k, n, f: (k - 1) * n * f / k,
    "4*(K-1)*N*F/K": lambda k, n, f: 4 * (k - 1) * n * f / k,
}
ORDERS: dict[str, Callable[[int, int, int, int], bool]] = {
    "1/P - 1/N > (F-F_H)/(F*F_H)": lambda p, n, f, f_h: (
        Fraction(1, p) - Fraction(1, n) > Fraction(f - f_h, f * f_h)
    )
}
"""The published formulas, by their text."""


def model_of(name: str) -> ModelSpec:
    return catalogue.resolve(name, "random")[0]


def sizes() -> Iterator[tuple[str, Any]]:
    for published, name in NAMES.items():
        model = model_of(name)
        table = "edgeformer.t1" if published[:3] in ("GPT", "OPT") else "lime.tab3"
        yield f"{table}.{published}.layers", model.num_layers
        yield f"{table}.{published}.heads", model.num_heads
        yield f"{table}.{published}.attention_heads", model.num_heads
        yield f"{table}.{published}.kv_heads", model.num_kv_heads
        yield f"{table}.{published}.d_model", model.hidden_size
        yield f"{table}.{published}.hidden_size", model.hidden_size
        yield f"{table}.{published}.model_size", pytest.approx(model_bytes(model) / 1e9, rel=0.03)


def devices() -> Iterator[tuple[str, Any]]:
    for published, name in PRESETS.items():
        preset = topologies.preset(name)
        yield f"lime.tab2.{published}.memory", preset.memory_bytes / 1e9
        yield f"lime.tab2.{published}.power_mode", preset.watts
        for environment in ("E1", "E2", "E3"):
            cluster = topologies.load(f"papers/lime-{environment.lower()}")
            number = sum(device.title == preset.title for device in cluster.devices)
            yield f"lime.tab4.{environment}.{published}", number
    for rank, device in enumerate(topologies.load("papers/adaptlink-5").devices):
        yield f"adaptlink.setup.memory.{rank}", device.memory_bytes / 1e9


def formulas() -> Iterator[tuple[str, Any]]:
    """The formula's text where evaluating it gives what the simulated world sends or the planner compares."""
    model = BERT.model_copy(update={"num_layers": 2})
    sent = {}
    for name in ("voltage", "megatron"):
        for number in (2, 4):
            params = {"all_reduce": "ring"} if name == "megatron" else {}
            trace = play(spec_of(name, model, star([1e10] * number, terminal=True), rows=16, **params))
            in_layer = [span.payload_bytes for span in sends(trace) if span.layer == 0]
            sent[name, number] = sum(in_layer) / number / model.element_bytes
    for published, name in (("voltage", "voltage"), ("tp", "megatron")):
        text = str(figures()[f"voltage.secVC.{published}"].value)
        same = all(ELEMENTS[text](number, 16, model.hidden_size) == sent[name, number] for number in (2, 4))
        yield f"voltage.secVC.{published}", text if same else sent
    yield "voltage.abs.comm", sent["megatron", 4] / sent["voltage", 4]
    yield "voltage.thm2", theorem_2()


def theorem_2() -> str:
    """The published condition, if the planner reorders exactly where it holds, for divisible sizes."""
    from engine.strategies.voltage.positions import reorders

    text = str(figures()["voltage.thm2"].value)
    for keys in range(2, 40):
        for rows in range(1, keys + 1):
            if ORDERS[text](rows, keys, GPT2.hidden_size, GPT2.head_dim) != reorders(GPT2, rows, keys):
                return f"another order for {rows} of {keys} rows"
    return text


def plans() -> Iterator[tuple[str, Any]]:
    for phase in ("ar", "pr"):
        for number in (1, 2, 4, 8, 16, 32, 64):
            published = figures()[f"mcu_tp.{phase}.regime{number}"]
            regime = regime_of_chips(number)
            same = REGIMES[str(published.value)] == regime
            yield published.id, published.value if same else regime
    ours = play(spec_of("mcu", BERT, star([1e10] * 4), rows=8))
    in_block = [span for span in sends(ours) if span.layer == 1]
    yield "mcu_tp.sync", len(in_block) / (2 * (4 - 1))
    mcu, voltage = (plan_of(name, star([1e10] * 4), BERT) for name in ("mcu", "voltage"))
    yield "mcu_tp.dup", duplicated_bytes(mcu)
    for system, plan in (("Ours", mcu), ("When the Edge Meets Transformers", voltage)):
        yield f"mcu_tp.table1.{system}.dup", duplicated_bytes(plan) > 0
        yield f"mcu_tp.table1.{system}.pipelining", pipelines(plan)


@cache
def regime_of_chips(number: int) -> str:
    cluster = topologies.load("mcu-64")
    cluster = cluster.without(cluster.workers[number:])
    return str(plan_of("mcu", cluster, model_of("mcu-tinyllama-64h")).layout.regime)


def plan_of(name: str, cluster: ClusterSpec, model: ModelSpec) -> Plan[Any]:
    chosen = strategy(name)
    new_tokens = 2 if model.causal else 0
    workload = Workload(prompt_tokens=16, new_tokens=new_tokens)
    return chosen.plan(cluster, model, workload, chosen.Params())


def duplicated_bytes(plan: Plan[Any]) -> int:
    """Bytes of weights of the second layer that are held more than once."""
    held = sum(weight_bytes(BERT, one.slice) for one in plan.holdings if one.slice.layer == 1)
    once = sum(
        weight_bytes(BERT, piece) for piece in {one.slice for one in plan.holdings} if piece.layer == 1
    )
    return held - once


def pipelines(plan: Plan[Any]) -> bool:
    """Whether some device computes no part of some layer."""
    layers = {one.slice.layer for one in plan.work if one.slice.layer >= 0}
    return any(
        not any(one.device == rank and one.slice.layer == layer for one in plan.work)
        for rank in {one.device for one in plan.work if one.slice.layer >= 0}
        for layer in layers
    )


def ours() -> dict[str, Any]:
    return {**dict(sizes()), **dict(devices()), **dict(formulas()), **dict(plans())}


ELSEWHERE = {
    "lime.s1.mem_70b",
    "adaptlink.ffn_share",
    "edgeformer.fig6.mt",
    "adaptlink.cloud.bandwidth",
} | {one for one in figures() if one.startswith(("lime.setup.", "lime.vc.oot.")) or one.endswith(".rb")}
"""Figures that the tests below compare one by one, or that are inputs of experiment files."""


def test_every_checked_figure_is_what_the_project_has() -> None:
    with_value = [rule for rule in rules() if rule.kind in ("put in", "checked")]
    checked = {one for rule in with_value for one in figures_of(rule)} - ELSEWHERE
    found = ours()
    assert checked <= found.keys()
    assert [one for one in sorted(checked) if figures()[one].value != found[one]] == []


def test_the_largest_model_needs_at_least_the_memory_that_lime_states() -> None:
    assert model_bytes(model_of("llama-3.3-70b")) / 1e9 >= figures()["lime.s1.mem_70b"].value == 130


def test_the_mapping_table_is_smaller_than_edgeformer_states() -> None:
    """At most 0.5 GB per device: the fullest table of OPT-13B's 40 blocks on three devices."""
    largest_bytes = CAPACITY * entry_bytes(model_of("opt-13b")) * 14
    assert largest_bytes / 1e9 <= figures()["edgeformer.fig6.mt"].value == 0.5


FIGURE_6 = {64: 16, 128: 8, 256: 4}
"""Voltage, figure 6: columns of a head → heads of the layer, which is 1,024 wide."""


def products(rows: int, keys: int, wide: int) -> tuple[int, int]:
    """Multiplications of one head's attention for `rows` of `keys` positions: in the usual order, and in the
    one without K and V of all positions.
    """
    hidden = wide * FIGURE_6[wide]
    naive = rows * hidden * wide + 2 * keys * hidden * wide + 2 * rows * keys * wide
    return naive, 3 * rows * hidden * wide + 2 * rows * keys * hidden


def test_what_reordering_attention_saves_follows_from_the_number_of_parts_which_the_text_does_not_say() -> (
    None
):
    """Voltage, figure 6: up to 3.4 times as fast with 4 heads of 256 and, here, 300 positions."""
    assert figures()["voltage.fig6.max"].value == 3.4
    rule = rule_of("voltage.fig6.max")
    assert rule is not None and rule.kind == "left out"
    for parts, gain in ((6, 2.5), (8, 3.3), (10, 4.0)):
        naive, reordered = products(round(300 / parts), 300, 256)
        assert naive / reordered == pytest.approx(gain, abs=0.06)
        assert f"{gain} " in rule.reason, "the reason has these numbers"


@pytest.mark.parametrize("keys", [100, 200, 300])
def test_attention_in_the_usual_order_stops_getting_faster_and_reordered_goes_on_linearly(keys: int) -> None:
    """The sweep of figure 6: speed-ups over the whole layer on 1 to 10 devices, for three kinds of heads."""
    gaps = []
    for wide, heads in FIGURE_6.items():
        whole = products(keys, keys, wide)[0]
        shares = [products(keys // number, keys, wide) for number in (1, 2, 5, 10)]
        usual, best = [whole / one[0] for one in shares], [whole / min(one) for one in shares]
        assert best[0] == 1 and usual[0] == 1, "one device keeps the usual order"
        assert usual == sorted(usual) and usual[-1] < 1 + (wide * heads / 2 + keys) / (wide * heads)
        reordered = [whole / one[1] for one in shares]
        assert reordered[3] == pytest.approx(2 * reordered[2]), "twice the devices, twice as fast"
        gaps.append(best[3] / usual[3])
    assert gaps == sorted(gaps), "the more columns a head has, the more it saves"


@pytest.mark.parametrize(("name", "percent"), [("llava-7b", 66.8), ("llava-13b", 66.8), ("llava-34b", 78.9)])
def test_the_feed_forward_part_computes_less_of_a_layer_than_adaptlink_states(
    name: str, percent: float
) -> None:
    """About 90 % are published. Counted are products of one row with matrices, not with the KV cache."""
    model = model_of(name)
    wide = model.num_heads + model.num_kv_heads
    attention = 2 * model.hidden_size * wide * model.head_dim
    ffn = 3 * model.hidden_size * model.intermediate_size
    assert 100 * ffn / (ffn + attention) == pytest.approx(percent, abs=0.2)
    assert figures()["adaptlink.ffn_share"].value == 90
    rule = rule_of("adaptlink.ffn_share")
    assert rule is not None and rule.ours is not None and rule.ours <= percent
