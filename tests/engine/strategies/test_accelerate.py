"""Accelerate's greedy device map against maps that Accelerate 1.15 itself made, and its execution."""

from itertools import pairwise

import pytest

from engine.domain.errors import PlanError
from engine.domain.plan import Slice
from engine.models import catalogue
from engine.ops.sizes import model_bytes, weight_bytes
from engine.strategies.accelerate.device_map import Module, balanced, infer_device_map
from engine.strategies.accelerate.strategy import num_leaves
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, play, sends, spec_of, star

MB = 1e6
SMALL = catalogue.resolve("gpt2", "random")[0]
BLOCK_BYTES = sum(weight_bytes(SMALL, Slice(layer=0, part=part)) for part in ("attention", "ffn"))
TREE = [
    Module(
        "transformer",
        children=(
            Module("wte", SMALL.vocab_size * SMALL.hidden_size * 4),
            Module("wpe", SMALL.max_positions * SMALL.hidden_size * 4),
            Module("h", children=tuple(Module(f"h{n}", BLOCK_BYTES) for n in range(12))),
            Module("ln_f", 2 * SMALL.hidden_size * 4),
        ),
    ),
    Module("head"),
]
BALANCED = {"0": 201.4, "1": 201.4, "2": 400.0}
ROWS = [
    ("sequential", [400, 400, 400], {0: "wte head wpe h0-h6", 1: "h7-h11 ln_f"}),
    ("auto", [400, 400, 400], {0: "wte head wpe", 1: "h0-h6", 2: "h7-h11 ln_f"}),
    ("sequential", [250, 150, 400], {0: "wte head wpe h0-h1", 1: "h2-h6", 2: "h7-h11 ln_f"}),
    (
        "sequential",
        [250, 100, 100, 800],
        {0: "wte head wpe h0-h1", 1: "h2-h4", 2: "h5-h7", "cpu": "h8-h11 ln_f"},
    ),
]


def spelled(names):
    """ "h0-h2 ln_f" → [h0, h1, h2, ln_f]."""
    for name in names.split():
        first, _, last = name.partition("-")
        yield from [f"h{n}" for n in range(int(first[1:]), int(last[1:]) + 1)] if last else [first]


@pytest.mark.parametrize(("way", "sizes", "expected"), ROWS)
def test_gpt2_is_placed_as_accelerate_places_it(way, sizes, expected):
    names = ["0", "1", "2", "cpu"][: len(sizes)]
    max_bytes = dict(zip(names, [size * MB for size in sizes], strict=True))
    if way == "auto":
        total = model_bytes(SMALL)
        max_bytes = balanced(max_bytes, total, BLOCK_BYTES, total // num_leaves(SMALL))
        assert {name: round(size / MB, 1) for name, size in max_bytes.items()} == BALANCED
    homes = infer_device_map(TREE, max_bytes, ties={"wte": "head"})
    assert homes == {name: str(home) for home, names in expected.items() for name in spelled(names)}


@pytest.mark.parametrize(("way", "sizes", "expected"), ROWS[:3])
def test_a_plan_has_the_same_layers_on_the_same_devices(way, sizes, expected):
    cluster = star([1e10] * 3)
    devices = [
        device.model_copy(update={"memory_bytes": size * MB})
        for device, size in zip(cluster.devices, sizes, strict=True)
    ]
    cluster = cluster.model_copy(update={"devices": tuple(devices)})
    plan = plan_of(spec_of("accelerate", SMALL, cluster, device_map=way, memory_frac=1.0))
    layers = {
        home: [name for name in spelled(names) if name[1:].isdigit()] for home, names in expected.items()
    }
    stages = {s.device: [f"h{n}" for n in range(s.start, s.stop)] for s in plan.layout.stages}
    assert stages == {home: names for home, names in layers.items() if names}


def test_a_module_that_fits_whole_is_not_split_and_keeps_no_room_for_its_own_blocks():
    tree = [Module("layers", children=tuple(Module(str(n), 10) for n in range(4)))]
    assert set(infer_device_map(tree, {"0": 40, "1": 40}).values()) == {"0"}
    # one byte less, and the first device keeps room for a block that could visit
    split = infer_device_map(tree, {"0": 39, "1": 40})
    assert [split[str(n)] for n in range(4)] == ["0", "0", "1", "1"]


def test_the_pointer_never_goes_back_to_a_device_with_room():
    tree = [Module("a", 10), Module("large", 50), Module("b", 5)]
    assert infer_device_map(tree, {"0": 65, "1": 60}) == {"a": "0", "large": "0", "b": "0"}
    assert infer_device_map(tree, {"0": 62, "1": 60}) == {"a": "0", "large": "1", "b": "1"}
    assert infer_device_map(tree, {"0": 62, "1": 52})["b"] == "disk"


def test_sparing_the_first_device_leaves_it_what_the_others_cannot_take():
    assert balanced({"0": 100, "1": 100, "2": 100}, 120, 8, 1, True) == {"0": 0, "1": 70, "2": 100}
    assert balanced({"0": 100, "1": 50, "2": 40}, 120, 8, 1, True) == {"0": 30, "1": 50, "2": 40}
    assert balanced({"0": 100}, 120, 8, 1, True) == {"0": 100}


@pytest.mark.parametrize(
    ("model", "expected"), [(GPT2, 2 + 3 * 6 + 1), (LLAMA, 1 + 3 * 9 + 3), (BERT, 4 + 3 * 8)]
)
def test_leaves_are_counted_as_hugging_face_has_them(model, expected):
    assert num_leaves(model) == expected


def test_layers_that_fit_nowhere_are_counted_with_every_devices_memory():
    model = GPT2.model_copy(update={"num_layers": 12})
    block = sum(weight_bytes(model, Slice(layer=0, part=part)) for part in ("attention", "ffn"))
    cluster = star([1e10] * 2, terminal=True)
    devices = [
        device.model_copy(update={"memory_bytes": size})
        for device, size in zip(cluster.devices, [4.5 * block, 3.5 * block, 4e8], strict=True)
    ]
    cluster = cluster.model_copy(update={"devices": tuple(devices)})
    with pytest.raises(PlanError, match=r"needs 12 layers .* MB for 3, d1 has 0.1 MB for 3: 6 are left"):
        plan_of(spec_of("accelerate", model, cluster, device_map="sequential", memory_frac=1.0))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
def test_the_hidden_state_moves_at_each_change_of_device_and_back_to_the_head(model):
    rows, row = 9, model.hidden_size * 4
    trace = play(spec_of("accelerate", model, star([1e10] * 3), rows=rows, device_map="balanced_low_0"))
    used = [
        s.device
        for s in plan_of(
            spec_of("accelerate", model, star([1e10] * 3), rows=rows, device_map="balanced_low_0")
        ).layout.stages
    ]
    chain = [0, *(rank for rank in used if rank), 0]
    prompt = [(s.device, s.peer, s.payload_bytes // row) for s in sends(trace) if s.token == 0]
    out = 1 if model.causal else rows
    sizes = [rows] * (len(chain) - 2) + [out]
    assert len(chain) > 2 and prompt == [
        (f"d{a}", f"d{b}", size) for (a, b), size in zip(pairwise(chain), sizes, strict=True)
    ]


def test_one_device_computes_at_a_time_even_in_a_burst():
    trace = play(spec_of("accelerate", GPT2, star([1e8] * 3), requests=3, pattern="bursty"))
    busy = sorted((s.start_s, s.end_s) for s in trace if getattr(s, "kind", "") == "compute")
    assert all(a[1] <= b[0] + 1e-12 for a, b in pairwise(busy))


def test_the_buffer_is_a_quarter_more_than_the_larger_of_a_block_and_a_mean_leaf():
    # half of 100 bytes, and 1.25 times 20 or 10
    assert balanced({"0": 100, "1": 100}, 100, 10, 20) == {"0": 75, "1": 100}
    assert balanced({"0": 100, "1": 100}, 100, 20, 10) == {"0": 75, "1": 100}
