"""The example notebook is what its source says, and was carried out without an error."""

import json

from tests.browser.notebook import NOTEBOOK, SOURCE, cells


def test_the_notebook_has_the_cells_of_its_source_and_every_result() -> None:
    written = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in written] == cells(
        SOURCE.read_text(encoding="utf-8")
    )
    code = [cell for cell in written if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])


def test_text_and_code_take_turns() -> None:
    text = "# Title\n\n```python\na = 1\n\nb = 2\n```\n\n```python\nc\n```\nend\n"
    assert cells(text) == [
        ("markdown", "# Title"),
        ("code", "a = 1\n\nb = 2"),
        ("code", "c"),
        ("markdown", "end"),
    ]
