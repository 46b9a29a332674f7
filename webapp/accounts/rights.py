"""The rights to change a run, a cluster or an experiment.

What somebody made is theirs: they and administrators may change it. With `LOOM_SHARED` every operator may,
which suits a lab whose members trust each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from ninja.errors import HttpError

from webapp.accounts.models import Role
from webapp.accounts.roles import role


@dataclass(frozen=True)
class Rights:
    """What one person may do, looked up once for a whole list."""

    person: int
    role: Role

    @classmethod
    def of(cls, user: User) -> Rights:
        return cls(user.pk, role(user))

    def locked(self, owner: User | None, what: object = "It", remedy: str = "") -> str | None:
        """Why this person may not change `what`, which belongs to `owner`; None if they may. `remedy` is what
        they may do beside asking.
        """
        if self.role == "viewer":
            return f"You may look but not change: ask an administrator for the role operator{remedy}."
        mine = owner is not None and owner.pk == self.person
        if mine or self.role == "admin" or settings.SHARED:
            return None
        if owner is None:
            return f"{what} belongs to nobody any more: ask an administrator{remedy}."
        return f"{what} belongs to {owner.username}: ask them or an administrator{remedy}."


def require(user: User, owner: User | None, what: object, remedy: str = "") -> None:
    """Check that the user may change what `owner` owns; answers 403, naming `what` and the owner, if not."""
    reason = Rights.of(user).locked(owner, what, remedy)
    if reason is not None:
        raise HttpError(403, reason)
