"""Accelerate's greedy device map against maps that Accelerate 1.15 itself made, and its execution.

`test_accelerate_package.py` compares with the package itself.
"""

from itertools import pairwise

import pytest
import torch

from engine.domain.errors import PlanError
from engine.domain.plan import Slice
from engine.models import catalogue
from engine.ops.sizes import weight_bytes
from engine.strategies.accelerate.device_map import Module, balanced, infer_device_map
from engine.strategies.accelerate.modules import module_tree
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, play, prompts, sends, spec_of, star

MB = 1e6
SMALL = catalogue.resolve("gpt2", "random")[0]
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
    tree = module_tree(SMALL)
    if way == "auto":
        max_bytes = balanced(max_bytes, tree.bytes, tree.block_bytes, tree.mean_leaf_bytes)
        assert {name: round(size / MB, 1) for name, size in max_bytes.items()} == BALANCED
    homes = infer_device_map(tree.modules, max_bytes, tree.ties)
    found = {name.replace("transformer.", "").replace("h.", "h"): home for name, home in homes.items()}
    found["head"] = found.pop("lm_head")
    assert found == {name: str(home) for home, names in expected.items() for name in spelled(names)}


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


def test_modules_that_fit_nowhere_are_counted_with_every_devices_memory():
    model = GPT2.model_copy(update={"num_layers": 12})
    block = sum(weight_bytes(model, Slice(layer=0, part=part)) for part in ("attention", "ffn"))
    cluster = star([1e10] * 2, terminal=True)
    devices = [
        device.model_copy(update={"memory_bytes": size})
        for device, size in zip(cluster.devices, [4.5 * block, 3.5 * block, 4e8], strict=True)
    ]
    cluster = cluster.model_copy(update={"devices": tuple(devices)})
    with pytest.raises(PlanError, match=r"d0 has 154 kB for 3, d1 has 120 kB for 3: 6 are left"):
        plan_of(spec_of("accelerate", model, cluster, device_map="sequential", memory_frac=1.0))


ROW, LOGITS, TOKEN = 32 * 4, 50 * 4, 8
"""Bytes of a hidden row, of a row of logits and of a token's number."""


@pytest.mark.parametrize(
    ("model", "way", "sent"),
    [
        # the tied head is on d0 with the embedding
        (GPT2, "auto", [("d0", "d1", 9 * ROW), ("d1", "d2", 9 * ROW), ("d2", "d0", ROW)]),
        # d0 is spared, so tokens go to the embedding on d1 and the logits come back from there
        (
            GPT2,
            "balanced_low_0",
            [("d0", "d1", 9 * TOKEN), ("d1", "d2", 9 * ROW), ("d2", "d1", ROW), ("d1", "d0", LOGITS)],
        ),
        # an untied head is behind the last layer
        (LLAMA, "auto", [("d0", "d1", 9 * ROW), ("d1", "d0", LOGITS)]),
        (LLAMA, "balanced_low_0", [("d0", "d1", 9 * TOKEN), ("d1", "d2", 9 * ROW), ("d2", "d0", LOGITS)]),
        (BERT, "auto", [("d0", "d1", 9 * ROW), ("d1", "d2", 9 * ROW), ("d2", "d0", 9 * ROW)]),
    ],
)
def test_hidden_states_move_at_each_change_of_device_and_logits_back_from_the_head(model, way, sent):
    trace = play(spec_of("accelerate", model, star([1e10] * 3), rows=9, device_map=way))
    assert [(s.device, s.peer, s.payload_bytes) for s in sends(trace) if s.token == 0] == sent


def test_an_untied_head_is_held_and_computed_where_the_map_has_it():
    spec = spec_of("accelerate", LLAMA, star([1e10] * 3))
    plan, trace = plan_of(spec), play(spec)
    assert [h.device for h in plan.holdings if h.slice.part == "lm_head"] == [1] == [plan.layout.head]
    assert {s.device for s in trace if getattr(s, "name", "") == "head"} == {"d1"}
    assert {s.device for s in trace if getattr(s, "name", "") == "embed"} == {"d0"}


def test_a_terminal_keeps_embedding_and_head():
    plan = plan_of(spec_of("accelerate", LLAMA, star([1e10] * 3, terminal=True)))
    assert (plan.layout.embed, plan.layout.head) == (3, 3)
    assert {h.device for h in plan.holdings if h.slice.layer >= 0} <= {0, 1, 2}


@pytest.mark.parametrize("model", [GPT2, LLAMA], ids=lambda model: model.family)
@pytest.mark.parametrize("way", ["auto", "balanced_low_0", "sequential"])
def test_logits_are_those_of_one_device_wherever_embedding_and_head_are(model, way):
    def logits(name, cluster, **params):
        spec = spec_of(name, model, cluster, **params)
        source, _ = run_in_memory(spec, plan_of(spec), prompts(spec))
        return torch.stack(source.logits[0])

    found = logits("accelerate", star([1e10] * 3), device_map=way)
    torch.testing.assert_close(found, logits("single", star([1e10])), atol=1e-5, rtol=1e-5)


def test_one_device_computes_at_a_time_even_in_a_burst():
    trace = play(spec_of("accelerate", GPT2, star([1e8] * 3), requests=3, pattern="bursty"))
    busy = sorted((s.start_s, s.end_s) for s in trace if getattr(s, "kind", "") == "compute")
    assert all(a[1] <= b[0] + 1e-12 for a, b in pairwise(busy))


def test_the_buffer_is_a_quarter_more_than_the_larger_of_a_block_and_a_mean_leaf():
    # half of 100 bytes, and 1.25 times 20 or 10
    assert balanced({"0": 100, "1": 100}, 100, 10, 20) == {"0": 75, "1": 100}
    assert balanced({"0": 100, "1": 100}, 100, 20, 10) == {"0": 75, "1": 100}


@pytest.mark.parametrize("bits", [8.0, 4.0])
def test_modules_of_quantised_weights_are_as_small_as_the_devices_hold_them(bits):
    model = LLAMA.model_copy(update={"weight_bits": bits})
    tree = module_tree(model)
    pieces = [[Slice(layer=n, part=part) for part in ("attention", "ffn")] for n in range(model.num_layers)]
    held = [sum(weight_bytes(model, piece) for piece in both) for both in pieces]
    assert [atom.bytes for atom in tree.layers_only.atoms] == held
    assert tree.bytes < module_tree(LLAMA).bytes / 2
