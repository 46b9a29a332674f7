"""What a server deletes and when, new passwords, and the nightly backup of docs/guides/lab.md, restored."""

from __future__ import annotations

import argparse
import math
import re
import shlex
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import crossplane
import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import serializers
from django.core.management import call_command
from django.utils import timezone

from engine.domain.errors import SpecError
from tests.support.web import Browser, person, request_body, run_spec
from webapp.accounts.forgotten import new_password
from webapp.clusters.models import StoredModel
from webapp.events.models import EventSegment
from webapp.experiments.models import Cell, Execution, Experiment
from webapp.operations import commands
from webapp.operations.upkeep import tidy
from webapp.ops.places import ROOT
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)
DOCUMENT = (ROOT / "docs" / "guides" / "lab.md").read_text()
UNITS = dict(re.findall(r"```ini\n# /etc/systemd/system/(\S+)\n(.*?)```", DOCUMENT, re.DOTALL))


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    settings.MODEL_STORE = str(tmp_path / "store")
    settings.MODEL_CACHE = tmp_path / "cache"
    settings.MACHINES_DIR = tmp_path / "machines"
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # nobody works


def ended(days_ago: float, **more: Any) -> Run:
    """A run with events that ended then."""
    fields = {
        "status": "finished",
        "archived": True,
        "finished_at": timezone.now() - timedelta(days=days_ago),
    }
    spec = run_spec().model_dump(mode="json")
    run = Run.objects.create(
        request=request_body(), spec=spec, cluster_name="lab-3", strategy="voltage", **fields | more
    )
    EventSegment.objects.create(run=run, first=1, last=2, batches=b"1")
    return run


def test_old_runs_go_with_their_events_and_those_that_go_on_or_are_younger_stay(settings: Any) -> None:
    old, young = ended(31), ended(29)
    active = ended(31, status="running")
    assert tidy()["runs"] == 0 and Run.objects.count() == 3
    settings.KEEP_RUNS_DAYS = 30
    assert tidy()["runs"] == 1
    assert set(Run.objects.all()) == {young, active}
    assert not EventSegment.objects.filter(run_id=old.pk).exists() and EventSegment.objects.count() == 2


def test_events_may_go_before_their_run(settings: Any) -> None:
    old, young = ended(8), ended(6)
    settings.KEEP_EVENTS_DAYS = 7
    assert tidy()["segments of events"] == 1
    assert [one.run for one in EventSegment.objects.all()] == [young] and old in Run.objects.all()


def test_a_model_that_no_run_has_used_for_long_goes(settings: Any) -> None:
    for name in ("used", "unused", "new", "waited for"):
        StoredModel.objects.create(name=name, digest=name, bytes=1, spec={}, by="ann")
    StoredModel.objects.exclude(name="new").update(since=timezone.now() - timedelta(days=40))
    ended(0, model="used")
    ended(0, model="waited for", status="queued")
    Run.objects.filter(status="queued").update(created_at=timezone.now() - timedelta(days=35))
    settings.KEEP_MODELS_DAYS = 30
    assert tidy()["models"] == 1
    assert set(StoredModel.objects.values_list("name", flat=True)) == {"used", "new", "waited for"}


def test_a_model_of_an_experiment_stays_that_was_edited_or_started_lately_or_has_points_to_compute(
    settings: Any,
) -> None:
    long_ago = timezone.now() - timedelta(days=40)
    designs = {
        name: {"name": name, "base": {"model": name}, "factors": [{"values": ["lab-3", f"{name}-too"]}]}
        for name in ("old", "edited", "computed", "waiting")
    }
    for name in [*designs, *(f"{name}-too" for name in designs), "edit"]:
        StoredModel.objects.create(name=name, digest=name, bytes=1, spec={}, by="ann")
    StoredModel.objects.update(since=long_ago)
    for name, document in designs.items():
        experiment = Experiment.objects.create(name=name, document=document)
        if name != "edited":
            Experiment.objects.filter(pk=experiment.pk).update(updated_at=long_ago)
            execution = Execution.objects.create(experiment=experiment, document=document)
            Execution.objects.filter(pk=execution.pk).update(
                created_at=long_ago, served_at=timezone.now() if name == "computed" else long_ago
            )
            status = "waiting" if name == "waiting" else "finished"
            point = Run.objects.create(digest=name, world="predicted", status=status, listed=False)
            Cell.objects.create(execution=execution, index=0, coordinates={}, run=point)
    settings.KEEP_MODELS_DAYS = 30
    assert tidy()["models"] == 3
    gone = {"old", "old-too", "edit"}
    left = set(StoredModel.objects.values_list("name", flat=True))
    assert left == {name for one in designs for name in (one, f"{one}-too")} - gone


@pytest.mark.parametrize("days", [-1.0, math.inf, math.nan])
def test_a_limit_that_is_no_number_of_days_deletes_nothing(settings: Any, days: float) -> None:
    settings.KEEP_RUNS_DAYS, settings.KEEP_EVENTS_DAYS = 1.0, days
    ended(31)
    with pytest.raises(SpecError, match=r"LOOM_KEEP_EVENTS_DAYS is .*nothing was deleted"):
        tidy()
    assert Run.objects.count() == EventSegment.objects.count() == 1


def test_sessions_that_are_over_go_and_others_stay() -> None:
    for name, days in (("over", -1), ("valid", 1)):
        Session.objects.create(
            session_key=name, session_data="", expire_date=timezone.now() + timedelta(days=days)
        )
    assert tidy()["sessions"] == 1
    assert Session.objects.get().session_key == "valid"


def test_somebody_who_forgot_the_password_gets_a_new_one_and_former_sessions_end() -> None:
    person("eve", "operator")
    before = Browser()
    assert before.log_in("eve").status_code == 200
    wrong = Browser()
    assert [wrong.log_in("eve", "guess").status_code for _ in range(6)][-1] == 429
    password = new_password("eve")
    assert before.get("/account").status_code == 401
    assert Browser().log_in("eve").status_code == 401
    assert Browser().log_in("eve", password).status_code == 200
    with pytest.raises(SpecError, match="nobody named 'nobody'"):
        new_password("nobody")


# Backups ------------------------------------------------------------------------------------------
def rows() -> list[str]:
    return sorted(
        serializers.serialize("json", kind.objects.order_by("pk")) for kind in (User, Run, EventSegment)
    )


def test_what_the_timers_service_writes_each_night_can_be_restored_and_old_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person("ann", "operator")
    ended(1)
    before = rows()
    lines = [
        line.partition("=")[2]
        for line in UNITS["edgeloom-backup.service"].splitlines()
        if "ExecStart" in line
    ]
    known = {command.name: command for command in commands.COMMANDS}
    for night in range(16):
        monkeypatch.setattr(commands.time, "strftime", lambda form, night=night: f"2026-01-{night:02}")
        for line in lines if night == 15 else lines[-1:]:
            name, *arguments = shlex.split(line.replace("/var/backups/edgeloom", str(tmp_path)))[1:]
            parser = argparse.ArgumentParser()
            known[name].add_arguments(parser)
            assert known[name].run(parser.parse_args(arguments)) == 0
    files = sorted(path.name for path in tmp_path.glob("*.backup"))
    assert files == [f"edgeloom-2026-01-{night:02}.backup" for night in range(2, 16)]
    call_command("flush", interactive=False, verbosity=0)
    commands.run_restore(argparse.Namespace(file=tmp_path / files[-1], replace=False))
    assert rows() == before


def test_systemd_finds_nothing_wrong_with_the_timer_and_its_service(tmp_path: Path) -> None:
    for name, text in UNITS.items():
        (tmp_path / name).write_text(text.replace("/opt/edgeloom", str(ROOT)))
    files = [str(tmp_path / name) for name in UNITS]
    done = subprocess.run(("systemd-analyze", "verify", *files), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_nginx_finds_nothing_wrong_with_the_file_for_it(tmp_path: Path) -> None:
    """By nginx's tables of directives and, where it is installed, by nginx itself."""
    (site,) = re.findall(r"```nginx\n(.*?)```", DOCUMENT, re.DOTALL)
    site = site.replace("/etc/ssl", str(tmp_path)).replace("listen 80;", "listen 127.0.0.1:8080;")
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=edgeloom", "-days", "1")
    keys = ("-keyout", str(tmp_path / "edgeloom.key"), "-out", str(tmp_path / "edgeloom.pem"))
    subprocess.run((*made, *keys), check=True, capture_output=True)
    whole, known = tmp_path / "nginx.conf", tmp_path / "known.conf"
    for path, text in (
        (whole, site),
        (known, re.sub(r"^map .*?^}$", "", site, flags=re.DOTALL | re.MULTILINE)),  # no directives
    ):
        path.write_text(
            f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{text}}}\n"
        )
    assert crossplane.parse(str(known), strict=True)["errors"] == []
    if nginx := shutil.which("nginx", path="/usr/sbin:/usr/bin"):
        done = subprocess.run((nginx, "-t", "-c", str(whole)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
