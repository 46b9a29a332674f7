"""`manage.py ensure_demo`: the demo clusters, where they are missing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from webapp.clusters.services import ensure_demo


class Command(BaseCommand):
    help = "Create the demo clusters that are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ensure_demo():
            self.stdout.write(f"Demo cluster {name}")
