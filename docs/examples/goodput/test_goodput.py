"""The notebook: its cells are carried out, and what it says below the figure is so."""

import re
from pathlib import Path

CELL = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGE = Path(__file__).with_name("goodput.md")
SMALLER = {"[0.25, 0.5, 1, 1.5, 2, 3]": "[1, 2]", 'world = "emulated"': 'world = "loopback"'}
"""The two rates at which the best ones are best; real processes also where nobody may make networks."""


def test_splitwise_answers_twice_as_many_in_time_as_the_next_best(tmp_path, monkeypatch):
    for other in ("splitwise", "draft-verify"):
        (tmp_path / other).symlink_to(PAGE.parents[1] / other)
    (tmp_path / "goodput").mkdir()
    monkeypatch.chdir(tmp_path / "goodput")
    left = {}
    text = PAGE.read_text(encoding="utf-8")
    for cells, instead in SMALLER.items():
        assert cells in text
        text = text.replace(cells, instead)
    for cell in CELL.findall(text):
        exec(cell, left)
    goodput = left["table"].pivot(index="rate_per_s", columns="way", values="goodput_per_s")
    assert goodput["Splitwise"].max() > 2 * goodput.drop(columns="Splitwise").to_numpy().max()
    assert all(report.correctness.ok for report in left["reports"].values())
    assert left["reports"]["draft and verify"]["accepted_frac"] == 1
    assert Path("goodput.svg").is_file()
