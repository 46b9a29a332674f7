"""What is asked of the database again and again."""

from __future__ import annotations

import pytest
from django.db.models import QuerySet

from webapp.base.database import Prepared, any_of
from webapp.jobs.models import Drain


@pytest.mark.django_db
def test_a_prepared_query_makes_its_statement_once_and_sees_what_there_is_each_time() -> None:
    made = []

    def rows() -> QuerySet[Drain, tuple[str, str]]:
        made.append(1)
        return Drain.objects.filter(by="ann's boss").order_by("worker").values_list("worker", "by")

    prepared, exists = Prepared(rows), any_of(lambda: Drain.objects.filter(by="ann's boss"))
    assert prepared.all() == [] and not exists.exists()
    for name in ("plan@b", "plan@a"):
        Drain.objects.create(worker=name, by="ann's boss")
    Drain.objects.create(worker="plan@c", by="bob")
    assert prepared.all() == [("plan@a", "ann's boss"), ("plan@b", "ann's boss")] and exists.exists()
    assert made == [1]
