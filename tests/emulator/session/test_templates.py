"""A chat template in an emulation: it works there, and ends at its limit there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emulator.session.calls import call
from engine.domain.errors import SpecError
from engine.models import catalogue
from tests.support.templated import number_of_tokens

pytestmark = pytest.mark.root


@pytest.mark.parametrize(
    ("template", "refused"),
    [("{{ messages[0]['content'] }}", ""), ("{{ (9**(9**9)) % 7 }}", "it takes longer than 2 s")],
)
def test_a_session_renders_a_template_and_ends_one_without_an_end(
    tmp_path: Path, state_directory: Path, template: str, refused: str
) -> None:
    shutil.copy(Path(catalogue.resolve("demo-lm")[1].directory) / "tokenizer.json", tmp_path)
    (tmp_path / "chat_template.jinja").write_text(template)
    if refused:
        with pytest.raises(SpecError, match=refused):
            call(number_of_tokens, str(tmp_path), writes=(tmp_path,))
    else:
        assert call(number_of_tokens, str(tmp_path), writes=(tmp_path,)) > 0
