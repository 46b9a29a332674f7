"""Every model that the five papers run is in the catalogue, with the sizes that the papers count with."""

import pytest

from engine.domain.plan import Slice
from engine.models.catalogue import rows
from engine.ops.sizes import kv_bytes_per_row, model_bytes, num_parameters, weight_bytes
from tests.support.one_device import model_of


def part_bytes(name):
    """Bytes of a layer's two parts."""
    return tuple(weight_bytes(model_of(name), Slice(layer=0, part=part)) for part in ("attention", "ffn"))


def matrices(name):
    """Numbers in the matrices of a layer: without norms and biases."""
    model = model_of(name)
    heads = model.num_heads + model.num_kv_heads
    attention = 2 * model.hidden_size * heads * model.head_dim
    return attention + (2 + model.gated_ffn) * model.hidden_size * model.intermediate_size


PAPERS = {
    "Voltage": {"bert-large", "gpt2"},
    "EdgeFormer": {"gpt2-large", "opt-1.3b", "opt-6.7b", "opt-13b"},
    "LIME": {"llama-2-13b", "qwen3-32b", "llama-3.3-70b"},
    "AdaptLink": {"llama-2-7b"},
    "MCU": {"tinyllama-42m", "mcu-tinyllama", "mcu-tinyllama-64h", "mcu-mobilebert"},
}


@pytest.mark.parametrize(("paper", "names"), PAPERS.items())
def test_every_text_model_of_the_papers_is_in_the_catalogue_with_its_source(paper, names):
    found = {row.name: row.source for row in rows()}
    assert names <= found.keys()
    assert all(found[name] for name in names)


@pytest.mark.parametrize(
    ("name", "layers", "layer_mb", "attention_frac", "kv_bytes", "row_bytes", "gb"),
    [
        # the models of LIME (arXiv 2512.21835, table III); sizes computed by hand
        ("llama-2-13b", 40, 634.4, 0.3306, 20480, 10240, 26.0),
        ("qwen3-32b", 64, 975.2, 0.1935, 4096, 10240, 65.5),
        ("llama-3.3-70b", 80, 1711.3, 0.1765, 4096, 16384, 141.1),
        ("gpt2", 12, 28.35, 0.3335, 6144, 3072, 0.5),
    ],
)
def test_sizes_that_lime_s_planner_counts_with(
    name, layers, layer_mb, attention_frac, kv_bytes, row_bytes, gb
):
    model = model_of(name)
    attention, ffn = part_bytes(name)
    assert model.num_layers == layers
    assert (attention + ffn) / 1e6 == pytest.approx(layer_mb, rel=2e-4)
    assert attention / (attention + ffn) == pytest.approx(attention_frac, abs=1e-4)
    assert kv_bytes_per_row(model, model.num_kv_heads) == kv_bytes
    assert model.hidden_size * model.element_bytes == row_bytes
    assert model_bytes(model) / 1e9 == pytest.approx(gb, abs=0.05)


@pytest.mark.parametrize(
    ("name", "shape", "gb"),
    [
        # EdgeFormer, table 1: layers, heads, dimension, model size
        ("gpt2-large", (36, 20, 1280), 3.1),
        ("opt-1.3b", (24, 32, 2048), 5.2),
        ("opt-6.7b", (32, 32, 4096), 26),
        ("opt-13b", (40, 40, 5120), 26),
    ],
)
def test_models_are_as_large_as_edgeformer_s_table_says(name, shape, gb):
    model = model_of(name)
    assert (model.num_layers, model.num_heads, model.hidden_size) == shape
    assert model_bytes(model) / 1e9 == pytest.approx(gb, rel=0.03)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # as counted by transformers from the published config.json
        ("opt-1.3b", 1_315_758_080),
        ("opt-6.7b", 6_658_473_984),
        ("opt-13b", 12_853_473_280),
        ("qwen3-32b", 32_762_123_264),
        ("llama-3.3-70b", 70_553_706_496),
    ],
)
def test_published_models_have_as_many_parameters_as_transformers_makes(name, count):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from engine.models.families.hf_config import config_of_spec

    config = config_of_spec(model_of(name))
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(AutoConfig.for_model(config.pop("model_type"), **config))
    assert num_parameters(model_of(name)) == count == module.num_parameters()


@pytest.mark.parametrize(
    ("name", "heads", "head_dim", "count"),
    [
        # Bochem et al. (DATE 2025), section V: 4E² + 2EF with E = 512 and F = 2048, or F = 512
        ("mcu-tinyllama", 8, 64, 3_145_728),
        ("mcu-tinyllama-64h", 64, 8, 3_145_728),
        ("mcu-mobilebert", 4, 128, 1_572_864),
        # the real one: a gated feed-forward part of 1376 columns (llama2.c's rule), 0.5 % more
        ("tinyllama-42m", 8, 64, 3_162_112),
    ],
)
def test_blocks_of_the_microcontroller_paper_have_its_weights(name, heads, head_dim, count):
    model = model_of(name)
    assert (model.hidden_size, model.num_heads, model.head_dim) == (512, heads, head_dim)
    assert matrices(name) == count


def test_eight_blocks_of_int8_weights_fit_thirty_two_chips_of_two_mebibytes_and_not_sixteen():
    """Bochem et al. (DATE 2025), section V-C: from 32 chips on nothing is read from off the chip."""
    model = model_of("mcu-tinyllama-64h")
    all_blocks = model.num_layers * matrices("mcu-tinyllama-64h")
    assert all_blocks // 32 <= 2**20 < all_blocks // 16


def test_every_model_of_a_paper_is_as_wide_as_that_paper_measures():
    two_bytes = {"opt-13b", "llama-2-7b", "llama-2-13b", "qwen3-32b", "llama-3.3-70b"}
    text = set().union(*PAPERS.values())
    assert {name for name in text if model_of(name).element_bytes == 2} == two_bytes


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # as the models' pages on the Hub count them
        ("qwen2.5-0.5b", 494_032_768),
        ("qwen2.5-7b", 7_615_616_512),
        ("mistral-7b-v0.1", 7_241_732_096),
        ("mistral-7b-v0.3", 7_248_023_552),
        ("gemma-2b", 2_506_172_416),
        ("gemma-2-2b", 2_614_341_888),
        ("gemma-3-1b", 999_885_952),
        ("phi-3-mini-4k", 3_821_079_552),
        ("smollm2-135m", 134_515_008),
        ("smollm2-360m", 361_821_120),
        ("smollm3-3b", 3_075_098_624),
    ],
)
def test_a_public_model_has_the_parameters_that_its_page_counts(name, parameters):
    assert num_parameters(model_of(name)) == parameters
