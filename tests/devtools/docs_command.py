"""`./loom docs`: write the generated parts of the documents, or with --check say which are out of date."""

from __future__ import annotations

import argparse
import subprocess
import sys

from tests.devtools.documents import documents, outdated
from tests.devtools.rooms import ROOT

PICTURES, NOTEBOOK = "tests.browser.pictures", "tests.browser.notebook"
"""Programs of their own: both open pages of a new server."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is out of date")
    made = parser.add_mutually_exclusive_group()
    made.add_argument("--pages", action="store_true", help="take pictures of all pages, in Chromium (root)")
    made.add_argument("--notebook", action="store_true", help="carry out the example notebook (root)")
    made.add_argument("--site", action="store_true", help="build a site of files with a search in .loom/docs")


def run(args: argparse.Namespace) -> int:
    if args.pages or args.notebook:
        module = PICTURES if args.pages else NOTEBOOK
        return subprocess.run([sys.executable, "-m", module], cwd=ROOT).returncode
    if args.site:
        from tests.devtools.site import build_site  # Django's templates, which no other command needs

        return build_site()
    old = outdated()
    if args.check:
        for file in old:
            sys.stderr.write(f"{file} is out of date: run ./loom docs.\n")
        return 1 if old else 0
    texts = documents()
    for file in old:
        (ROOT / file).write_text(texts[file], encoding="utf-8")
        sys.stderr.write(f"{file} written.\n")
    return 0
