"""What calibration times in turn: passes as devices compute them."""

from collections import Counter

from emulator.calibration.operations import (
    SEQUENCES,
    random_weights,
    time_operations,
    time_sequence,
    working_layers,
)
from emulator.calibration.shapes import EXTENTS, SHORT
from engine.models import catalogue
from engine.ops.torch_kernels.storage import KVCache

WORKING_SET_BYTES = 120 << 20


def labels(model_name: str, sequence: str, rows: int) -> Counter[str]:
    model, _ = catalogue.resolve(model_name, "random")
    layers = working_layers(model, WORKING_SET_BYTES)
    return Counter(step.label for step in SEQUENCES[sequence](model, layers, rows, "check"))


def test_a_pass_of_one_row_looks_a_token_up_and_ends_with_the_head_as_a_decode_step_does():
    layers = len(working_layers(catalogue.resolve("tinyllama-42m", "random")[0], WORKING_SET_BYTES))
    assert labels("tinyllama-42m", "blocks", 1) == {"embed": 1, "block": layers, "head": 1}
    assert labels("tinyllama-42m", "blocks", 34) == {"embed": 1, "block": layers}


def test_of_divided_layers_all_first_halves_come_before_the_second_ones():
    model = catalogue.resolve("tinyllama-42m", "random")[0]
    layers = len(working_layers(model, WORKING_SET_BYTES))
    found = labels("tinyllama-42m", "halves", 34)
    assert found == {"half of attention": 2 * layers, "half of ffn": 2 * layers, "add": 4 * layers}
    steps = list(SEQUENCES["halves"](model, range(layers), 34, None))
    heads = [(step.op.start, step.op.stop) for step in steps if step.label == "half of attention"]
    half = model.num_heads // 2
    assert heads == [(0, half)] * layers + [(half, 2 * half)] * layers


def test_a_prompt_makes_its_caches_anew_in_every_turn(monkeypatch):
    """A cache that is kept would grow: its rows would count as those of earlier passes."""
    rows = []
    append = KVCache.append

    def noted(cache, keys, values):
        rows.append(cache.rows)
        return append(cache, keys, values)

    monkeypatch.setattr(KVCache, "append", noted)
    time_sequence(random_weights("tiny-gpt2"), "blocks", 8, 0)
    assert rows and set(rows) == {0}


def test_passes_of_many_rows_go_over_fewer_layers_and_two_at_least():
    """A layer of the widest model alone has more weights than a pass of many rows goes over."""
    for extent in EXTENTS.values():
        assert extent.set_bytes(1) == extent.set_bytes(34) == extent.working_set_bytes
        assert extent.set_bytes(128) == extent.prompt_set_bytes <= extent.working_set_bytes
    wide = catalogue.resolve("gpt2-medium", "random")[0]
    assert len(working_layers(wide, 1)) == 2
    assert len(working_layers(wide, SHORT.set_bytes(128))) < len(working_layers(wide, SHORT.set_bytes(1)))


def test_an_encoder_has_no_passes_of_one_row():
    assert time_operations([random_weights("minilm")], rows=(1,)) == []


def test_every_extent_has_sequences_that_there_are_and_small_and_large_models():
    for extent in EXTENTS.values():
        assert set(extent.sequences) <= set(SEQUENCES)
        widths = sorted(hidden for _, hidden, _ in extent.models)
        assert widths[0] <= 128 and widths[-1] >= 1024
        families = {family for family, _, _ in extent.models}
        assert {"llama", "gpt2"} <= families  # layers in one call each, and others
        assert {"bert"} <= families or extent is SHORT  # its layers are of the same kernels
