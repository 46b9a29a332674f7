"""Fill the database before anything starts: tables, groups, an administrator, demo clusters.

`python -m webapp.ops.prepare` is safe to run at every start. A generated password is printed on standard
output, only once.
"""

from __future__ import annotations

import os

import django
from django.core.management import call_command


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    call_command("ensure_admin")
    call_command("ensure_demo")
    call_command("ensure_release")


if __name__ == "__main__":
    main()
