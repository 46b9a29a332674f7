"""The reference: computed apart, once, from the same weights, and again when anything changes."""

import errno
import json
import os
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.domain.workload import Workload
from engine.models.inputs import prompts
from engine.models.inputs.prompts import requests_of
from engine.models.reference import kept, teacher_forcing, transformers_outputs
from tests.support.one_device import spec_of


@pytest.fixture
def compute_apart(tmp_path, in_a_copy):
    """`compute_apart(spec, tokens)`: the sentence of the error, or ""; `tmp_path` is the cache. The process
    computes those of other tests, too.
    """

    def compute(spec, tokens):
        (tmp_path / "spec.json").write_text(spec.model_dump_json())
        (tmp_path / "tokens.json").write_text(json.dumps(tokens))
        in_a_copy(
            "one_reference", tmp_path / "spec.json", tmp_path / "tokens.json", tmp_path, tmp_path / "said"
        )
        return (tmp_path / "said").read_text()

    return compute


@pytest.fixture
def known(tmp_path, monkeypatch):
    """`known(spec, tokens)`: their reference, which is in the cache."""
    monkeypatch.setattr(teacher_forcing, "run_apart", lambda *_, **more: pytest.fail("computed again"))
    return lambda spec, tokens: teacher_forcing.reference_after(spec, tokens, cache_dir=tmp_path)


def greedy(spec):
    """What the library says token by token, with the tokens that it chooses."""
    return transformers_outputs.reference_of(transformers_outputs.compute(spec))


def test_after_the_library_s_own_tokens_the_reference_is_what_it_says_token_by_token(compute_apart, known):
    spec = spec_of("tiny-llama")
    expected = greedy(spec)
    assert compute_apart(spec, expected.tokens) == ""
    found = known(spec, expected.tokens)
    assert found.tokens == expected.tokens and found.tensors().keys() == {"logits.0", "logits.1"}
    for name, tensor in found.tensors().items():
        torch.testing.assert_close(tensor, expected.tensors()[name], rtol=1e-5, atol=1e-5)


def test_a_long_answer_is_computed_in_pieces_and_told_as_it_grows(monkeypatch):
    spec = spec_of("tiny-llama", prompt_tokens=13, new_tokens=8, requests=1)
    expected, said = greedy(spec), []
    monkeypatch.setattr(teacher_forcing, "AT_ONCE", 3)
    monkeypatch.setattr(teacher_forcing, "say", said.append)
    (found,) = teacher_forcing.compute(spec, expected.tokens)
    torch.testing.assert_close(found, expected.logits[0], rtol=1e-5, atol=1e-5)
    assert said == [f"{done} of 8 tokens" for done in (1, 4, 7, 8)]


def test_an_encoder_s_reference_is_its_hidden_states(compute_apart, known):
    spec = spec_of("tiny-bert")
    assert compute_apart(spec, [[], []]) == ""
    found = known(spec, [[], []])
    assert found.tokens == () and found.logits == ()
    assert [tuple(x.shape) for x in found.hidden] == [(13, 32), (13, 32)]
    assert not torch.equal(*found.hidden)


@pytest.fixture
def counted(monkeypatch):
    """The answers that are computed, as they come: each row is the answer's length."""
    computed = []

    def compute(module, spec, made, asked, numbers, said=None):
        for at, answer in json.loads(Path(asked).read_text()).items():
            computed.append((answer, numbers))
            save_file({"rows": torch.eye(len(answer))}, made / f"{at}.safetensors")

    monkeypatch.setattr(teacher_forcing, "run_apart", compute)
    return computed


def test_each_answer_of_each_prompt_is_computed_once_whichever_run_asks(tmp_path, counted):
    def ask(spec, *tokens, numbers="own"):
        return teacher_forcing.reference_after(spec, tokens, numbers, cache_dir=tmp_path)

    spec = spec_of("tiny-gpt2", prompt="again", new_tokens=2, requests=2)
    assert len(ask(spec, [5, 6], [5, 6]).logits) == 2
    assert counted == [([5, 6], "own")]
    other = spec.model_copy(update={"strategy": "voltage", "name": "x"})
    assert ask(other, [5, 6], [5, 7]).tokens == ask(spec, [5, 6], [5, 6]).tokens == ((0, 1), (0, 1))
    assert counted[1:] == [([5, 7], "own")]
    ask(spec, [5, 6], [5, 6], numbers="precise")
    assert counted[2:] == [([5, 6], "precise")]


def test_a_damaged_file_is_ignored_and_made_again(tmp_path, counted):
    spec = spec_of("tiny-gpt2", prompt_tokens=13, new_tokens=2, requests=1)
    teacher_forcing.reference_after(spec, [[5, 6]], cache_dir=tmp_path)
    (file,) = tmp_path.rglob("*.safetensors")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:9] + b"?" + whole[10:]):
        file.write_bytes(damaged)
        assert teacher_forcing.reference_after(spec, [[5, 6]], cache_dir=tmp_path).tokens == ((0, 1),)
        assert file.read_bytes() == whole
    assert len(counted) == 4


def test_a_cache_that_cannot_be_written_costs_a_run_nothing_but_time(tmp_path, monkeypatch, counted):
    """A healthy run failed at its end because the disk was full."""

    def refuse(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    spec = spec_of("tiny-gpt2", prompt_tokens=13, new_tokens=2, requests=1)
    monkeypatch.setattr(kept.shutil, "copyfile", refuse)
    for _ in range(2):
        assert teacher_forcing.reference_after(spec, [[5, 6]], cache_dir=tmp_path).tokens == ((0, 1),)
    assert len(counted) == 2 and not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_two_emulations_with_equal_pids_may_keep_the_same_reference_at_once(tmp_path, monkeypatch):
    """Each is in a PID namespace of its own, and the cache is one."""
    copy, parts, made = kept.shutil.copyfile, [], tmp_path / "made"
    made.write_bytes(b"x")
    place = kept.Place("prompt", "answer")

    def copy_beside_another(source, part):
        parts.append(part)
        if len(parts) == 1:
            kept.keep(place, made, tmp_path)
        copy(source, part)

    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(kept.shutil, "copyfile", copy_beside_another)
    kept.keep(place, made, tmp_path)
    assert [path.name for path in (tmp_path / "references/prompt").iterdir()] == ["answer.safetensors"]
    assert len(set(parts)) == 2


def test_what_was_not_used_for_longest_goes_when_all_take_too_much(tmp_path, monkeypatch):
    made = tmp_path / "made"
    save_file({"rows": torch.zeros(10)}, made)
    size = made.stat().st_size
    for at, name in enumerate("abc"):
        place = kept.Place(name, "answer")
        kept.keep(place, made, tmp_path, 3 * size)
        os.utime(tmp_path / f"references/{name}/answer.safetensors", (at, at))
    assert kept.read(kept.Place("a", "answer"), tmp_path) is not None
    kept.keep(kept.Place("d", "answer"), made, tmp_path, 3 * size)
    assert sorted(path.name for path in (tmp_path / "references").iterdir()) == ["a", "c", "d"]
    kept.keep(kept.Place("e", "answer"), made, tmp_path, size - 1)
    assert not (tmp_path / "references/e").exists()


def changed(spec, **update):
    return spec.model_copy(update=update)


def folder_of(spec):
    return kept.Prompts(spec).folder(requests_of(spec)[0])


def test_what_decides_the_numbers_decides_the_place_of_a_reference():
    spec = spec_of("tiny-gpt2")
    other = [
        spec,
        changed(spec, seed=12),
        spec_of("tiny-gpt2", prompt_tokens=13, new_tokens=0),
        spec_of("tiny-llama"),
        changed(spec, model=spec.model.model_copy(update={"norm_eps": 1e-3})),
        spec_of("demo-lm"),
    ]
    assert len({folder_of(each) for each in other}) == len(other)
    assert folder_of(changed(spec, workload=Workload(prompt_tokens=13, new_tokens=7))) == folder_of(spec)


def test_rewritten_weights_are_not_answered_from_the_cache(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-gpt2")).save_pretrained(tmp_path)
    spec = spec_of("tiny-gpt2")
    weights = spec.weights.model_copy(update={"kind": "directory", "directory": str(tmp_path)})
    before = folder_of(changed(spec, weights=weights))
    module = transformers_outputs.library_model(changed(spec, seed=99))
    module.save_pretrained(tmp_path)
    assert folder_of(changed(spec, weights=weights)) != before


def test_a_model_is_loaded_once_for_all_questions_about_it_and_widened_for_the_precise_ones(monkeypatch):
    loaded, load = [], transformers_outputs.library_model
    monkeypatch.setattr(
        teacher_forcing, "library_model", lambda spec, *shake: loaded.append(spec) or load(spec, *shake)
    )
    monkeypatch.setattr(teacher_forcing, "_loaded", {})
    spec = spec_of("tiny-llama", prompt_tokens=13, requests=1)
    own = teacher_forcing._loaded_model(spec, "own")
    assert teacher_forcing._loaded_model(changed(spec, strategy="voltage"), "own") is own
    assert own.dtype == torch.float32
    assert teacher_forcing._loaded_model(spec, "precise").dtype == torch.float64 and len(loaded) == 1
    assert teacher_forcing._loaded_model(spec, "own").dtype == torch.float32 and len(loaded) == 2
    teacher_forcing._loaded_model(changed(spec, seed=99), "own")
    assert len(loaded) == 3 and len(teacher_forcing._loaded) == 1


def test_a_model_is_prepared_unless_answers_to_its_prompts_are_kept(tmp_path, monkeypatch, counted):
    prepared = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(teacher_forcing, "prepare", lambda module, arguments: prepared.append(arguments))
    spec = spec_of("tiny-gpt2", prompt_tokens=13, new_tokens=1, requests=2)
    teacher_forcing.reference_after(spec_of("tiny-gpt2", prompt_tokens=13, new_tokens=1, requests=1), [[5]])
    teacher_forcing.prepare_reference(spec, tmp_path)
    assert len(prepared) == 1 and json.loads(Path(prepared[0][2]).read_text()) == {}
    teacher_forcing.reference_after(spec, [[5], [6]])
    teacher_forcing.prepare_reference(spec, tmp_path)
    assert len(prepared) == 1


@pytest.mark.parametrize(("running", "cores"), [(1, 4), (2, 3), (4, 1), (40, 1)])
def test_a_reference_takes_the_cores_that_nobody_uses_and_one_at_least(monkeypatch, running, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr(
        teacher_forcing.Path, "read_text", lambda path, **_: f"0.5 0.4 0.3 {running}/345 12345\n"
    )
    assert teacher_forcing.idle_cores() == cores


def test_a_reference_that_fails_says_why_and_leaves_no_file(tmp_path, compute_apart):
    spec = spec_of("tiny-gpt2")
    weights = spec.weights.model_copy(update={"kind": "directory", "directory": str(tmp_path)})
    said = compute_apart(changed(spec, weights=weights), [[1] * 6, [1] * 6])
    assert re.match("the reference of tiny-gpt2 could not be computed: .+", said)
    assert not (tmp_path / "references").exists()


def test_the_reference_tokenises_the_text_by_itself(monkeypatch):
    spec = spec_of("demo-lm", prompt="An expression is", new_tokens=1)
    right = requests_of(spec)[0].tokens
    monkeypatch.setattr(prompts, "encode_prompt", lambda *_: right[::-1])
    assert requests_of(spec)[0].tokens == right[::-1] != right
    found = transformers_outputs.reference_of(transformers_outputs.compute(spec))
    assert found.text_ids == right and len(found.tokens) == 1


def test_bfloat16_references_keep_rotary_angles_in_full_precision():
    spec = spec_of("tiny-llama")
    half = changed(spec, model=spec.model.model_copy(update={"dtype": "bfloat16"}))
    module = transformers_outputs.library_model(half)
    assert module.model.layers[0].mlp.up_proj.weight.dtype == torch.bfloat16
    assert module.model.rotary_emb.inv_freq.dtype == torch.float32
    assert transformers_outputs.compute(half)["logits.0"].shape == (6, 101)


def test_a_prompt_asked_for_twice_is_computed_once(monkeypatch):
    spec = spec_of("tiny-gpt2", prompt="again", new_tokens=2, requests=3)
    seen = []
    answer = transformers_outputs._answer
    monkeypatch.setattr(
        transformers_outputs, "_answer", lambda *given: seen.append(given[2].tokens) or answer(*given)
    )
    found = transformers_outputs.compute(spec)
    assert seen == [requests_of(spec)[0].tokens]
    assert torch.equal(found["logits.0"], found["logits.2"])
