"""`manage.py ensure_release`: from now on the fleet runs this code."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from webapp.jobs.release import prepare_release


class Command(BaseCommand):
    help = "Note the version of this code: workers with another one are refused."

    def handle(self, *args: Any, **options: Any) -> None:
        prepare_release()
