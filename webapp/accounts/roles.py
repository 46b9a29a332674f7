"""Roles: every user who is logged in may look, members of the group `operator` may change what is theirs,
superusers may do everything.
"""

from __future__ import annotations

from django.contrib.auth.models import User

from webapp.accounts.models import ROLES, Bearer, Role

GROUPS = ("viewer", "operator")


def role(user: User) -> Role:
    """What this user may do; with a token, no more than the token's role."""
    own = _own_role(user)
    return lower(own, user.most) if isinstance(user, Bearer) else own


def _own_role(user: User) -> Role:
    if user.is_superuser:
        return "admin"
    return "operator" if user.groups.filter(name="operator").exists() else "viewer"


def lower(one: Role, other: Role) -> Role:
    return min(one, other, key=ROLES.index)


def role_named(name: str) -> Role:
    """A stored name as a role; an unknown one has the least rights."""
    return next((known for known in ROLES if known == name), "viewer")
