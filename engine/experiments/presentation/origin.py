"""Names the origin of a file: the experiment, its digest and the versions of the code. So a figure in a paper
leads back to its data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from engine.domain.experiment import Experiment
from engine.domain.values import Value
from engine.experiments.results.rows import Row

DIGEST_DIGITS = 16


class Origin(Value):
    """The experiment and the code that a file comes from.

    `digest` is a hash of the whole experiment, `version` counts the edits of one that a server stores (0 of a
    file), and `code` names the code that made the results, by world.
    """

    experiment: str
    digest: str
    version: int = 0
    code: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The origin in one line, as files carry it."""
        version = f", version {self.version}" if self.version else ""
        code = f"; results by {', '.join(self.code)}" if self.code else ""
        return f"EdgeLoom experiment {self.experiment}, digest {self.digest}{version}{code}"

    @property
    def columns(self) -> dict[str, str | int]:
        """The same as columns of data."""
        return {
            "experiment": self.experiment,
            "experiment_digest": self.digest,
            "experiment_version": self.version,
        }


def origin_of(experiment: Experiment, rows: Sequence[Row], version: int = 0) -> Origin:
    made = sorted({f"{row.world} {row.code_version[:DIGEST_DIGITS]}" for row in rows if row.code_version})
    return Origin(experiment=experiment.name, digest=digest_of(experiment), version=version, code=tuple(made))


def digest_of(experiment: Experiment) -> str:
    """The digest of an experiment's content, which does not depend on where it is stored."""
    document = json.dumps(experiment.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(document.encode()).hexdigest()[:DIGEST_DIGITS]
