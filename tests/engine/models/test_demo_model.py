"""The model that the project trains: its card has the measured scores, and its script trains one."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import GPT2LMHeadModel

from engine.models.training import train_demo
from engine.models.training.demo_corpus import Corpus, read_corpus, split
from engine.models.training.train_demo import END, OUTPUT_DIR, evaluate, share_of_peak

PROSE = "A paragraph about lists, number {}, which is long enough to count as a sentence of prose."


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


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


def test_the_card_has_the_scores_on_held_out_text() -> None:
    """The corpus differs a little between Python versions: hence the room."""
    card = (OUTPUT_DIR / "README.md").read_text()
    perplexity = float(re.search(r"held-out perplexity \| ([\d.]+)", card).group(1))
    accuracy = float(re.search(r"top-1 accuracy \| ([\d.]+)%", card).group(1))
    tokenizer = Tokenizer.from_file(str(OUTPUT_DIR / "tokenizer.json"))
    end_id = tokenizer.token_to_id(END)
    model = GPT2LMHeadModel.from_pretrained(OUTPUT_DIR)
    held_out = read_corpus().held_out[::4]
    score = evaluate(model, [[end_id, *tokenizer.encode(text).ids] for text in held_out])
    assert score.perplexity == pytest.approx(perplexity, rel=0.25)
    assert 100 * score.top1_accuracy == pytest.approx(accuracy, abs=3)


def test_the_artefact_is_small_and_needs_no_pickle() -> None:
    names = {path.name for path in OUTPUT_DIR.iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert (OUTPUT_DIR / "model.safetensors").stat().st_size <= 12_000_000
    config = json.loads((OUTPUT_DIR / "config.json").read_text())
    assert (config["model_type"], config["n_layer"], config["n_head"]) == ("gpt2", 6, 8)


def test_the_script_makes_a_model_with_tokenizer_and_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_corpus()
    corpus = Corpus(whole.train[:20], whole.held_out[:10])
    monkeypatch.setattr(train_demo, "read_corpus", lambda: corpus)
    arguments = ["train_demo", "--steps", "2", "--seed", "3", "--output"]
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
