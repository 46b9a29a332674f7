"""No process of an emulation has rights on this machine that an ordinary user lacks; whoever starts it."""

import os
import platform
import socket
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from emulator.host.enter import MOST_PROCESSES
from emulator.host.leftovers import Process, children
from emulator.host.refused_calls import NUMBERS
from emulator.host.rights import IDENTITY, grants, is_machine_root, rights
from emulator.session import view
from emulator.session.calls import call
from emulator.session.client import emulate
from emulator.session.fork_server import servers
from emulator.session.notes import Notes
from engine.domain.events import Event, ReportMade, StateChanged
from engine.domain.report import Fidelity
from engine.domain.trace import Mark
from engine.ops.torch_kernels.row_library import folder
from tests.emulator.session.test_emulate import spec_for
from tests.support import session_bodies
from tests.support.network_bodies import interfaces
from tests.support.small_clusters import star

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[3]


def below(pid: int) -> list[Process]:
    found = children(pid)
    return found + [deeper for child in found for deeper in below(child.pid)]


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def users_of(pid: int) -> tuple[set[int], list[int], str]:
    """Its users and groups as this process numbers them, the user that root is inside, its user namespace."""
    found = status(pid)
    numbers = {int(one) for name in ("Uid", "Gid", "Groups") for one in found[name].split()}
    inner, outer, count = map(int, Path(f"/proc/{pid}/uid_map").read_text().split())
    assert (inner, count) == (0, 1), "nobody but its own root exists inside"
    return numbers, [outer], os.readlink(f"/proc/{pid}/ns/user")  # noqa: PTH115


def test_no_process_of_a_run_has_this_machines_root() -> None:
    assert rights().kind == "own"
    seen: dict[str, int] = {}

    def look(events: list[Event]) -> None:
        if any(isinstance(event, StateChanged | Mark) for event in events):
            for known in [each for server in servers() for each in below(server)]:
                try:
                    numbers, outside, namespace = users_of(known.pid)
                    found = status(known.pid)
                except (FileNotFoundError, ProcessLookupError):  # a program that has ended since
                    continue
                own = {IDENTITY} if is_machine_root() else {os.getuid(), os.getgid(), *os.getgroups()}
                assert numbers <= own, f"{known.pid} is {numbers}"
                assert outside == [IDENTITY if is_machine_root() else os.getuid()]
                assert namespace != os.readlink("/proc/self/ns/user")  # noqa: PTH115
                assert found["NoNewPrivs"] == "1"
                seen[found["Name"]] = known.pid

    before = interfaces()
    report = emulate(spec_for(star(3, delay_s=0.002), new_tokens=20), look)
    assert report.outcome.kind == "finished" and report.correctness.ok
    assert len(seen) >= 2, "the session, its devices and the shells of its nodes were seen"
    assert interfaces() == before


def test_the_session_sees_no_secrets_and_writes_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "secret_key").write_text("hidden")
    monkeypatch.setenv("LOOM_STATE_DIR", str(state))
    monkeypatch.setenv("REDIS_URL", "redis://:password@127.0.0.1/0")
    monkeypatch.setenv("SECRET_KEY", "hidden")
    work = state / "work"
    work.mkdir()
    code, secret = str(ROOT / "emulator"), str(state / "secret_key")
    found = call(session_bodies.sight, str(state), code, secret, writes=(work,))
    assert found["entries"] == ["work"] and found["read"] == "ENOENT"
    assert not {"REDIS_URL", "SECRET_KEY", "LOOM_STATE_DIR"} & set(found["environment"])
    assert found["write"] == ["EROFS", "EROFS", "EROFS"]
    assert found["uncover"] == "EINVAL", "what is covered stays covered"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a home in /var")
@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_a_sessions_own_code_reaches_no_home_no_agent_and_no_code_of_other_processes(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an ordinary user, the session is that user: modes of files keep nothing from it."""
    if user == "ordinary":
        monkeypatch.setattr(view, "identity", lambda: None)
    with TemporaryDirectory(dir="/tmp") as shared, TemporaryDirectory(dir="/var") as home:
        for path in (shared, home):
            Path(path).chmod(0o755)
        monkeypatch.setenv("HOME", home)
        monkeypatch.setenv("XDG_CACHE_HOME", f"{home}/.cache")
        monkeypatch.setattr(view, "default_state_directory", lambda: Path(home, ".local/state/edgeloom"))
        secrets = [Path(home, one) for one in (".ssh/id_ed25519", ".local/state/edgeloom/secret_key")]
        for secret in secrets:
            secret.parent.mkdir(parents=True)
            secret.write_text("hidden")
        agents = [f"{path}/agent" for path in (shared, home)]
        with ExitStack() as listening:
            for path in agents:
                agent = listening.enter_context(socket.socket(socket.AF_UNIX))
                agent.bind(path)
                agent.listen()
                Path(path).chmod(0o777)
            found = call(session_bodies.reach, [*map(str, secrets)], agents, str(folder()))
    assert found["read"] == found["connect"] == ["ENOENT", "ENOENT"]
    assert found["library"] == "EROFS" and found["cache"] == "../compiled"
    assert found["processes"] <= MOST_PROCESSES and found["more"] == "EPERM"


@pytest.mark.skipif(
    platform.machine() not in NUMBERS, reason="the numbers of this processor's calls are unknown"
)
def test_a_session_opens_no_socket_past_its_network_and_no_key_of_its_starter() -> None:
    found = call(session_bodies.doors)
    assert found.pop("keyring") == found.pop("io_uring") == "ENOSYS"
    assert {name for name, error in found.items() if error == "EAFNOSUPPORT"} == {"AF_VSOCK", "AF_ALG"}
    assert not any(found[name] for name in ("AF_UNIX", "AF_INET", "AF_NETLINK", "AF_PACKET"))


def test_a_session_that_was_started_where_secrets_are_does_not_see_them_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests"))  # for a fork server of its own, started here
    with TemporaryDirectory() as state:
        Path(state).chmod(0o755)
        Path(state, "secret_key").write_text("hidden")
        monkeypatch.setenv("LOOM_STATE_DIR", state)
        monkeypatch.chdir(state)
        found = call(session_bodies.sight, ".", str(ROOT / "emulator"), "secret_key")
        monkeypatch.undo()
    assert "secret_key" not in found["entries"] and found["read"] == "ENOENT"


def test_a_session_gets_what_priority_its_starter_may_give() -> None:
    policy, niceness, group = call(session_bodies.real_time)
    may = {grant.name: grant.ok for grant in grants()}
    assert policy == (os.SCHED_RR if may["real-time priority"] else os.SCHED_OTHER)
    assert (niceness == -20) is may["high priority"]
    assert group == "" or ("nice -20" in group) is may["high priority"]


def test_a_report_says_which_rights_were_missing_where_it_is_not_valid() -> None:
    notes = Notes("It had root.", "It lacked priority.")
    for valid, expected in ((True, ("It had root.",)), (False, ("It had root.", "It lacked priority."))):
        made = ReportMade.model_construct(fidelity=Fidelity(valid=valid))
        assert notes.added_to(made).fidelity.notes == expected
