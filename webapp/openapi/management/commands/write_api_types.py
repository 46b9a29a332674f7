"""`manage.py write_api_types`: the front end's TypeScript types of what the API takes and answers.

The file is committed. `--check` writes nothing and fails if it is not what the present code would write.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.api import api

FRONTEND = settings.BASE_DIR / "webapp" / "frontend"
TYPES = FRONTEND / "src" / "api" / "generated" / "schema.ts"
NOT_FOR_TYPES = ("title", "default", "description", "discriminator")


class Command(BaseCommand):
    help = "Write the front end's TypeScript types of the API, or check them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="fail if the file is not up to date")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        types = written()
        if not check:
            TYPES.parent.mkdir(parents=True, exist_ok=True)
            TYPES.write_text(types, encoding="utf-8")
        elif not TYPES.is_file() or TYPES.read_text(encoding="utf-8") != types:
            raise CommandError(
                f"{TYPES.relative_to(settings.BASE_DIR)} differs from the API: "
                "run manage.py write_api_types and commit what it writes."
            )


def written() -> str:
    """The types of all that requests and answers are made of; the front end names the paths itself."""
    document = {**for_types(api.get_openapi_schema(path_prefix="/api/")), "paths": {}}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        program = FRONTEND / "node_modules" / ".bin" / "openapi-typescript"
        command = [str(program), file.name, "--alphabetize"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"openapi-typescript failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


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
