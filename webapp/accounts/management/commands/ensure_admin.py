"""`manage.py ensure_admin`: the groups, and one administrator if there is none."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand, CommandParser

from webapp.accounts.roles import GROUPS


class Command(BaseCommand):
    help = "Create the groups and, where no administrator exists, one; its password is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default="admin")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        for name in GROUPS:
            Group.objects.get_or_create(name=name)
        if User.objects.filter(is_superuser=True).exists():
            return
        password = secrets.token_urlsafe(12)
        User.objects.create_superuser(username, password=password)
        self.stdout.write(f"Administrator {username}, password {password} (shown only this once)")
