"""A way back for somebody who has forgotten their password: who keeps the server gives them a new one."""

from __future__ import annotations

import secrets

from axes.utils import reset
from django.contrib.auth.models import User

from engine.domain.errors import SpecError
from webapp.accounts import audit


def new_password(name: str) -> str:
    """Set and return a random password, which ends their sessions and their wait after wrong ones. Raises
    `SpecError` if there is nobody of that name.
    """
    user = User.objects.filter(username=name).first()
    if user is None:
        raise SpecError(f"There is nobody named {name[:60]!r}: the page /admin/ lists all.")
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    reset(username=name)
    audit.note(user, "got a new password", "by the command line")
    return password
