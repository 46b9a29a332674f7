"""Keeps sessions in the database under a digest of their key: who reads it cannot act as anybody."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.utils import timezone

DIGEST_CHARS = 40
"""What the column holds: 160 bits, about those of the key."""


class SessionStore(db.SessionStore):
    """Django's store in the database, but the row is found by the digest of the key that the cookie has."""

    def _get_session_from_db(self) -> AbstractBaseSession | None:
        now = timezone.now()
        row = self.model.objects.filter(session_key=digest_of(self.session_key or ""), expire_date__gt=now)
        found = row.first()
        if found is None:
            self._session_key = None
        return found

    def create_model_instance(self, data: Any) -> AbstractBaseSession:
        row = super().create_model_instance(data)
        row.session_key = digest_of(row.session_key)
        return row

    def exists(self, session_key: str) -> bool:
        return super().exists(digest_of(session_key))

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(digest_of(key))

    # Those of the store in the database would write the key itself; these call the methods above in a thread.
    aexists = SessionBase.aexists
    acreate = SessionBase.acreate
    asave = SessionBase.asave
    adelete = SessionBase.adelete
    aload = SessionBase.aload


def digest_of(key: str) -> str:
    """A part of SHA-256: keys are random, so nobody finds one by trying."""
    return hashlib.sha256(key.encode()).hexdigest()[:DIGEST_CHARS]
