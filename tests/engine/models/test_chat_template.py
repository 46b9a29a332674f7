"""Conversations as models were trained on them, compared with the tokenizer classes of transformers."""

import json
import shutil
from pathlib import Path

import pytest

from engine.domain.errors import SpecError
from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.inputs.chat import chat_tokens

DEMO, WEIGHTS = catalogue.resolve("demo-lm")
TALK = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "When is a function called?"}]
TEMPLATE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'assistant' %}{{ raise_exception('who asks?') }}{% endif %}"
    "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] | trim }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
SPECIAL = {"bos_token": {"__type": "AddedToken", "content": "<|endoftext|>"}, "eos_token": "<|endoftext|>"}


def directory_with(tmp_path, config, template=None):
    shutil.copy(Path(WEIGHTS.directory) / "tokenizer.json", tmp_path)
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
    assert chat_tokens(DEMO, weights, TALK) == tuple(ids)


def test_a_model_without_a_template_has_none_and_one_that_refuses_says_why(tmp_path):
    assert chat_tokens(DEMO, WEIGHTS, TALK) is None
    assert chat_tokens(DEMO, WeightsRef(), TALK) is None
    weights = directory_with(tmp_path, SPECIAL, TEMPLATE)
    with pytest.raises(SpecError, match="refuses them: who asks"):
        chat_tokens(DEMO, weights, [{"role": "assistant", "content": "hello"}])


def test_a_template_reaches_nothing_of_the_program(tmp_path):
    weights = directory_with(tmp_path, SPECIAL, "{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(SpecError, match="unsafe"):
        chat_tokens(DEMO, weights, TALK)
