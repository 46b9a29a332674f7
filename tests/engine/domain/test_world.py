"""Worlds have one name each; what was stored with another one is read as that."""

from __future__ import annotations

from typing import get_args

import pytest

from engine.domain.experiment import Experiment
from engine.domain.report import RunReport
from engine.domain.world import MEASURED, WORLDS


def test_there_is_one_list() -> None:
    (names,) = {get_args(field.annotation) for field in [RunReport.model_fields["world"]]}
    assert names == WORLDS
    assert set(MEASURED) < set(WORLDS)
    with pytest.raises(ValueError, match="native speed where"):
        Experiment.model_validate({"name": "one", "worlds": ["native"]})
