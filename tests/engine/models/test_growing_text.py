"""Text that grows by a token at a time."""

import pytest

from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.inputs.text import GrowingText, encode

DEMO = catalogue.resolve("demo-lm")[0]


@pytest.fixture
def bytes_only(tmp_path):
    """A tokenizer whose tokens are bytes, as those of GPT-2 are for what they have not merged."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={text: at for at, text in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    return WeightsRef(kind="directory", directory=str(tmp_path))


@pytest.mark.parametrize("text", ["Café crème", "plain", "a 🙂 and ≥ b"])
def test_the_pieces_together_are_the_text(bytes_only, text):
    growing = GrowingText(DEMO, bytes_only)
    pieces = [growing.add(token) for token in encode(DEMO, bytes_only, text)]
    assert "".join(pieces) == text
    assert "\ufffd" not in "".join(pieces)


def test_a_character_comes_with_its_last_token(bytes_only):
    growing = GrowingText(DEMO, bytes_only)
    assert [growing.add(token) for token in encode(DEMO, bytes_only, "é!")] == ["", "é", "!"]
