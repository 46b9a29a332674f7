"""One process for many references: it starts once, reports why a reference fails, continues, and ends."""

import json
import os
import select
import sys

import pytest

from engine.domain.errors import HostError
from engine.models.reference import process, transformers_outputs
from tests.support.one_device import spec_of


@pytest.fixture
def starts(monkeypatch):
    """The processes started for references, as they come."""
    started, popen = [], process.subprocess.Popen

    def start(*given, **options):
        started.append(popen(*given, **options))
        return started[-1]

    monkeypatch.setattr(process.subprocess, "Popen", start)
    return started


REFERENCE = """
import json, os
from pathlib import Path

def main(arguments):
    asked, made = map(Path, arguments)
    seed = json.loads(asked.read_text())["seed"]
    if not seed:
        raise ValueError("no seed")
    made.write_text(f"{os.getpid()} {seed}")
"""
"""Any module with such a function does."""


def test_one_process_computes_all_references_also_after_one_that_fails_and_ends_with_the_block(
    tmp_path, starts, monkeypatch
):
    (tmp_path / "tells_who_computes.py").write_text(REFERENCE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spec = spec_of("tiny-gpt2")

    def computed(seed):
        made = tmp_path / f"{seed}"
        process.run_apart("tells_who_computes", spec.model_copy(update={"seed": seed}), made)
        return made.read_text()

    with process.one_process():
        assert computed(3).endswith(" 3")
        with pytest.raises(HostError, match=r"the reference of tiny-gpt2 could not be computed: .+ no seed$"):
            computed(0)
        assert {computed(seed).split()[0] for seed in (4, 5)} == {str(starts[0].pid)}
        assert len(starts) == 1
    assert starts[0].returncode is not None


class Interrupting:
    """The answers of a process, of which the first call is interrupted."""

    def __init__(self, answers):
        self.answers, self.calls = answers, 0

    def readline(self):
        self.calls += 1
        if self.calls == 1:
            raise KeyboardInterrupt
        return self.answers.readline()


def test_after_an_interruption_each_reference_has_its_own_answer(tmp_path, starts, monkeypatch):
    """That of the interrupted question, an error, comes first and is nobody's."""
    (tmp_path / "says_its_seed.py").write_text(REFERENCE.replace("no seed", "of the first"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spec, made = spec_of("tiny-gpt2"), tmp_path / "made"

    def compute(seed):
        process.run_apart("says_its_seed", spec.model_copy(update={"seed": seed}), made)

    with process.one_process():
        compute(1)
        starts[0].stdout, answers = Interrupting(starts[0].stdout), starts[0].stdout
        with pytest.raises(KeyboardInterrupt):
            compute(0)
        compute(2)
        assert made.read_text() == f"{starts[0].pid} 2"
        with pytest.raises(HostError, match="of the first"):
            compute(0)
        starts[0].stdout = answers


def test_a_reference_process_that_dies_is_an_error_and_not_a_hang(tmp_path, starts, monkeypatch):
    monkeypatch.setattr(process.sys, "executable", "/bin/false")
    with (
        process.one_process(),
        pytest.raises(HostError, match="could not be computed: its process ended with status 1"),
    ):
        process.run_apart("engine.models.reference.teacher_forcing", spec_of("tiny-gpt2"), tmp_path / "x")
    assert len(starts) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise its priority")
def test_a_reference_has_ordinary_priority_in_the_session_of_an_emulation_that_has_more(
    tmp_path, monkeypatch
):
    """No clock waits for it. But the kernel shares the cores out by sessions first: in one of its own, it
    would get no more than any program of others.
    """
    (tmp_path / "tells_niceness.py").write_text(
        "import os\ndef main(arguments):\n    raise ValueError(os.nice(0), os.getsid(0))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    try:
        with pytest.raises(HostError, match=rf"could not be computed: ValueError: \(0, {os.getsid(0)}\)$"):
            process.run_apart("tells_niceness", spec_of("tiny-gpt2"), tmp_path / "made")
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def test_without_a_shared_process_each_reference_has_its_own(tmp_path, starts, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/says_its_seed.py").write_text(REFERENCE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    process.prepare("says_its_seed", [])
    assert starts == []
    for name in ("first", "second"):
        process.run_apart("says_its_seed", spec_of("tiny-gpt2"), tmp_path / name)
    assert len(starts) == 2 and all(one.returncode is not None for one in starts)
    assert {path.name for path in tmp_path.iterdir()} == {"modules", "first", "second"}


FORKED = """
import json, os, sys
from pathlib import Path

prepared = []

def main(arguments):
    if not arguments:
        prepared.append(os.getpid())
        raise ValueError("nobody waits for this")
    if arguments[1].endswith("dies"):
        os._exit(7)
    if arguments[1].endswith("fails"):
        print("much", file=sys.stderr)
        raise ValueError("no seed")
    said = [os.getpid(), os.getppid(), os.getsid(0), os.nice(0), prepared]
    Path(arguments[1]).write_text(json.dumps(said))
"""


@pytest.fixture
def forked(tmp_path, monkeypatch):
    """`forked(name)`: what a reference says that is computed in a copy of this process."""
    (tmp_path / "tells_who_forked.py").write_text(FORKED)
    monkeypatch.syspath_prepend(str(tmp_path))
    process.fork_references()

    def compute(name):
        process.run_apart("tells_who_forked", spec_of("tiny-gpt2"), tmp_path / name)
        return json.loads((tmp_path / name).read_text())

    yield compute
    process._shared.pop().close()


@pytest.fixture
def raised():
    """The niceness of this process, which only root may raise."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, -5 if os.geteuid() == 0 else before)
    yield os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before)


def test_a_forked_reference_is_no_program_and_has_an_ordinary_priority_in_this_session(
    raised, forked, starts
):
    pid, parent, session, niceness, _ = forked("made")
    assert starts == [] and parent == os.getpid() and session == os.getsid(0)
    assert niceness == max(0, raised) and process.pids() == {pid}
    process._shared[-1].close()
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, 0)


def test_a_forked_reference_keeps_nothing_open_that_was_opened_after_it(forked):
    """A run's relays of packets wait for the end of a pipe, and would wait for ever."""
    reading, writing = os.pipe()
    forked("made")
    os.close(writing)
    ended = select.select([reading], [], [], 0)[0]
    os.close(reading)
    assert ended


def test_what_a_process_was_told_to_prepare_is_there_when_it_is_asked(forked):
    process.prepare("tells_who_forked", [])
    pid, *_, prepared = forked("made")
    assert prepared == [pid]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("fails", "ValueError: no seed$"), ("dies", "its process ended with status 7 before it answered$")],
)
def test_a_forked_reference_that_fails_or_dies_is_an_error_with_its_sentence(forked, name, sentence):
    with pytest.raises(HostError, match=f"^the reference of tiny-gpt2 could not be computed: {sentence}"):
        forked(name)


def test_a_computation_says_how_far_it_is(tmp_path, monkeypatch):
    (tmp_path / "says.py").write_text(
        "from engine.models.reference.process import say\n"
        "def main(arguments):\n    say('1 of 2 tokens')\n    say('2 of 2 tokens')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(process, "TOLD_S", 0.0)
    process.fork_references()
    said = []
    process.run_apart("says", spec_of("tiny-gpt2"), tmp_path / "made", said=said.append)
    process._shared.pop().close()
    assert said == ["1 of 2 tokens", "2 of 2 tokens"]


@pytest.mark.parametrize("imported", [False, True])
def test_the_library_misses_what_it_needs_for_no_model_unless_a_part_of_it_may_have_found_it(
    imported, monkeypatch
):
    """A process of emulations that was copied in the middle of importing it has such a part."""
    monkeypatch.setattr(transformers_outputs, "UNUSED", ("nothing_of_ours",))
    monkeypatch.setitem(sys.modules, "transformers", None)
    if not imported:
        monkeypatch.delitem(sys.modules, "transformers")
    transformers_outputs.leave_out_unused()
    assert ("nothing_of_ours" in sys.modules) is not imported
    sys.modules.pop("nothing_of_ours", None)
