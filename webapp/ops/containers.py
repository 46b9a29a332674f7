"""Secrets for docker-compose.yml: `python3 -m webapp.ops.containers` writes them once, with any Python.

`.env` has the passwords, which compose reads; `redis.conf` the users of Redis with digests of theirs, which
the image's Redis reads under a user id of its own. The users are those of the private Redis.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sys
from pathlib import Path
from urllib.parse import urlsplit

from webapp.ops.places import ROOT, OpsError
from webapp.ops.redis_server import RedisServer
from webapp.ops.services import QUEUES

NAMES = {kind: f"REDIS_{kind.upper()}_PASSWORD" for kind in ("web", *QUEUES)}


def write(directory: Path) -> list[Path]:
    """Write both files; raises `OpsError` if one is there: the database and Redis know its passwords."""
    server = RedisServer(0, secrets.token_urlsafe(24), Path())
    passwords = {name: urlsplit(server.url_of(kind)).password for kind, name in NAMES.items()}
    passwords |= {"REDIS_PASSWORD": server.password, "POSTGRES_PASSWORD": secrets.token_urlsafe(24)}
    files = {
        directory / ".env": ("".join(f"{name}={value}\n" for name, value in passwords.items()), 0o600),
        directory / "redis.conf": (_configuration(server), 0o644),
    }
    for path in files:
        if path.exists():
            raise OpsError(
                f"{path} is there already: edit it, or remove it and the volumes that know its passwords."
            )
    for path, (text, mode) in files.items():
        path.touch(mode=0o600)
        path.write_text(text)
        path.chmod(mode)
    return list(files)


def _configuration(server: RedisServer) -> str:
    """A configuration of Redis, with digests of the passwords. The default user may do everything."""
    users = [f"user default on >{server.password} ~* &* +@all", *server.users()]
    lines = (*(re.sub(" >([^ ]+)", _digest, user) for user in users), 'save ""', "appendonly no")
    return "".join(f"{line}\n" for line in lines)


def _digest(found: re.Match[str]) -> str:
    return f" #{hashlib.sha256(found[1].encode()).hexdigest()}"


if __name__ == "__main__":
    try:
        sys.stdout.write("".join(f"{path} is written.\n" for path in write(ROOT)))
    except OpsError as error:
        sys.exit(str(error))
