"""One process for many references: it starts once, reports why a reference fails, continues, and ends."""

import errno
import json
import os
import sys

import pytest
import torch

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
        process.run_apart(
            "engine.models.reference.transformers_outputs", spec_of("tiny-gpt2"), tmp_path / "x"
        )
    assert len(starts) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise its priority")
def test_a_reference_has_ordinary_priority_beside_an_emulation_that_has_more(tmp_path, monkeypatch):
    """No clock waits for it, and others use the cores, too."""
    (tmp_path / "tells_niceness.py").write_text("import os, sys\nsys.exit(str(os.nice(0)))\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    try:
        with pytest.raises(HostError, match=r"could not be computed: 0$"):
            process.run_apart("tells_niceness", spec_of("tiny-gpt2"), tmp_path / "made")
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def test_without_a_shared_process_each_reference_has_its_own(tmp_path, starts):
    """Any program does that reads a file and writes another."""
    for name in ("first", "second"):
        process.run_apart("json.tool", spec_of("tiny-gpt2"), tmp_path / name)
    assert len(starts) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second"}


FORKED = """
import json, os, sys
from pathlib import Path
import torch

def main(arguments):
    if arguments[1].endswith("dies"):
        os._exit(7)
    if arguments[1].endswith("fails"):
        print("much", file=sys.stderr)
        raise ValueError("no seed")
    said = [os.getpid(), os.getppid(), os.getpgid(0), os.nice(0), torch.get_num_threads()]
    Path(arguments[1]).write_text(json.dumps(said))
"""


@pytest.fixture
def forked(tmp_path, monkeypatch):
    """`forked(name)`: what a reference says that is computed in a copy of this process."""
    (tmp_path / "tells_who_forked.py").write_text(FORKED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(process, "_forks", True)

    def compute(name):
        process.run_apart("tells_who_forked", spec_of("tiny-gpt2"), tmp_path / name)
        return json.loads((tmp_path / name).read_text())

    return compute


def test_a_forked_reference_is_no_program_and_has_all_cores_and_an_ordinary_priority(forked, starts):
    torch.set_num_threads(1)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    raised = -5 if os.geteuid() == 0 else before
    os.setpriority(os.PRIO_PROCESS, 0, raised)
    try:
        pid, parent, group, niceness, threads = forked("made")
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
    assert starts == [] and parent == os.getpid() and group == pid
    assert niceness == max(0, raised) and threads == len(os.sched_getaffinity(0))
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, 0)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("fails", "ValueError: no seed$"), ("dies", "its process ended with status 7 before it answered$")],
)
def test_a_forked_reference_that_fails_or_dies_is_an_error_with_its_sentence(forked, name, sentence):
    with pytest.raises(HostError, match=f"^the reference of tiny-gpt2 could not be computed: {sentence}"):
        forked(name)


@pytest.fixture
def written(monkeypatch):
    """References are as many bytes as were written before, and are read as what the file has."""
    drafts = []

    def compute(module, spec, draft):
        drafts.append(draft)
        draft.write_bytes(b"x" * len(drafts))

    monkeypatch.setattr(transformers_outputs, "run_apart", compute)
    monkeypatch.setattr(transformers_outputs, "_read", lambda path: path.read_bytes())
    return drafts


def test_two_emulations_with_equal_pids_may_compute_the_same_reference_at_once(
    tmp_path, monkeypatch, written
):
    """Each is in a PID namespace of its own, and the cache is one."""
    compute, spec = transformers_outputs.run_apart, spec_of("tiny-gpt2")

    def compute_beside_another(*given):
        compute(*given)
        if len(written) == 1:
            transformers_outputs.load_or_compute(spec, tmp_path)

    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(transformers_outputs, "run_apart", compute_beside_another)
    assert transformers_outputs.load_or_compute(spec, tmp_path) == b"x"
    (kept,) = (tmp_path / "references").iterdir()
    assert kept.read_bytes() == b"x" and len({*written, kept}) == 3


@pytest.mark.parametrize("full", ["copyfile", "mkdir"])
def test_a_cache_that_cannot_be_written_costs_a_run_nothing_but_time(tmp_path, monkeypatch, written, full):
    """A healthy run failed at its end because the disk was full."""

    def refuse(*given, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        place = transformers_outputs.shutil if full == "copyfile" else transformers_outputs.Path
        disk.setattr(place, full, refuse)
        assert transformers_outputs.load_or_compute(spec_of("tiny-gpt2"), tmp_path) == b"x"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert transformers_outputs.load_or_compute(spec_of("tiny-gpt2"), tmp_path) == b"xx"
    assert transformers_outputs.load_or_compute(spec_of("tiny-gpt2"), tmp_path) == b"xx"
    assert not any(draft.exists() for draft in written)


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
