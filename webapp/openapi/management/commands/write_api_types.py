"""`manage.py write_api_types`: the OpenAPI document, and from it the front end's TypeScript types.

Both are committed. `--check` writes nothing and fails if they are not what the present code would write.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.api import api

FRONTEND = settings.BASE_DIR / "webapp" / "frontend"
GENERATED = FRONTEND / "src" / "api" / "generated"
FILES = ("openapi.json", "schema.ts")
NOT_FOR_TYPES = ("title", "default", "description", "discriminator")


class Command(BaseCommand):
    help = "Write the OpenAPI document and the TypeScript types of the front end, or check them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="fail if a file is not up to date")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        if not check:
            write(GENERATED)
            return
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder))
            stale = [name for name in FILES if not same(Path(folder) / name, GENERATED / name)]
        if stale:
            raise CommandError(
                f"{', '.join(stale)} in {GENERATED.relative_to(settings.BASE_DIR)} differ from the API: "
                "run manage.py write_api_types and commit what it writes."
            )


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document, types = (folder / name for name in FILES)
    text = json.dumps(for_types(api.get_openapi_schema(path_prefix="/api/")), indent=1, ensure_ascii=False)
    document.write_text(text + "\n", encoding="utf-8")
    program = FRONTEND / "node_modules" / ".bin" / "openapi-typescript"
    command = [str(program), str(document), "--output", str(types), "--alphabetize"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"openapi-typescript failed: {done.stderr.strip() or done.stdout.strip()}")


def for_types(schema: Any) -> Any:
    """The document without what types do not need: texts, defaults, and discriminators, which the constants
    of the united types replace.
    """
    if isinstance(schema, list):
        return [for_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: for_types(field) for name, field in value.items()}
        if key == "properties"
        else for_types(value)
        for key, value in schema.items()
        if key not in NOT_FOR_TYPES
    }


def same(fresh: Path, kept: Path) -> bool:
    return kept.is_file() and kept.read_bytes() == fresh.read_bytes()
