"""Ids of a text are those of AutoTokenizer for the whole directory, whichever of its files decides them."""

import json
from dataclasses import replace
from itertools import product

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from engine.confined import Confined
from engine.domain.errors import SpecError
from engine.domain.report import Correctness
from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.inputs import library_tokenizer, text
from engine.models.weights.manifest import manifest_of
from engine.reports.verify import with_prompt
from tests.support.one_device import spec_of

DEMO, DEMO_WEIGHTS = catalogue.resolve("demo-lm")
CORPUS = [
    "the quick brown fox jumps over the lazy dog",
    "Special tokens are tokens too, he said: <ent>!",
] * 20
TEXTS = [
    "the fox",
    " the  fox",
    "The <ent> fox<ent>.",
    "a<|tool|>b <|tool|> c",
    "<s>the fox</s>",
    "fox <extra>  dog",
    "FOX ünd <ENT>",
]


def byte_level(trainer):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made, trainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def metaspace(trainer):
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    made.decoder = decoders.Metaspace()
    return made, trainer(special_tokens=["<unk>", "<s>", "</s>"])


def word_piece(trainer):
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made, trainer(special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])


KINDS = {
    "gpt2": (byte_level, trainers.BpeTrainer),
    "qwen3": (byte_level, trainers.BpeTrainer),
    "llama": (metaspace, trainers.BpeTrainer),
    "bert": (word_piece, trainers.WordPieceTrainer),
}


def token(content, **more):
    base = {"content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    return base | {"special": True} | more


# what is written beside tokenizer.json, given the first id that is free
BESIDE = {
    "nothing": lambda free: {},
    "added tokens": lambda free: {"added_tokens.json": {"<ent>": free, "<|tool|>": free + 1}},
    "the decoder of added tokens": lambda free: {
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                str(free): token("<ent>", lstrip=True),
                str(free + 1): token("<extra>", rstrip=True),
            }
        }
    },
    "a prefix space": lambda free: {"tokenizer_config.json": {"add_prefix_space": True}},
    "extra special tokens": lambda free: {
        "tokenizer_config.json": {"extra_special_tokens": ["<|tool|>", "<extra>"]}
    },
    "the older name of those": lambda free: {
        "tokenizer_config.json": {"additional_special_tokens": ["<|tool|>"], "eos_token": "</s>"}
    },
    "special tokens of an older file": lambda free: {
        "special_tokens_map.json": {"bos_token": "<s>", "eos_token": token("</s>"), "pad_token": "<extra>"}
    },
    "special tokens that are text": lambda free: {
        "tokenizer_config.json": {"split_special_tokens": True},
        "added_tokens.json": {"<ent>": free},
    },
    "small letters": lambda free: {"tokenizer_config.json": {"do_lower_case": True}},
    "a beginning and an end": lambda free: {
        "tokenizer_config.json": {
            "bos_token": "<s>",
            "eos_token": "</s>",
            "add_bos_token": True,
            "add_eos_token": True,
        }
    },
    "another class": lambda free: {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}},
}


def directory_of(folder, kind, beside, cut=False):
    build, trainer = KINDS[kind]
    made, trained = build(lambda **more: trainer(vocab_size=400, show_progress=False, **more))
    made.train_from_iterator(CORPUS, trained)
    if kind == "bert":
        ids = [("[CLS]", made.token_to_id("[CLS]")), ("[SEP]", made.token_to_id("[SEP]"))]
        made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ids)
    if cut:
        made.enable_truncation(3)
        made.enable_padding(length=9)
    made.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    for name, content in BESIDE[beside](made.get_vocab_size()).items():
        (folder / name).write_text(json.dumps(content))
    return folder


def ours(folder, written):
    model = DEMO.model_copy(update={"vocab_size": 100_000})
    return list(text.encode(model, WeightsRef(kind="directory", directory=str(folder)), written))


def theirs(folder, written):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)(written)["input_ids"]


@pytest.fixture(autouse=True)
def no_cache_of_others(tmp_path, monkeypatch):
    import transformers  # noqa: F401  # where it is not imported yet, loading a tokenizer forbids torch for good

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def here(monkeypatch):
    """The library is imported once for all directories, not in a process for each."""
    monkeypatch.setattr(
        library_tokenizer, "_MADE", lambda where, directory: library_tokenizer._made(directory)
    )


@pytest.mark.parametrize(("kind", "beside"), list(product(KINDS, BESIDE)))
def test_every_file_that_changes_ids_is_heard(tmp_path, here, kind, beside):
    folder = directory_of(tmp_path, kind, beside)
    assert {written: ours(folder, written) for written in TEXTS} == {
        written: theirs(folder, written) for written in TEXTS
    }


def test_the_confined_process_gives_the_same_ids(tmp_path):
    folder = directory_of(tmp_path, "gpt2", "special tokens that are text", cut=True)
    for written in TEXTS:
        assert ours(folder, written) == theirs(folder, written)
    assert library_tokenizer.library_ids(str(folder), TEXTS[2]) == tuple(theirs(folder, TEXTS[2]))


def test_every_confined_process_has_the_library_already_and_not_torch():
    """One second for all of them, and not two for each."""
    names = ("transformers.models.auto.tokenization_auto", "torch")
    loaded = Confined(eval, 5.0, 4 << 30, modules=library_tokenizer.MODULES)
    assert loaded("library", f"[name in __import__('sys').modules for name in {names}]") == [True, False]


@pytest.mark.parametrize("beside", ["added tokens", "the decoder of added tokens", "a prefix space"])
def test_tokenizer_json_alone_would_give_other_ids(tmp_path, beside):
    """Else agreement would say nothing."""
    folder = directory_of(tmp_path, "gpt2", beside)
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert any(alone.encode(written).ids != theirs(folder, written) for written in TEXTS)


def test_a_tokenizer_is_made_once_for_a_content_and_again_after_a_change(tmp_path, monkeypatch):
    folder, made = directory_of(tmp_path, "gpt2", "nothing"), []

    def counted(where, directory):
        made.append(where)
        return library_tokenizer._made(directory)

    monkeypatch.setattr(library_tokenizer, "_MADE", counted)
    first = library_tokenizer.library_tokenizer(str(folder))
    assert library_tokenizer.library_tokenizer(str(folder)) == first and len(made) == 1
    (folder / "added_tokens.json").write_text('{"<ent>": 400}')
    assert library_tokenizer.library_tokenizer(str(folder)) != first and len(made) == 2


def test_a_library_s_copy_of_a_model_keeps_every_file_that_decides_ids(tmp_path):
    for name in library_tokenizer.FILES:
        (tmp_path / name).write_text("{}")
    assert set(library_tokenizer.FILES) <= set(manifest_of(tmp_path).files)


def test_a_tokenizer_that_is_code_of_the_directory_is_refused_by_name(tmp_path):
    folder = directory_of(tmp_path, "gpt2", "nothing")
    mark = tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w')")
    (folder / "config.json").write_text(json.dumps({"model_type": "own"}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["own.T", "own.T"]}})
    )
    with pytest.raises(SpecError, match=str(tmp_path)):
        ours(folder, "the fox")
    assert not mark.exists()


def test_tokens_of_a_tokenizer_that_cannot_be_read_are_shown_as_numbers(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    weights = WeightsRef(kind="directory", directory=str(tmp_path))
    assert text.decode(DEMO, weights, (5, 60)) == " 5 60"


def test_a_run_whose_prompt_has_other_ids_than_the_library_s_is_not_correct():
    spec = spec_of("demo-lm", prompt="An expression is")
    ids = text.encode(DEMO, DEMO_WEIGHTS, "An expression is")
    right = Correctness(checked=True, ok=True)
    assert with_prompt(right, spec, ids) == right.model_copy(update={"prompt_identical": True})
    for other in (ids[:-1], (*ids, 3), (*ids[:2], 7, *ids[3:])):
        found = with_prompt(right, spec, other)
        assert found.ok is False and found.prompt_identical is False and "AutoTokenizer" in found.why
    assert with_prompt(right, spec_of("demo-lm", prompt_tokens=4), None) == right


def test_where_only_one_side_has_ids_of_a_text_nothing_is_said_of_the_prompt():
    """A reference may have been kept without the library's ids, and a prompt by its length has no text."""
    right = Correctness(checked=True, ok=True)
    assert with_prompt(right, spec_of("demo-lm", prompt="An expression is"), None) == right
    assert with_prompt(right, spec_of("demo-lm", prompt_tokens=4), (3, 5, 8, 1)) == right


def test_a_prompt_on_which_a_pattern_takes_for_ever_is_refused_at_a_limit_and_from_then_on_at_once(
    tmp_path, monkeypatch
):
    folder = directory_of(tmp_path, "qwen3", "another class")
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex("(a+)+c"), "isolated"), pre_tokenizers.ByteLevel(use_regex=False)]
    )
    made.save(str(folder / "tokenizer.json"))
    weights = WeightsRef(kind="directory", directory=str(folder))
    model = DEMO.model_copy(update={"vocab_size": 100_000})
    assert text.encode_prompt(model, weights, "aaa")
    calls, quick = [], replace(text._IDS, limit_s=1.0)

    def within_a_second(*asked):
        calls.append(asked)
        return quick(*asked)

    monkeypatch.setattr(text, "_IDS", within_a_second)
    for _ in range(2):
        with pytest.raises(
            SpecError, match=r"tokenizer\.json: does not tokenise the prompt: it takes longer than 1 s"
        ):
            text.encode_prompt(model, weights, ("a" * 22 + "b") * 2000)
    assert len(calls) == 1
    with pytest.raises(SpecError, match=r"does not tokenise the prompt: .*retry-limit-in-match over"):
        text.encode_prompt(model, weights, "a" * 60 + "b")
