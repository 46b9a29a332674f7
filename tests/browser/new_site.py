"""A new EdgeLoom for the documents: started for one purpose, in a directory that is gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from tests.ops.test_up import Up, Visitor, password_in


class Site(NamedTuple):
    """`token` is an API token of the administrator, as operator."""

    url: str
    password: str
    token: str


@contextmanager
def new_site(models: Mapping[str, Path] = MappingProxyType({})) -> Iterator[Site]:
    """The site; `models` are directories of fetched models, by name."""
    with TemporaryDirectory() as scratch:
        up = Up(Path(scratch) / "state")
        for folder in (up.state_dir, up.state_dir / "models"):
            folder.mkdir(mode=0o700)
        for name, directory in models.items():
            (up.state_dir / "models" / name).symlink_to(directory)
        up.start()
        try:
            password = password_in(up.text())
            visitor = Visitor(up.url)
            visitor.log_in(password)
            _, answer = visitor.ask("/account/tokens", {"name": "documents", "role": "operator"})
            yield Site(up.url, password, answer["secret"])
        finally:
            up.stop()
