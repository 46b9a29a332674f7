"""Conversations as models were trained on them, compared with the tokenizer classes of transformers."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

import topologies
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.inputs.chat import chat_tokens
from engine.models.inputs.prompts import requests_of

DEMO, WEIGHTS = catalogue.resolve("demo-lm")
MOST = 1000
TALK = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "When is a function called?"}]
TEMPLATE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'assistant' %}{{ raise_exception('who asks?') }}{% endif %}"
    "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] | trim }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
SPECIAL = {"bos_token": {"__type": "AddedToken", "content": "<|endoftext|>"}, "eos_token": "<|endoftext|>"}


def directory_with(tmp_path, config, template=None):
    """Its tokenizer begins every text with a special token, as those of Llama do."""
    tokenizer = Tokenizer.from_file(str(Path(WEIGHTS.directory) / "tokenizer.json"))
    tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if template is not None:
        (tmp_path / "chat_template.jinja").write_text(template)
    return WeightsRef(kind="directory", directory=str(tmp_path))


@pytest.mark.parametrize(
    ("config", "file"),
    [
        (SPECIAL | {"chat_template": TEMPLATE}, None),
        (SPECIAL | {"chat_template": "an older one"}, TEMPLATE),
        (
            SPECIAL
            | {
                "chat_template": [
                    {"name": "tool_use", "template": "no"},
                    {"name": "default", "template": TEMPLATE},
                ]
            },
            None,
        ),
    ],
    ids=["in the configuration", "in a file of its own", "one of several"],
)
def test_a_conversation_is_written_as_transformers_does(tmp_path, config, file):
    from transformers import PreTrainedTokenizerFast

    weights = directory_with(tmp_path, config, file)
    theirs = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert theirs.chat_template is not None
    expected = theirs.apply_chat_template(TALK, chat_template=TEMPLATE, add_generation_prompt=True)
    ids = expected["input_ids"] if hasattr(expected, "keys") else expected
    assert chat_tokens(DEMO, weights, TALK, MOST) == tuple(ids)


def test_a_model_without_a_template_has_none_and_one_that_refuses_says_why(tmp_path):
    assert chat_tokens(DEMO, WEIGHTS, TALK, MOST) is None
    assert chat_tokens(DEMO, WeightsRef(), TALK, MOST) is None
    assert chat_tokens(DEMO, directory_with(tmp_path, SPECIAL, ""), TALK, MOST) is None
    weights = directory_with(tmp_path, SPECIAL, TEMPLATE)
    with pytest.raises(SpecError, match="refuses them: who asks"):
        chat_tokens(DEMO, weights, [{"role": "assistant", "content": "hello"}], MOST)


def test_a_template_reaches_nothing_of_the_program(tmp_path):
    weights = directory_with(tmp_path, SPECIAL, "{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(SpecError, match="unsafe"):
        chat_tokens(DEMO, weights, TALK, MOST)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1 / 0 }}",
        "{{ range(10 ** 9) }}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ '{a}'.format() }}",
        "{{ cycler() }}",
        "{{ 'x' * 1001 }}",
        [{"name": "a"}],
        [{"name": "a", "template": "x"}],
        "{{ never closed",
    ],
)
def test_whatever_goes_wrong_in_a_template_refuses_the_request_alone(tmp_path, template):
    weights = directory_with(tmp_path, SPECIAL | {"chat_template": template})
    with pytest.raises(SpecError, match=r"messages: the chat template of demo-lm"):
        chat_tokens(DEMO, weights, TALK, MOST)


def run_with(tmp_path, template):
    weights = directory_with(tmp_path, SPECIAL | {"chat_template": template})
    return RunSpec(
        cluster=topologies.load("lab-3"),
        model=DEMO,
        weights=weights,
        strategy="single",
        workload=Workload(prompt="Why?", new_tokens=2),
    )


def test_a_run_whose_template_fails_is_told_how_it_goes_without(tmp_path):
    spec = run_with(tmp_path, "{{ raise_exception('which tools?') }}")
    with pytest.raises(SpecError, match=r"^workload\.chat: .* which tools\?\. Turn chat off") as caught:
        requests_of(spec)
    assert caught.value.fields[0][0] == "workload.chat"
    assert requests_of(spec.model_copy(update={"workload": Workload(prompt="Why?", chat=False)}))


def test_a_message_of_a_run_is_tokenised_within_the_limits_of_any_prompt(tmp_path):
    """Half a surrogate pair stands for all that a tokenizer does not survive."""
    with pytest.raises(SpecError, match="does not tokenise the prompt"):
        requests_of(run_with(tmp_path, "{{ '\\ud800' }}"))


def test_special_tokens_that_are_no_tokens_refuse_the_request_alone(tmp_path):
    weights = directory_with(tmp_path, {"bos_token": {"x": 1}, "chat_template": "{{ bos_token }}"})
    with pytest.raises(SpecError, match="refuses them"):
        chat_tokens(DEMO, weights, TALK, MOST)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{{ (9**(9**9)) % 7 }}",
    ],
    ids=["in Python", "in C"],
)
def test_a_template_without_an_end_is_stopped(tmp_path, template):
    weights = directory_with(tmp_path, {"chat_template": template})
    with pytest.raises(SpecError, match=r"it takes longer than 2 s"):
        chat_tokens(DEMO, weights, TALK, MOST)


def test_a_template_that_writes_nothing_is_no_plain_text(tmp_path):
    weights = directory_with(tmp_path, {"chat_template": "{# nothing #}"})
    with pytest.raises(SpecError, match="has no tokens"):
        chat_tokens(DEMO, weights, TALK, MOST)
