"""The model that the project trains: its card has the measured scores, and its script trains one."""

from __future__ import annotations

import json
import re
import sys
from itertools import islice
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import GPT2Config, GPT2LMHeadModel

from engine.models.training import train_demo
from engine.models.training.demo_corpus import Corpus, held_out, read_corpus, split
from engine.models.training.repetition import continue_greedily, loops, repeats, unlikelihood
from engine.models.training.train_demo import END, OUTPUT_DIR, evaluate, share_of_peak

PROSE = "A paragraph about lists, number {}, which is long enough to count as a sentence of prose."


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def of_python() -> Corpus:
    """Python's own documentation, which takes seconds to read."""
    return read_corpus(())


def test_a_paragraph_is_kept_once_and_never_both_learnt_and_held_out() -> None:
    numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    paragraphs = [PROSE.format(f"{a} {b} {c}") for a in numbers for b in numbers for c in numbers]
    corpus = split(["\n\n".join(paragraphs), "\n\n".join(paragraphs[:500])])
    learnt = [line for page in corpus.train for line in page.split("\n")]
    assert sorted([*learnt, *corpus.held_out]) == sorted(paragraphs)
    assert 20 < len(corpus.held_out) < 100


def test_code_grammar_and_tables_are_left_out() -> None:
    page = f"{PROSE}\n\n>>> [1, 2]\n\n{PROSE.format(1)} ::= x | y.\n\n| - | - | - | - |" + 80 * "-"
    assert split([page]) == split([PROSE])


def test_wrapped_lines_become_one() -> None:
    wrapped = PROSE.replace(", ", ",\n   ")
    assert split([wrapped]) == split([PROSE])


@pytest.mark.long("engine/models", "engine/ops", "engine/runs")
def test_the_card_has_the_score_on_what_is_held_out_of_pythons_documentation(of_python: Corpus) -> None:
    """The corpus differs a little between Python versions: hence the room."""
    card = (OUTPUT_DIR / "README.md").read_text()
    perplexity = float(re.search(r"Python's own documentation \| ([\d.]+)", card).group(1))
    tokenizer = Tokenizer.from_file(str(OUTPUT_DIR / "tokenizer.json"))
    end_id = tokenizer.token_to_id(END)
    model = GPT2LMHeadModel.from_pretrained(OUTPUT_DIR)
    score = evaluate(model, [[end_id, *tokenizer.encode(text).ids] for text in of_python.held_out])
    assert score.perplexity == pytest.approx(perplexity, rel=0.15)


@pytest.mark.long("engine/models/training")
def test_the_first_held_out_paragraphs_are_those_of_the_whole_corpus(of_python: Corpus) -> None:
    assert tuple(islice(held_out(), 20)) == of_python.held_out[:20]


def test_the_demo_model_seldom_loops() -> None:
    """The card says how often for other beginnings; before it learnt to leave loops, it was nearly half."""
    tokenizer = Tokenizer.from_file(str(OUTPUT_DIR / "tokenizer.json"))
    model = GPT2LMHeadModel.from_pretrained(OUTPUT_DIR).eval()
    prompts = ([tokenizer.token_to_id(END), *tokenizer.encode(text).ids][:9] for text in held_out())
    beginnings = [ids for ids in islice(prompts, 60) if len(ids) == 9][:50]
    written = continue_greedily(model, torch.tensor(beginnings), 64)
    assert len(beginnings) == 50
    assert sum(map(loops, written.tolist())) <= 12


@pytest.mark.parametrize(
    ("tokens", "looping"),
    [
        ([1, 2, 3] * 3, True),
        ([9, 8, 1, 2, 3, 1, 2, 3, 1, 2, 3, 7], True),
        ([1, 2, 3, 1, 2, 3, 4, 1, 2, 3], False),
        ([5, 5, 5], True),
        ([5, 5, 6, 5, 5], False),
        ([*range(17)] * 3, False),  # longer than what counts as a phrase
    ],
)
def test_a_phrase_three_times_in_a_row_is_a_loop(tokens: list[int], looping: bool) -> None:
    assert loops(tokens) == looping


def test_a_token_that_completes_an_earlier_n_gram_is_a_repeat() -> None:
    assert repeats([1, 2, 3, 4, 1, 2, 3, 4, 5], 4) == 7 * [False] + [True, False]
    assert repeats([1, 1, 1], 2) == [False, False, True]


def test_unlikelihood_punishes_only_what_the_model_repeats() -> None:
    """A model whose next token is always the last one plus 1, modulo 8, repeats 6-grams from the fourteenth
    token on; one that counts to 64 never does.
    """

    def counting(modulus: int) -> GPT2LMHeadModel:
        model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=64, n_layer=0, n_head=1))
        with torch.no_grad():
            model.transformer.wte.weight.copy_(torch.eye(64))
            model.transformer.wpe.weight.zero_()
            head = torch.zeros(64, 64)
            head[[(token + 1) % modulus for token in range(64)], range(64)] = 3.0
            model.lm_head.weight = torch.nn.Parameter(head)
        return model.eval()

    prefix = torch.tensor([[0, 1, 2, 3]])
    assert unlikelihood(counting(64), prefix, 20).item() == 0
    assert unlikelihood(counting(8), prefix, 20).item() > 0.1


def test_the_artefact_is_small_and_needs_no_pickle() -> None:
    names = {path.name for path in OUTPUT_DIR.iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert (OUTPUT_DIR / "model.safetensors").stat().st_size <= 12_000_000
    config = json.loads((OUTPUT_DIR / "config.json").read_text())
    assert (config["model_type"], config["n_layer"], config["n_head"]) == ("gpt2", 6, 8)


def test_the_script_makes_a_model_with_tokenizer_and_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus(tuple(map(PROSE.format, range(20))), tuple(islice(held_out(), 10)))
    monkeypatch.setattr(train_demo, "read_corpus", lambda packages=(): corpus)
    monkeypatch.setattr(train_demo, "SEQUENCES_PER_STEP", 2)
    monkeypatch.setattr(train_demo, "CONTINUATION", 8)
    monkeypatch.setattr(train_demo, "NUM_POSITIONS", 48)
    monkeypatch.setattr(train_demo, "HIDDEN_SIZE", 32)
    arguments = ["train_demo", "--steps", "2", "--loop-steps", "1", "--seed", "3", "--output"]
    for name in ("first", "second"):
        monkeypatch.setattr(sys, "argv", [*arguments, str(tmp_path / name)])
        train_demo.main()
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("first", "second"))
    assert first == second, "steps and seed decide the result"
    assert {path.name for path in (tmp_path / "first").iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    }


def test_the_learning_rate_warms_up_and_ends_at_zero() -> None:
    rates = [share_of_peak(progress / 100) for progress in range(101)]
    assert rates.index(max(rates)) <= 4
    assert rates[-1] == pytest.approx(0, abs=1e-9)
