"""What calibration times in turn: passes as devices compute them."""

from collections import Counter

from emulator.calibration.operations import SEQUENCES, random_weights, time_operations, working_layers
from engine.models import catalogue


def labels(model_name: str, sequence: str, rows: int) -> Counter[str]:
    model, _ = catalogue.resolve(model_name, "random")
    return Counter(step.label for step in SEQUENCES[sequence](model, rows, "check"))


def test_a_pass_of_one_row_looks_a_token_up_and_ends_with_the_head_as_a_decode_step_does():
    layers = len(working_layers(catalogue.resolve("tinyllama-42m", "random")[0]))
    assert labels("tinyllama-42m", "blocks", 1) == {"embed": 1, "block": layers, "head": 1}
    assert labels("tinyllama-42m", "blocks", 34) == {"embed": 1, "block": layers}


def test_of_a_divided_layer_one_half_is_computed_as_on_one_of_two_devices():
    layers = len(working_layers(catalogue.resolve("tinyllama-42m", "random")[0]))
    assert labels("tinyllama-42m", "halves", 34) == {
        "half of attention": layers,
        "half of ffn": layers,
        "add": 2 * layers,
    }


def test_an_encoder_has_no_passes_of_one_row():
    assert time_operations([random_weights("minilm")], rows=(1,)) == []
