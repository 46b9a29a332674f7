"""Log-in with an OpenID provider: who comes for the first time gets an account, by the provider's number of
them, never by an address or a name that somebody here has already.
"""

from __future__ import annotations

from typing import Any

from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from webapp.accounts.roles import GROUPS


class Adapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Store somebody new, with the role that new people have."""
        user: User = super().save_user(request, sociallogin, form)
        if settings.OIDC_ROLE in GROUPS:
            user.groups.add(Group.objects.get_or_create(name=settings.OIDC_ROLE)[0])
        return user
