"""The engineer's question: are several of these boards faster than one, for this model in 4 bits?

Asked of the advice (`engine/advice/answer.py`) for clusters whose answer is published: rates of one board and
of several by the same runtime, in `topologies/published_rates.csv`. Boards are the presets with the memory of
the published ones, their links those of `bench/published/several_boards.py`. Nothing is fitted to answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.published.several_boards import GIGABIT, LINKS
from bench.tables.rows import Table
from engine.advice.answer import answer
from engine.advice.assess import assess, assess_with_interval
from engine.advice.changes import ranked, told_once
from engine.advice.values import Answer, Assessment
from engine.domain.spec import RunSpec
from engine.strategies.registry import STRATEGIES
from topologies.parts import link_preset
from topologies.presets import preset
from topologies.published import PublishedRate, published_rates
from topologies.published_runs import DECODE_FROM, published_run
from topologies.shapes import copies, star

NEW_TOKENS = 3
EVERY = tuple(strategy.name for strategy in STRATEGIES)


class Question(NamedTuple):
    """A question that published rates answer, by the ids of their rows: of one board, and of several. `one`
    is empty where one board has no room for the model. `board` and `shape` are what the row of several does
    not name.
    """

    one: str
    several: str
    memory_bytes: float
    board: str = ""
    shape: str = ""


QUESTIONS = (
    Question("r001", "r003", 8e9),
    Question("r001", "r004", 8e9),
    Question("r009", "r011", 8e9),
    Question("r012", "r014", 8e9),
    Question("r015", "r017", 59e9),
    Question("r018", "r020", 59e9),
    Question("r312", "r314", 24e9),
    Question("", "r081", 16e9, "raspberry-pi-5", "llama-3.3-70b"),
)


class Asked(NamedTuple):
    """A question with the published and our answer."""

    row: PublishedRate
    gain: float | None
    answer: Answer

    @property
    def published(self) -> bool:
        """Whether several boards are faster; they are where one has no room."""
        return self.gain is None or self.gain > 1

    @property
    def in_words(self) -> str:
        if self.gain is None:
            return "yes: it fits no single one"
        return f"{'yes' if self.published else 'no'}: {self.gain:.2f} times as fast"

    @property
    def right(self) -> bool:
        return self.answer.yes is self.published


def measure_questions() -> Table:
    asked = [ask(question) for question in QUESTIONS]
    rows = tuple(
        (
            f"{one.row.nodes} x {one.row.device}",
            one.row.model,
            one.row.runtime,
            "yes: it fits no single one"
            if one.gain is None
            else f"{'yes' if one.published else 'no'}, {one.gain:.2f} times",
            one.answer.sentence.split(". Real boards: ")[0] + ".",
            "right" if one.right else "wrong",
        )
        for one in asked
    )
    right = sum(one.right for one in asked)
    title = (
        "Are several of these boards faster than one, for this model in 4 bits? "
        f"{right} of {len(asked)} answers of `./loom advise --by per_token_s` are the published one. "
        "Sources: `topologies/published_rates.csv`."
    )
    columns = ("boards", "model", "published with", "published", "our answer", "")
    return Table(title, columns, rows)


def ask(question: Question, strategies: Sequence[str] = EVERY) -> Asked:
    """The published answer to `question`, and the advice's among `strategies`."""
    rates = {row.id: row for row in published_rates()}
    several = rates[question.several]
    row = several._replace(
        board=question.board or several.board, shape=question.shape or several.shape, weight_bits=4.5
    )
    one = rates[question.one].decode_tokens_per_s if question.one else None
    gain = several.decode_tokens_per_s / one if one and several.decode_tokens_per_s else None
    base = run_of(row, question.memory_bytes)
    specs = [base.model_copy(update={"strategy": name}) for name in strategies]
    found = told_once(ranked([assess_with_interval(spec) for spec in specs], "per_token_s"))
    said = answer(base, found, "per_token_s", _assess_all)
    return Asked(several, gain, said)


def run_of(row: PublishedRate, memory_bytes: float) -> RunSpec:
    link = link_preset(LINKS.get(row.board, GIGABIT)).between("board", "hub")
    cluster = star(copies(preset(row.board), row.nodes), link)
    boards = tuple(board.model_copy(update={"memory_bytes": memory_bytes}) for board in cluster.devices)
    spec = published_run(cluster, row, "single", DECODE_FROM, NEW_TOKENS)
    return spec.model_copy(update={"cluster": cluster.model_copy(update={"devices": boards})})


def _assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
    return [assess(spec) for spec in specs]
