"""The example notebook of `edgeloom.Client`: its cells, and how it is carried out on a new server.

`docs/notebooks/client.md` has the cells as people write them: text, and code between lines of ```python and
```. `./loom docs --notebook` carries out the code and writes `client.ipynb` with what it printed and drew.
"""

from __future__ import annotations

import os
import re

from tests.browser.new_site import new_site
from tests.devtools.rooms import ROOT

SOURCE = ROOT / "docs" / "notebooks" / "client.md"
NOTEBOOK = SOURCE.with_suffix(".ipynb")
CODE = re.compile(r"^```python\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
LIMIT_S = 300


def cells(text: str) -> list[tuple[str, str]]:
    """("markdown" or "code", source) of every cell."""
    kinds = ("markdown", "code")
    found = ((kinds[place % 2], part.strip()) for place, part in enumerate(CODE.split(text)))
    return [(kind, source) for kind, source in found if source]


def carry_out(url: str, token: str) -> None:
    """Execute every cell against the server and write the notebook. Raises the first error of a cell."""
    from nbclient import NotebookClient
    from nbformat import write
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    make = {"markdown": new_markdown_cell, "code": new_code_cell}
    sources = cells(SOURCE.read_text(encoding="utf-8"))
    made = [make[kind](source, id=f"cell-{number}") for number, (kind, source) in enumerate(sources)]
    notebook = new_notebook(cells=made)
    os.environ |= {"EDGELOOM_URL": url, "EDGELOOM_TOKEN": token}
    client = NotebookClient(notebook, timeout=LIMIT_S, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(ROOT))
    write(notebook, NOTEBOOK)


if __name__ == "__main__":
    with new_site() as site:
        carry_out(site.url, site.token)
