"""Sessions come from one process that imports what they need once, and that ends when nobody needs it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.cli.early import begin_early
from emulator.host.enter import SCRATCH
from emulator.host.leftovers import Process, children, is_alive, process
from emulator.host.places import queue_name
from emulator.session import fork_server
from emulator.session.calls import call, call_in
from emulator.session.client import SERVER, expect_emulations
from emulator.session.server import NEEDED_LAST
from emulator.session.turns import turn
from tests.support import session_bodies
from tests.support.web import wait_until

pytestmark = pytest.mark.root


@pytest.fixture(scope="module", autouse=True)
def no_server_before_and_none_after() -> Iterator[None]:
    fork_server._end()
    yield
    fork_server._end()


@pytest.fixture
def no_server_before() -> Iterator[None]:
    """For tests of a server's first calls; the others share one, as each takes a second to start."""
    fork_server._end()
    yield
    fork_server._end()  # it may be of another search path


@pytest.fixture(autouse=True)
def no_session_before() -> None:
    for server in fork_server.servers():
        wait_until(lambda pid=server: not children(pid), "no session is left")


def own_server() -> Process:
    (pid,) = fork_server.servers()
    found = process(pid)
    assert found is not None
    return found


@pytest.mark.usefixtures("no_server_before")
def test_sessions_come_from_the_same_process_and_each_has_its_own_memory() -> None:
    first = call(session_bodies.remember, "first")
    server = own_server()
    assert call(session_bodies.remember, "second") == ["second"], "it knows nothing of the other session"
    assert first == ["first"] and own_server() == server
    wait_until(lambda: not children(server.pid), "no session is left")


@pytest.mark.usefixtures("no_server_before")
def test_only_a_session_of_a_process_that_wants_several_finds_torch_imported() -> None:
    """The modules that a session starts with: of emulations only, and from the second one on."""
    calls = [call(session_bodies.imported, "torch") for _ in range(3)]
    assert calls == [False, False, False], "no function that is called needs it"
    expect_emulations()
    assert call(session_bodies.imported, "torch")
    assert not call(session_bodies.imported, NEEDED_LAST[-1])
    expect_emulations(many=True)
    wait_until(lambda: call(session_bodies.imported, NEEDED_LAST[-1]), "what references need")
    assert call(session_bodies.threads) == 1, "what is forked has no threads that could hold a lock"
    assert call(eval, "__import__('scipy').__name__") == "scipy", "which a method from outside may need"


@pytest.mark.usefixtures("no_server_before")
def test_a_command_that_runs_lets_torch_be_imported_with_a_session_s_priority_and_no_other_command_does() -> (
    None
):
    """A session of such a server has the priority of any other, also as a group (sched(7), autogroup)."""
    policy, niceness, group = call(session_bodies.real_time)
    fork_server._end()
    for argv in (["predict", "lab-3"], ["run", "--help"], []):
        begin_early(argv)
    assert fork_server.servers() == ()
    begin_early(["run", "lab-3"])
    assert call(session_bodies.imported, "torch")
    assert os.getpriority(os.PRIO_PROCESS, own_server().pid) == niceness
    again = call(session_bodies.real_time)
    assert again[:2] == [policy, niceness] and again[2].split()[1:] == group.split()[1:]


@pytest.mark.usefixtures("no_server_before")
def test_from_the_second_call_on_a_session_finds_networks_imported() -> None:
    """Asked by a function whose own module imports nothing."""
    is_there = "'emulator.network.mininet_network' in __import__('sys').modules"
    assert [call(eval, is_there) for _ in range(3)] == [False, True, True]


@pytest.mark.usefixtures("no_server_before")
def test_a_session_keeps_temporary_files_where_it_may_write_whatever_its_server_has_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library asks when it is imported: an ordinary user's server may not write where a session may."""
    (tmp_path / "sitecustomize.py").write_text("import tempfile\ntempfile.tempdir = '/var/tmp'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert call(session_bodies.directory_of_temporary_files) == SCRATCH


def test_a_session_does_not_hold_its_servers_connection() -> None:
    assert socket.SOCK_STREAM in call(session_bodies.kinds_of_sockets)
    assert socket.SOCK_SEQPACKET not in call(session_bodies.kinds_of_sockets)


def test_a_session_holds_its_turn_by_all_its_seats_however_many_there_are() -> None:
    """A turn alone has a seat of every run that the machine could do at once."""
    with ExitStack() as held, turn(queue_name(), lambda ahead: None) as mine:
        seats = [held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) for _ in range(64)]
        wide = mine._replace(descriptors=(*mine.descriptors, *(seat.fileno() for seat in seats)))
        assert call_in(wide, session_bodies.kinds_of_sockets).count(socket.SOCK_DGRAM) == 64


def test_a_session_holds_no_directory_or_namespace_of_its_start_and_no_other_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It becomes no program, at whose start the kernel would close them."""
    monkeypatch.setenv("LOOM_RUNS_AT_ONCE", "2")
    ready = tmp_path / "ready"
    with ThreadPoolExecutor(1) as beside:
        first = beside.submit(call, session_bodies.open_places_beside, str(ready), writes=(tmp_path,))
        try:
            wait_until(lambda: fork_server.servers() and children(own_server().pid), "the first session")
            second = call(session_bodies.open_places)
        finally:
            ready.touch()
    for held in (first.result(), second):
        assert all(place.endswith("(deleted)") for place in held), "its output is a file without a name"


def test_a_server_that_has_died_is_replaced() -> None:
    call(session_bodies.cores)
    before = own_server()
    os.kill(before.pid, signal.SIGKILL)
    assert call(session_bodies.remember, "again") == ["again"]
    assert own_server() != before


def test_a_server_that_nobody_asks_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    monkeypatch.setattr(fork_server, "KEPT_S", 0.0)
    with ours:
        fork_server.main(theirs.detach())
        assert ours.recv(1) == b"", "and says nothing"


def test_a_server_that_has_imported_its_modules_is_not_interrupted_any_more() -> None:
    child = os.fork()
    if not child:
        with fork_server.ended_with(os.getppid()):
            running = signal.getitimer(signal.ITIMER_REAL)[0] > 0
        os._exit(0 if running and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_process_has_a_server_of_its_own() -> None:
    call(session_bodies.cores)
    mine = own_server()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        call(session_bodies.cores)
        os.write(writing, str(own_server().pid).encode())
        fork_server._end()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    theirs = int(os.read(reading, 20))
    assert theirs != mine.pid and process(theirs) is None
    assert is_alive(mine) and call(session_bodies.remember, "still") == ["still"]


@pytest.mark.usefixtures("no_server_before")
def test_several_threads_may_ask_at_once() -> None:
    found: list[object] = []

    def ask(name: str) -> None:
        found.append(call(session_bodies.remember, name))

    threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == [f"['{number}']" for number in range(4)]


def test_a_program_that_ends_leaves_no_server() -> None:
    text = "from emulator.session import fork_server, isolation\n"
    text += f"isolation.prepare({SERVER!r}, many=False)\nprint(*fork_server.servers(), flush=True)\ninput()\n"
    root = Path(__file__).resolve().parents[3]
    for end in ("a line", "a signal"):
        with subprocess.Popen(
            (sys.executable, "-c", text), cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as program:
            assert program.stdin is not None and program.stdout is not None
            server = process(int(program.stdout.readline()))
            assert server is not None
            if end == "a line":
                program.communicate("\n")
            else:
                program.kill()
        wait_until(lambda server=server: not is_alive(server), "the server has ended")
