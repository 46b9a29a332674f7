"""Log-in with an OpenID provider: who comes for the first time gets an account, by the provider's number of
them, never by an address or a name that somebody here has already.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.openid_connect import views
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from requests import RequestException

from webapp.accounts.roles import GROUPS

logger = logging.getLogger(__name__)
View = Callable[..., HttpResponse]


class Adapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Refuse to join an account here with one of the provider: a link on any page could begin that, and
        whoever is logged in at the provider would have the account.
        """
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            sentence = f"Accounts here are not joined with those of {settings.OIDC_NAME}: log out first."
            raise ImmediateHttpResponse(HttpResponse(sentence, "text/plain", 403))

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Store somebody new, with the role that new people have."""
        user: User = super().save_user(request, sociallogin, form)
        if settings.OIDC_ROLE in GROUPS:
            user.groups.add(Group.objects.get_or_create(name=settings.OIDC_ROLE)[0])
        return user


def where_it_answers(view: View) -> View:
    """The view; 503 with a sentence while the provider does not answer the server, 502 if its answer lacks
    what OpenID Connect asks for: who it is that comes.
    """

    @wraps(view)
    def answer(request: HttpRequest, provider_id: str) -> HttpResponse:
        try:
            return view(request, provider_id)
        except RequestException as error:
            logger.warning("the OpenID provider does not answer: %s", error)
            sentence = f"{settings.OIDC_ISSUER} does not answer: try again, or log in with a password."
            return HttpResponse(sentence, "text/plain", 503)
        except (KeyError, AttributeError, TypeError) as error:
            logger.exception("the OpenID provider's answer cannot be read")
            sentence = (
                f"{settings.OIDC_ISSUER} gave an answer that is not OpenID Connect's ({error}): tell who "
                "runs it, and log in with a password."
            )
            return HttpResponse(sentence, "text/plain", 502)

    return answer


urlpatterns = [
    path("oidc/<slug:provider_id>/login/", where_it_answers(views.login)),
    path("oidc/<slug:provider_id>/login/callback/", where_it_answers(views.callback)),
    path("", include("allauth.urls")),  # the names of these routes, and what is shown after a refusal
]
