"""`./loom up`: set up what is missing, start everything on this machine, watch it, stop it all.

The lock on `.loom/up.lock` means that EdgeLoom runs from this checkout. The kernel releases it when the
process ends, however it ends.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from engine.domain.command_name import COMMAND, IS_CHECKOUT
from engine.domain.state_directory import state_directory
from engine.plugins.installed import not_named
from webapp.base import private
from webapp.base.front_end import why_no_pages
from webapp.base.up_lock import UP_LOCK
from webapp.ops import debian, first_model, services
from webapp.ops.health import HealthWatch, answers_http
from webapp.ops.places import FRONTEND, PREPARED, PYTHON, ROOT, OpsError, echo, shown
from webapp.ops.redis_server import RedisServer, is_free, private_redis, redis_program
from webapp.ops.setup import RUNTIME_LOCK, set_up, set_up_python
from webapp.ops.steps import PROGRESS_EVERY_S, fingerprint_of, last_line, open_lock
from webapp.ops.supervisor import Child, Supervisor

LAST_PORT = 65535
REDIS_ATTEMPTS = 5
NICENESS = -10
"""Of Redis, the web process and the emulating worker: beside emulations, which have -20, each gets a core's
tenth where it asks for all of it (sched_prio_to_weight: 9,548 and 88,761), with 0 a hundredth.
"""
ONE_USER = (
    "All processes are the same user of the Redis that REDIS_URL names, so whoever has a worker's address "
    "can write tasks of every queue: docs/guides/security.md says how each kind gets a user of its own."
)


def up(port: int, *, with_model: bool) -> int:
    """Runs until Ctrl-C or SIGTERM, and then returns 0; raises `OpsError`.

    with_model: whether a trained model is fetched beside all else, unless it is here.
    """
    url = f"http://{services.HOST}:{port}"
    with only_one(state_directory(), url):
        if not is_free(port):
            raise OpsError(f"Port {port} is in use by another program: choose another with --port N.")
        given_redis = os.environ.get("REDIS_URL")
        begin = time.monotonic()
        with private.not_for_secrets():
            worked = IS_CHECKOUT and set_up(redis=not given_redis)
        if worked:
            echo(f"Set-up done in {time.monotonic() - begin:.0f} s.")
        with Supervisor() as supervisor:
            try:
                _start(supervisor, port, url, given_redis)
                if with_model:
                    first_model.fetch_beside()
                supervisor.watch()
            except KeyboardInterrupt:
                echo("\nStopping …")
    echo("Stopped.")
    return 0


def _start(supervisor: Supervisor, port: int, url: str, given_redis: str | None) -> None:
    server = start_redis(supervisor) if given_redis is None else None
    # Five processes would otherwise compile the same modules at each start, where the environment forbids to
    # keep what is compiled.
    python = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}

    def environment_of(kind: str) -> dict[str, str]:
        return {**os.environ, **python, "REDIS_URL": server.url_of(kind) if server else given_redis or ""}

    environment = environment_of("web")
    web = web_child(port, environment)
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(why_not_emulating)
        greeting = prepare_database(environment)
        echo("Starting the web server …")
        supervisor.start(web)  # alone, as the workers would take the cores from it for seconds
        refusal = asked.result()
    HealthWatch(web, lambda: answers_http(f"{url}/api/session")).start()
    if server:
        HealthWatch(supervisor.children[0], server.answers_or_ends_script).start()
    queues = [queue for queue in services.QUEUES if queue != "emulate" or not refusal]
    workers = [worker_child(queue, environment_of(queue)) for queue in queues]
    supervisor.launch(*workers)
    for line in greeting:
        echo(line)
    if given_redis and has_one_user(given_redis):
        echo(ONE_USER)
    for sentence in (*not_used(), why_no_pages()):
        if sentence:
            echo(sentence)
    if refusal:
        echo(f"{refusal} Until then runs wait in the queue; predictions work.")
        emulating = worker_child("emulate", environment_of("emulate"))
        supervisor.launch_when(emulating, lambda: not why_not_emulating())
    echo(f"EdgeLoom is ready: {url}   (Ctrl-C stops it)")


def not_used() -> Iterator[str]:
    """In sentences: what packages add and this server does not use, and how it would."""
    for kind, names in not_named():
        every = ",".join(filter(None, (os.environ.get(kind.variable), *names)))
        yield (
            f"Installed and not used: the {kind.name} {' and '.join(names)}. To use what is installed: "
            f"{kind.variable}={every} {COMMAND} up."
        )


def start_redis(supervisor: Supervisor) -> RedisServer:
    """Start the private Redis. Another program, such as a second EdgeLoom that starts at the same moment, may
    take its port between the choice and the start: then it gets another one. Raises `OpsError`.
    """
    for left in reversed(range(REDIS_ATTEMPTS)):
        server, configuration = private_redis(state_directory())
        child = redis_child(server, configuration)
        try:
            supervisor.start(child)
        except OpsError:
            if not left or is_free(server.port):  # it ended for another reason
                raise
            supervisor.children.remove(child)
        else:
            return server
    raise AssertionError("the last attempt returns or raises")


def has_one_user(redis_url: str) -> bool:
    """Whether this address is that of Redis' user for everybody, who is the one without a name."""
    return urlsplit(redis_url).username in (None, "", "default")


@contextmanager
def only_one(directory: Path, url: str) -> Iterator[None]:
    """Hold the lock of this checkout. Raises `HostError` with the address of an EdgeLoom that already runs,
    or if the directory cannot be used.
    """
    private.close(directory)
    private.check_writable(directory)
    with open_lock(directory / UP_LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise OpsError(
                f"EdgeLoom already runs here ({lock.read().strip()}): open it there, or stop it with Ctrl-C."
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()}, {url}")
        lock.flush()
        yield


def prepare_database(environment: Mapping[str, str]) -> list[str]:
    """Create tables, administrator and demo clusters; returns lines to show, such as the new password.

    Nothing is due where the database on this machine was prepared by this code.
    """
    stamp = state_directory() / PREPARED
    if (now := _prepared_now()) and stamp.exists() and stamp.read_text() == now:
        return []
    log = state_directory() / "logs" / "prepare.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    begin_s = time.monotonic()
    title = "Preparing the database …"
    echo(title)
    with log.open("wb") as errors:
        prepares = subprocess.Popen(
            (str(PYTHON), "-m", "webapp.ops.prepare"),
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        with prepares:
            lines = _lines_of(
                prepares, lambda: f"Preparing the database … {time.monotonic() - begin_s:.0f} s"
            )
    if prepares.returncode:
        raise OpsError(f"The database cannot be prepared: {last_line(log)!r}; read {shown(log)}.")
    try:
        stamp.write_text(_prepared_now())
    except OSError as error:
        raise OpsError(f"{shown(stamp)} cannot be written: {error.strerror}: make room there.") from error
    return lines


def _lines_of(process: subprocess.Popen[str], words: Callable[[], str]) -> list[str]:
    """What a process prints until it ends; meanwhile `words` now and then."""
    while True:
        try:
            said, _ = process.communicate(timeout=PROGRESS_EVERY_S)
        except subprocess.TimeoutExpired:
            echo(words())
        except BaseException:
            process.kill()
            raise
        else:
            return [line for line in said.splitlines() if line.strip()]


def _prepared_now() -> str:
    """The code and the SQLite file as they are now; of another database nobody here knows who changed it."""
    database = state_directory() / "edgeloom.sqlite3"
    if os.environ.get("DATABASE_URL") or not database.exists():
        return ""
    rooms = [path for path in (ROOT / "webapp").iterdir() if path.is_dir() and path != FRONTEND]
    folders = [ROOT / "engine", ROOT / "emulator", ROOT / "topologies", *rooms]
    code = [path for folder in folders for ending in (".py", ".toml") for path in folder.rglob(f"*{ending}")]
    locked = [RUNTIME_LOCK] if IS_CHECKOUT else []
    return f"{database.stat().st_ino} {fingerprint_of([*code, *locked])}"


def why_not_emulating() -> str:
    """The sentence why this machine cannot emulate, with the remedy, or ""."""
    if missing := debian.missing_of(debian.EMULATOR_PACKAGES):
        return f"Emulating needs programs that are missing: {debian.remedy(missing)}."
    command = (str(PYTHON), "-c", "from emulator.host.rights import main; main()")
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()


def redis_child(server: RedisServer, configuration: Path) -> Child:
    return _child(
        "redis", (redis_program(), str(configuration)), dict(os.environ), lambda _: server.answers()
    )


def web_child(port: int, environment: Mapping[str, str]) -> Child:
    service = services.web(port=port)
    return _child(
        service.name,
        (str(PYTHON), *service.arguments),
        environment,
        lambda _: answers_http(f"http://{services.HOST}:{port}/api/session"),
    )


def worker_child(queue: str, environment: Mapping[str, str]) -> Child:
    """The child that is a worker of `queue`. Nobody waits for it: it announces itself when it takes work."""
    service = services.worker(queue)
    return _child(service.name, (str(PYTHON), *service.arguments), environment, lambda _: True)


def _child(
    name: str, command: tuple[str, ...], environment: Mapping[str, str], is_ready: Callable[[Child], bool]
) -> Child:
    log = state_directory() / "logs" / f"{name}.log"
    niceness = 0 if name in ("worker-plan", "worker-points") else NICENESS
    child = Child(name, command, log, environment, is_ready=lambda: is_ready(child), niceness=niceness)
    return child


def worker(queue: str) -> int:
    """`./loom worker`: set up what it needs, then become a worker of an EdgeLoom on another machine."""
    for name in services.SHARED_SETTINGS:
        if not os.environ.get(name):
            raise OpsError(
                f"{name} is not set: a worker joins the EdgeLoom whose REDIS_URL and DATABASE_URL it is "
                f"given; {COMMAND} up starts its own workers."
            )
    if has_one_user(os.environ["REDIS_URL"]):
        echo(ONE_USER)
    service = services.worker(queue)
    if service.makes_namespaces:
        debian.install(debian.EMULATOR_PACKAGES)
    if IS_CHECKOUT:
        set_up_python()
    if service.makes_namespaces and (refusal := why_not_emulating()):
        raise OpsError(refusal)
    os.chdir(ROOT)
    sys.stderr.flush()
    os.execv(PYTHON, (str(PYTHON), *service.arguments))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=_port, default=services.PORT, help=f"default {services.PORT}")
    parser.add_argument(
        "--without-model",
        action="store_true",
        help="do not fetch a trained model that answers questions, beside everything else",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 1 to {LAST_PORT}")
    return int(text)
