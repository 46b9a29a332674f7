"""A real Redis server, people, and real workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.core.management.commands import flush
from whitenoise.middleware import WhiteNoiseMiddleware

from engine.strategies.registry import STRATEGIES
from tests.support.web import Browser, RedisServer, Worker, person, redis_in_use
from webapp.accounts.sessions import SessionStore
from webapp.base.redis import client
from webapp.celery import app as celery
from webapp.clusters import tasks as _cluster_tasks  # noqa: F401  (makes the tasks known)
from webapp.experiments import executions as _executions
from webapp.experiments import tasks as _experiment_tasks  # noqa: F401
from webapp.jobs import answers
from webapp.runs import tasks as _run_tasks  # noqa: F401

asked_as_it_is = answers.ask


# Redis --------------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    with redis_in_use(server):
        yield server
    server.stop()


@pytest.fixture
def live_redis(redis_server: RedisServer) -> redis.Redis:
    """The session's Redis, without what earlier tests left in it; workers stay announced."""
    kinds = ("run:", "ctl:", "reply:", "rate:", "storage:", "wanted:", "planning:", "node:")
    if left := [key for key in client().scan_iter() if key.startswith(kinds) or key in ("plan", "emulate")]:
        client().delete(*left)
    return client()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may stop."""
    server = RedisServer(tmp_path)
    server.start()
    with redis_in_use(server):
        yield server
    server.stop()


@pytest.fixture(scope="session", autouse=True)
def static_files_are_listed_once() -> Iterator[None]:
    """Every client of a test has middleware of its own, which looks at hundreds of files: a third of the
    time of most tests.
    """
    listed: dict[str, dict[str, Any]] = {}
    whole = WhiteNoiseMiddleware.add_files_from_finders

    def add(middleware: WhiteNoiseMiddleware) -> None:
        places = str(django_settings.STATICFILES_DIRS)
        if places not in listed:
            whole(middleware)
            listed[places] = dict(middleware.files)
        middleware.files.update(listed[places])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add)
        yield


@pytest.fixture(scope="session", autouse=True)
def emptied_tables_stay_empty() -> Iterator[None]:
    """After each test with transactions of its own Django empties all tables, and would then make rows for
    its permissions, which nothing here uses: longer than most such tests take.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "emit_post_migrate_signal", lambda *given, **named: None)
        yield


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """Slow hashes are right for people and a second per login for tests."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def models_dir(settings: Any, tmp_path: Path) -> Path:
    settings.MODELS_DIR = tmp_path / "models"
    settings.MODELS_DIR.mkdir()
    return settings.MODELS_DIR


# People -------------------------------------------------------------------------------------------
@pytest.fixture
def anna(db: None) -> User:
    return User.objects.create_user("anna")


@pytest.fixture
def alice(db: None) -> Browser:
    """An operator, logged in."""
    return logged_in("alice", "operator")


@pytest.fixture
def victor(db: None) -> Browser:
    """A viewer, logged in."""
    return logged_in("victor", "viewer")


def logged_in(name: str, group: str) -> Browser:
    """Somebody new with the session that a log-in makes: to log in, and so to note and to look for wrong
    log-ins, takes as long as many a test.
    """
    browser, user, session = Browser(), person(name, group), SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = django_settings.AUTHENTICATION_BACKENDS[-1]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    browser.client.cookies[django_settings.SESSION_COOKIE_NAME] = session.session_key
    return browser


# Planning -----------------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def planning_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans and fits are computed in the test's process, unless the test has a planning worker or asks for
    `planning_as_it_is`.
    """
    if not {"plan_worker", "planning_as_it_is"} & set(request.fixturenames):
        monkeypatch.setattr(answers, "ask", computed_here)


COMPUTED_HERE = (
    "plan.plan_run",
    "plan.validate",
    "plan.check_experiment",
    "plan.preview_experiment",
    "plan.freeze_experiment",
    "plan.experiment_planners",
    "plan.experiment_remedies",
)


def computed_here(task: str, arguments: list[Any], person: int, large: bool = False) -> dict[str, Any]:
    if task not in COMPUTED_HERE:
        return asked_as_it_is(task, arguments, person, large)
    return answers.answer_of(json.loads(json.dumps(celery.tasks[task].answer(*arguments))))


@pytest.fixture
def no_strategy_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """No strategy plans in the test's process."""
    for strategy in STRATEGIES:
        monkeypatch.setattr(type(strategy), "plan", lambda *given: pytest.fail("planned in the web process"))


@pytest.fixture
def planning_as_it_is() -> None:
    """Questions go to the workers, of which there may be none."""


@pytest.fixture(autouse=True)
def no_worker_is_about_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WORKER_STARTS_S", 0)


@pytest.fixture
def nobody_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is told of an experiment's points: tests carry them out themselves."""
    monkeypatch.setattr(_executions, "announce", lambda count: None)


# Workers ------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def plan_worker(
    redis_server: RedisServer, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    """One for all tests of a file: it takes seconds to start, and keeps nothing from one test to the next.

    Such tests need `live_redis` too. It joins as a worker on another machine does, by `./loom worker`.
    """
    with Worker("plan", tmp_path_factory.mktemp("plan"), by_hand=True) as worker:
        yield worker


@pytest.fixture(scope="module")
def emulate_worker(
    redis_server: RedisServer, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    with Worker("emulate", tmp_path_factory.mktemp("emulate")) as worker:
        yield worker
