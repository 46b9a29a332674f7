"""The results of an imported study: kept as others', and compared with those of the same runs here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.http import Http404

from engine.domain.experiment import Experiment as Design
from engine.experiments.results.cells import Place, place_of
from engine.experiments.results.rows import Row
from engine.experiments.studies.repeat import Compared, compared, metrics_shown, summary
from engine.experiments.studies.study import Study
from webapp.base import budgets
from webapp.base.bodies import check_value
from webapp.base.errors import Conflict
from webapp.experiments import executions
from webapp.experiments.analysis import rows_of
from webapp.experiments.models import Execution, Experiment, Imported
from webapp.experiments.schemas import StudyLine, StudyOrigin, StudyResultsOut, StudyValue

ABOUT = {"packed_on", "licence", "environment"}


def keep(experiment: Experiment, study: Study, rows: Sequence[Row], file: str) -> None:
    """Store them. Raises `SpecError` if the owner has too many."""
    made = Imported(
        experiment=experiment,
        version=experiment.version,
        file=file[:200],
        about=study.model_dump(mode="json", include=ABOUT),
        rows=[row.model_dump(mode="json") for row in rows],
    )
    for document in (made.file, made.about, made.rows):
        check_value(document)
    if experiment.owner is not None:
        others = Imported.objects.filter(experiment__owner=experiment.owner)
        new, limit = [made.about, made.rows], budgets.MAX_STUDY_RESULTS_CHARS
        budgets.check_documents([others], new, limit, experiment.owner.username)
    made.save()


def find(experiment: Experiment) -> Imported:
    try:
        return Imported.objects.get(experiment=experiment)
    except Imported.DoesNotExist:
        raise Http404(f"{experiment} was not imported with a study") from None


def origin_of(experiment: Experiment) -> StudyOrigin | None:
    found = Imported.objects.filter(experiment=experiment).defer("rows").first()
    if found is None:
        return None
    return StudyOrigin(file=found.file, imported_at=found.created_at, version=found.version, **found.about)


def repeat(experiment: Experiment) -> None:
    """Compute the runs of the study here. Raises `SpecError`, `Conflict`, `Unavailable`."""
    imported = find(experiment)
    if imported.version != experiment.version:
        raise Conflict(
            f"{experiment} has other points than the study by now: import the study again, and repeat that."
        )
    execution = executions.start(experiment)
    if emulated := to_emulate(their_rows(imported), execution):
        executions.carry_out(experiment, emulated)


def to_emulate(theirs: Iterable[Row], execution: Execution) -> set[str]:
    """Digests of the runs that the study has emulated, and that are points here without an emulation."""
    wanted = {row.digest for row in theirs if row.world == "emulated"}
    cells = set(execution.cells.values_list("digest", "world"))
    return {digest for digest, world in cells if digest in wanted and (digest, "emulated") not in cells}


def their_rows(imported: Imported) -> list[Row]:
    """What became a run; a point that was refused there has nothing to compare."""
    rows = (Row.model_validate(row, extra="ignore", context={"extra": "ignore"}) for row in imported.rows)
    return [row for row in rows if row.digest]


def results(experiment: Experiment) -> StudyResultsOut:
    """What the study has, beside the rows of the version that was imported, as far as they are computed."""
    imported = find(experiment)
    execution = experiment.executions.filter(version=imported.version).first()
    design = executions.value_of(execution or experiment)
    theirs = their_rows(imported)
    computed = rows_of(execution) if execution else ()
    ours = same_runs(theirs, computed)
    found = compared(design, theirs, ours) if computed else ()
    return StudyResultsOut(
        told=summary(found) if found else [],
        lines=lines(design, theirs, ours, found),
        may_repeat=imported.version == experiment.version and is_open(theirs, execution),
    )


def is_open(theirs: Iterable[Row], execution: Execution | None) -> bool:
    """Whether to repeat the study would compute anything that nobody has asked for yet."""
    return execution is None or execution.state == "cancelled" or bool(to_emulate(theirs, execution))


def same_runs(theirs: Iterable[Row], computed: Iterable[Row]) -> list[Row]:
    """The rows here of the runs that the study has: with another model or method a point is another run."""
    wanted = {(row.digest, row.world) for row in theirs}
    return [row for row in computed if (row.digest, row.world) in wanted]


def lines(
    design: Design, theirs: Sequence[Row], ours: Sequence[Row], found: Iterable[Compared]
) -> list[StudyLine]:
    names = metrics_shown(design)
    here = {(*place_of(row.place), row.seed): row for row in ours}
    decided = {place_of(one.coordinates): one for one in found}
    made = []
    for row in theirs:
        own = here.get((*place_of(row.place), row.seed))
        one = verdict_of(row, decided)
        made.append(
            StudyLine(
                coordinates=row.coordinates,
                seed=row.seed,
                world=row.world,
                theirs=value_of(row, names),
                ours=value_of(own, names) if own else None,
                verdict=one.verdict if one else "not repeated",
                metric=one.metric if one else "",
                study=one.study if one else "",
                repeated=one.repeated if one else "",
            )
        )
    return made


def verdict_of(row: Row, decided: Mapping[Place, Compared]) -> Compared | None:
    """What decided for the row: of its seed where every number must be the same, else of its cell."""
    return decided.get(place_of({**row.place, "seed": row.seed})) or decided.get(place_of(row.place))


def value_of(row: Row, names: Iterable[str]) -> StudyValue:
    metrics = {name: row.metrics[name] for name in names if name in row.metrics}
    return StudyValue(outcome=row.outcome, metrics=metrics)
