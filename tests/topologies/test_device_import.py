"""A device's row from a benchmark: its predictions are what was measured, in every form of the output."""

import json

import pytest

from emulator.cli.main import COMMANDS, ENVIRONMENT
from engine.cli import main
from engine.domain.errors import SpecError
from engine.models.catalogue import rows as models
from topologies.benchmarks import parse_benchmark
from topologies.board_command import read_row
from topologies.device_command import device_of
from topologies.presets import preset
from topologies.published import PublishedRate
from topologies.published_runs import compared

COUNT = next(row.num_parameters for row in models() if row.name == "llama-3.2-1b")
SIZE = round(COUNT * 4.5 / 8)
TESTS = [(512, 0, 60.0, 0.6), (0, 128, 9.0, 0.18)]
NAMES = ("model_type", "model_size", "model_n_params", "n_prompt", "n_gen", "n_depth", "avg_ts", "stddev_ts")
OBJECTS = [
    dict(zip(NAMES, ("llama 1B Q4_0", SIZE, COUNT, p, g, 0, rate, deviation), strict=True))
    for p, g, rate, deviation in [*TESTS, (64, 16, 20.0, 1.0)]
]
MARKDOWN = (
    "| model | size | params | backend | threads | test | t/s |\n"
    "| --- | ---: | ---: | --- | --: | --- | ---: |\n"
    f"| llama 1B Q4_0 | {SIZE / 2**20:.3f} MiB | {COUNT / 1e9:.6f} B | CPU | 4 | pp512 | 60.00 ± 0.60 |\n"
    f"| llama 1B Q4_0 | {SIZE / 2**20:.3f} MiB | {COUNT / 1e9:.6f} B | CPU | 4 | tg 128 | 9.00 ± 0.18 |\n"
    f"| llama 1B Q4_0 | {SIZE / 2**20:.3f} MiB | {COUNT / 1e9:.6f} B | CPU | 4 | tg128 @ d512 | 7.0 ± 0.1 |\n"
    "\nbuild: 8cf427ff (5163)\n"
)
FORMS = {
    "json": json.dumps(OBJECTS),
    "jsonl": "\n".join(json.dumps(row) for row in OBJECTS),
    "csv": "\n".join([",".join(NAMES), *(",".join(f'"{row[n]}"' for n in NAMES) for row in OBJECTS)]),
    "md": MARKDOWN,
}
LLAMA_1B = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}
MLPERF = "System,Model,Precision,Scenario,Result,Units\nbox,llama-3.2-1b,int4,SingleStream,9,Tokens/s\n"


@pytest.mark.parametrize("form", FORMS)
def test_every_output_of_llama_bench_has_its_prompts_and_its_decoding_alone(form):
    found = parse_benchmark(FORMS[form], f"x.{form}")
    assert [(m.prompt_tokens, m.new_tokens, m.tokens_per_s, m.deviation) for m in found] == TESTS
    assert all(m.weight_bits == pytest.approx(4.5, rel=1e-3) for m in found)


@pytest.mark.parametrize("like", [None, "raspberry-pi-5"])
def test_predictions_of_the_row_are_what_was_measured(like):
    device, again = device_of(parse_benchmark(FORMS["md"], "x"), "mine", "bench.md", like, 4e9)
    row = PublishedRate("", "", "", "", "", "llama-3.2-1b", "", 4.5, 512, 60.0, 9.0, None, None, 1, "x", "")
    assert {one.what: one.predicted for one in compared(device, row)} == {
        "prompt": pytest.approx(60.0, rel=0.05),
        "decoding": pytest.approx(9.0, rel=0.05),
    }
    assert "derived from bench.md: 2 rates of tokens, each ± 2.0%" in device.source
    assert [line.partition(" tokens/s")[0] for line in again] == [
        "llama 1B Q4_0, prompt: 60",
        "llama 1B Q4_0, decoding: 9",
    ]
    bases = {rate.bits: rate.basis for rate in device.format_rates}
    others = dict.fromkeys((16, 8), "derived from a benchmark")
    assert bases == {4: "fitted to a benchmark", **others}


def test_the_best_of_several_settings_is_what_the_device_can_do():
    slow = [{**row, "avg_ts": row["avg_ts"] / 3} for row in OBJECTS]
    both = parse_benchmark(json.dumps([*slow, *OBJECTS]), "x")
    assert device_of(both, "mine", "x", None, 4e9) == device_of(
        parse_benchmark(FORMS["json"], "x"), "mine", "x", None, 4e9
    )


def test_a_table_in_the_manner_of_mlperf_names_its_model():
    device, _ = device_of(parse_benchmark(MLPERF, "x"), "mine", "x", "raspberry-pi-5")
    assert device.format_rate(4).source and device.memory_bytes == 8e9


@pytest.mark.parametrize(
    ("size", "size_bytes"), [("2.5 GiB", 2.5 * 2**30), ("3 MiB", 3 * 2**20), ("5 KiB", 5 * 2**10)]
)
@pytest.mark.parametrize(("params", "count"), [("1.24 B", 1.24e9), ("89.2 M", 89.2e6)])
def test_units_of_sizes_are_powers_of_1024_and_of_counts_powers_of_1000(size, size_bytes, params, count):
    line = f"| x | {size} | {params} | CPU | 4 | tg128 | 9.00 ± 0.18 |\n"
    (found,) = parse_benchmark("".join(MARKDOWN.splitlines(keepends=True)[:2]) + line, "x")
    assert found.num_parameters == pytest.approx(count)
    assert found.weight_bits == pytest.approx(8 * size_bytes / count)


def test_tests_that_begin_within_the_context_are_left_out():
    deep = json.dumps([*OBJECTS, {**OBJECTS[1], "n_depth": 512, "avg_ts": 7.0}])
    assert [one.tokens_per_s for one in parse_benchmark(deep, "x")] == [60.0, 9.0]


@pytest.mark.parametrize(
    ("precision", "bits"),
    [("FP32", 32), ("fp16", 16), ("bf16", 16), ("fp8", 8), ("int8", 8), ("int4", 4), ("fp4", 4)],
)
def test_a_row_in_the_manner_of_mlperf_is_of_decoding_with_its_precision(precision, bits):
    (found,) = parse_benchmark(MLPERF.replace("int4", precision), "x")
    assert (found.weight_bits, found.prompt_tokens, found.tokens_per_s) == (bits, 0, 9.0)
    assert found.new_tokens > 0


def test_a_device_of_which_only_rates_are_known_has_the_least_memory_rate_and_work_that_they_need():
    device, _ = device_of(parse_benchmark(FORMS["md"], "x"), "mine", "bench.md", None, 4e9)
    # a decoded token reads all weights, at 80 % of the rate; a prompt's token costs two operations per weight
    assert device.memory_byte_per_s == pytest.approx(SIZE * 9.0 / 0.8, rel=0.01)
    assert device.flop_per_s == pytest.approx(2 * COUNT * 60.0, rel=0.01)


def test_the_written_row_is_a_device_of_a_cluster_file(tmp_path, capsys):
    (tmp_path / "b.jsonl").write_text(FORMS["jsonl"])
    out = tmp_path / "row.toml"
    arguments = ["device", "import", f"{tmp_path}/b.jsonl", "--memory", "4e9", "--output", str(out)]
    assert main(arguments, COMMANDS, ENVIRONMENT) == 0
    device = read_row(out, "mine")
    assert device.memory_bytes == 4e9 and device.basis == "derived from a benchmark"
    two = out.read_text() + out.read_text().replace('"my-board"', '"other"')
    two += '[[link]]\na = "my-board"\nb = "other"\nbit_per_s = 1e9\n'
    (tmp_path / "two.toml").write_text('name = "two"\nsource = "my-board"\n' + two)
    asked = ["predict", f"{tmp_path}/two.toml", "--model", "tiny-gpt2", "--strategy", "edgeshard"]
    assert main(asked, COMMANDS, ENVIRONMENT) == 0, capsys.readouterr().err


@pytest.mark.parametrize("like", ["raspberry-pi-5", "jetson-orin-nano", "laptop-core"])
def test_a_row_like_a_preset_says_what_the_table_gave_and_what_is_still_the_presets(like):
    board = preset(like)
    row, _ = device_of(parse_benchmark(FORMS["md"], "x"), "mine", "bench.md", like)
    assert (row.basis, row.assumed_efficiency) == ("derived from a benchmark", None)
    assert row.source.startswith("format_rates derived from bench.md: 2 rates of tokens")
    assert f"; all else is that of {like} ({board.basis_in_words}): {board.source}" in row.source
    said = {"name", "title", "basis", "assumed_efficiency", "source", "format_rates"}
    said |= {"price_usd", "price_source"}  # nobody has said what this board costs
    changed = {name for name, value in row if value != getattr(board, name)}
    assert changed <= said and "format_rates" in changed


def label(name, text=MARKDOWN):
    return text.replace("llama 1B Q4_0", name)


def test_a_board_whose_memory_is_faster_than_that_of_its_like_has_a_faster_memory():
    """Weights of 4.5 bits, 300 times a second: a Raspberry Pi 5 reads 11.6 GB/s."""
    fast = label("llama 1B Q4_0").replace("9.00", "300.00").replace("60.00", "6000.00")
    device, _ = device_of(parse_benchmark(fast, "x"), "mine", "x", "raspberry-pi-5")
    assert device.memory_byte_per_s > 300 * SIZE and "raised to" in device.source
    row = PublishedRate("", "", "", "", "", "llama-3.2-1b", "", 4.5, 512, 6000, 300, None, None, 1, "x", "")
    assert [one.ratio for one in compared(device, row)] == pytest.approx([1, 1], abs=0.05)


def test_a_row_that_misses_the_benchmarks_own_tests_is_refused_and_they_are_shown():
    """No device decodes one model at 9 and at 20 tokens/s."""
    both = json.dumps([*OBJECTS, {**OBJECTS[1], "n_gen": 64, "avg_ts": 20.0}])
    with pytest.raises(
        SpecError, match=r"to 10%: llama 1B Q4_0, decoding: 9 tokens/s measured, 1\d\.\d+ pred"
    ):
        device_of(parse_benchmark(both, "x"), "mine", "x", "raspberry-pi-5")


@pytest.mark.parametrize(
    "name",
    [
        "olmoe A1.7B Q4_K - Medium",
        "qwen3moe 30B.A3B Q4_0",
        "llama 8x7B Q4_0",
        "gpt-oss 20B MXFP4",
        "x 4 experts",
    ],
)
def test_a_mixture_is_no_dense_model_of_as_many_parameters(name):
    with pytest.raises(SpecError, match="is a mixture of experts, and no mixture of the catalogue"):
        device_of(parse_benchmark(label(name), "x"), "mine", "x", "raspberry-pi-5")
    with pytest.raises(SpecError, match=r"a mixture of experts, .* --model llama-3\.2-1b is none"):
        device_of(parse_benchmark(label(name), "x"), "mine", "x", "raspberry-pi-5", None, "llama-3.2-1b")


def test_the_measured_model_may_be_a_directory_with_its_config(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_1B))
    strange = parse_benchmark(label("mine 1.2B Q4_0"), "x")
    device, _ = device_of(strange, "mine", "x", None, 4e9, str(tmp_path))
    known, _ = device_of(strange, "mine", "x", None, 4e9, "llama-3.2-1b")
    assert device.format_rates == known.format_rates


@pytest.mark.parametrize(
    "text",
    [
        MARKDOWN.replace("CPU", "Vulkan,RPC"),
        json.dumps([{**OBJECTS[0], "backends": "CUDA,RPC"}]),
        json.dumps([{**OBJECTS[0], "devices": "RPC0/RPC1"}]),
    ],
)
def test_what_several_machines_have_measured_together_is_no_device(text):
    with pytest.raises(SpecError, match=r"was measured over RPC \(.*\), on several machines"):
        parse_benchmark(text, "x")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("🔶 Pred  170 ms Sync   75 ms | Sent   272 kB Recv   272 kB |  the", "is distributed-llama's log"),
        ("hello", "x: is no benchmark that is known here"),
        ("[]", "x: has no test of a prompt or of decoding alone"),
        ("[{}]", "x, test 1: has no model_type"),
        ('{"model_type"', "x: is no JSON"),
        (MARKDOWN.replace("60.00", "fast"), "x, line 3, t/s: expected a number"),
        (MARKDOWN.replace("MiB", "MB"), "x, line 3: expected a number and one of KiB"),
        (
            MLPERF.replace("SingleStream", "Offline"),
            "x, line 2: is Offline in Tokens/s, expected Single",
        ),
        (MLPERF.replace("int4", "int3"), "x, line 2, Precision: expected one of fp32"),
        (MLPERF.replace(",9,", ",0,"), "x, line 2: expected rates and sizes of more than 0"),
        (MLPERF.replace("Tokens/s", "ms"), "x, line 2: is SingleStream in ms, expected"),
        (json.dumps([{**OBJECTS[0], "model_size": 0}]), "test 1: expected rates and sizes of more than 0"),
    ],
)
def test_a_bad_benchmark_is_refused_with_its_line(text, complaint):
    with pytest.raises(SpecError, match=complaint):
        parse_benchmark(text, "x")


def test_what_a_benchmark_does_not_tell_must_be_given():
    with pytest.raises(SpecError, match="--memory is missing"):
        device_of(parse_benchmark(FORMS["json"], "x"), "mine", "x")
    strange = FORMS["json"].replace(str(COUNT), "123456789012")
    with pytest.raises(SpecError, match="--model, by its name or as a DIRECTORY"):
        device_of(parse_benchmark(strange, "x"), "mine", "x", None, 4e9)
