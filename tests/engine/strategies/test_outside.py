"""Methods from outside: what packages declare and files have is used as it stands, or refused in one
sentence.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from engine.domain.errors import PlanError, SpecError
from engine.domain.spec import RunSpec, spec_digest
from engine.domain.workload import Workload
from engine.plugins.installed import Unusable
from engine.runs.predict import predict, prepare
from engine.strategies import registry
from engine.strategies.outside import Outside, errors_of, installed_methods, is_file, of_file
from tests.support.outside import THIRDS, install, keep_methods_apart, write_method
from tests.support.small_cases import GPT2, star

NAMES = {chosen.name for chosen in registry.BUILT_IN}


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither modules nor methods of one test are there in another."""
    keep_methods_apart(monkeypatch)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in ("thirds", "beside") or name.endswith(".py"):
            del sys.modules[name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("LOOM_METHODS", raising=False)
    return tmp_path


def installed() -> tuple[tuple[Outside, ...], tuple[Unusable, ...]]:
    rows, unusable = installed_methods(NAMES)
    return tuple(rows.values()), unusable


def one_sentence(text: str) -> bool:
    return "\n" not in text and text.endswith(".")


def spec_with(name: str, **params: object) -> RunSpec:
    return RunSpec(
        cluster=star([1e10, 2e10]),
        model=GPT2,
        strategy=name,
        method=registry.origin_of(name),
        params=params,
    )


# Installed packages -------------------------------------------------------------------------------
def test_an_installed_method_is_used_with_its_package_and_version(site: Path) -> None:
    write_method(site)
    install(site)
    (one,), unusable = installed()
    assert (one.method.name, one.origin.package, one.origin.version) == ("thirds", "two-thirds", "0.3")
    assert unusable == () and len(one.origin.digest) == 16


def test_the_digest_of_a_package_changes_with_its_code(site: Path) -> None:
    file = write_method(site)
    install(site)
    before = installed()[0][0].origin.digest
    file.write_text(THIRDS + "\n# changed\n")
    assert installed()[0][0].origin.digest != before


@pytest.mark.parametrize(
    ("text", "entry", "says"),
    [
        ("import torch\nraise OSError('no such disk')\n", "thirds = thirds:Thirds", "OSError: no such disk"),
        ("import nothing_of_this_name\n", "thirds = thirds:Thirds", "ModuleNotFoundError"),
        ("def broken(:\n", "thirds = thirds:Thirds", "SyntaxError"),
        ("raise SystemExit(3)\n", "thirds = thirds:Thirds", "SystemExit: 3"),
        (THIRDS, "thirds = thirds:Fourths", "AttributeError"),
        (THIRDS, "thirds = thirds:Field", "expected a class that derives from edgeloom.method.Strategy"),
        (THIRDS, "fourths = thirds:Thirds", "give entry point and class one name"),
        (THIRDS.replace('"thirds"', '"gpipe"'), "gpipe = thirds:Thirds", "of this name already"),
        (THIRDS.replace("    def plan(", "    def plans("), "thirds = thirds:Thirds", "has no plan"),
        (THIRDS.replace('title = "A third first"', "title = 3"), "thirds = thirds:Thirds", "has no title"),
        (THIRDS.replace('"thirds"', '"Two Thirds"'), "Two Thirds = thirds:Thirds", "expected small letters"),
        (
            THIRDS.replace("Params = ThirdsParams", "Params = dict"),
            "thirds = thirds:Thirds",
            "derives from edgeloom.method.Params",
        ),
    ],
)
def test_a_method_that_is_wrong_is_left_out_with_a_sentence(
    site: Path, text: str, entry: str, says: str
) -> None:
    write_method(site, text)
    install(site, entry)
    found, (wrong,) = installed()
    assert found == ()
    assert wrong.package == "two-thirds" and says in wrong.reason and one_sentence(wrong.reason)


def test_what_fails_while_it_is_imported_is_told_with_its_own_file_and_line(site: Path) -> None:
    file = write_method(site, "from pydantic import Field\n\n\nField(gt=0)\nNUMBER = int('many')\n")
    install(site)
    reason = installed()[1][0].reason
    assert f"({file}, line 5)" in reason


def test_one_wrong_method_keeps_no_other_from_being_used(site: Path) -> None:
    write_method(site)
    write_method(site, "1 / 0\n", "hopeless")
    install(site)
    install(site, "hopeless = hopeless:Hopeless", "hopeless")
    (one,), (wrong,) = installed()
    assert one.method.name == "thirds" and wrong.name == "hopeless"


def test_code_of_a_method_that_is_not_named_is_not_imported(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_method(site, THIRDS + f"open({str(site / 'touched')!r}, 'w').close()\n")
    install(site)
    for names in ("", "others"):
        monkeypatch.setenv("LOOM_METHODS", names)
        assert installed()[0] == ()
    assert not (site / "touched").exists()
    monkeypatch.setenv("LOOM_METHODS", "others, thirds")
    (one,), (lacking,) = installed()
    assert one.method.name == "thirds"
    assert "names others, and no installed package declares it" in lacking.reason


def test_of_two_packages_with_one_name_the_second_is_left_out(site: Path) -> None:
    write_method(site)
    install(site)
    install(site, package="other-thirds")
    (one,), (other,) = installed()
    assert one.origin.package == "other-thirds"
    assert other.package == "two-thirds" and "of this name already" in other.reason


# Files --------------------------------------------------------------------------------------------
def test_a_file_is_told_from_a_name() -> None:
    assert is_file("./thirds.py:Thirds") and is_file("thirds.py")
    assert not is_file("gpipe") and not is_file("py")


def test_a_method_of_a_file_predicts_and_its_report_says_where_it_is_from(tmp_path: Path) -> None:
    file = write_method(tmp_path)
    chosen = registry.named(f"{file}:Thirds")
    report = predict(spec_with(chosen.name, share=0.67))
    assert report.outcome.kind == "finished"
    assert [stage.num_layers for stage in report.plan.layout.stages] == [2, 1]
    assert report.spec.method is not None and report.spec.method.file == str(file)


def test_the_class_need_not_be_named_where_there_is_one(tmp_path: Path) -> None:
    assert of_file(str(write_method(tmp_path))).method.name == "thirds"
    two = THIRDS + "\n\nclass More(Thirds):\n    name = 'more'\n"
    with pytest.raises(SpecError, match="expected one class of a method, got Thirds, More"):
        of_file(str(write_method(tmp_path / "two", two)))


def test_a_file_that_changes_is_read_again_and_a_run_made_with_the_old_one_is_refused(tmp_path: Path) -> None:
    file = write_method(tmp_path)
    registry.named(str(file))
    old = spec_with("thirds")
    file.write_text(THIRDS.replace("A third first", "Another title"))
    assert registry.named(str(file)).title == "Another title"
    with pytest.raises(SpecError, match="whose code has changed since: start the run anew"):
        prepare(old)
    assert spec_digest(old) != spec_digest(spec_with("thirds"))


def test_the_same_code_in_another_place_is_the_same_run(tmp_path: Path) -> None:
    registry.named(str(write_method(tmp_path / "a")))
    here = spec_with("thirds")
    assert here.method is not None
    elsewhere = here.model_copy(update={"method": here.method.model_copy(update={"file": "/else/thirds.py"})})
    assert spec_digest(here) == spec_digest(elsewhere)
    assert prepare(elsewhere).plan == prepare(here).plan


def test_a_run_whose_method_is_not_here_is_refused(tmp_path: Path) -> None:
    registry.named(str(write_method(tmp_path)))
    spec = spec_with("thirds")
    del registry._BY_NAME["thirds"], registry._OUTSIDE["thirds"]
    with pytest.raises(SpecError, match="which this process does not have"):
        prepare(spec)


def test_runs_of_our_own_methods_say_nothing_of_an_origin() -> None:
    assert registry.origin_of("gpipe") is None
    assert "method" not in spec_with("gpipe").model_dump(mode="json")


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("missing.py", "cannot be read"),
        ("thirds.py:Other", "it has no class Other"),
        ("empty.py", "got none"),
    ],
)
def test_a_file_that_has_no_such_method_is_refused(tmp_path: Path, reference: str, says: str) -> None:
    write_method(tmp_path)
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(SpecError, match=says) as refusal:
        of_file(str(tmp_path / reference))
    assert one_sentence(str(refusal.value))


def test_a_file_cannot_take_the_name_of_our_own_method(tmp_path: Path) -> None:
    file = write_method(tmp_path, THIRDS.replace('"thirds"', '"gpipe"'))
    with pytest.raises(SpecError, match="there is a method of this name already"):
        registry.named(str(file))
    assert type(registry.strategy("gpipe")).__module__ == "engine.strategies.gpipe"


# Errors of methods --------------------------------------------------------------------------------
PLAN = "        first, last = cluster.workers[0], cluster.workers[-1]\n"


@pytest.mark.parametrize("trouble", ["1 / 0", "[].pop()", "sys.exit(1)"])
def test_what_a_planner_raises_is_a_sentence_with_its_file_and_line(tmp_path: Path, trouble: str) -> None:
    file = write_method(tmp_path, THIRDS.replace(PLAN, f"        import sys\n        {trouble}\n{PLAN}"))
    registry.named(str(file))
    line = file.read_text().splitlines().index(f"        {trouble}") + 1
    with pytest.raises(PlanError) as refusal:
        prepare(spec_with("thirds"))
    assert str(refusal.value).startswith("thirds: `plan` raised")
    assert f"({file}, line {line})" in str(refusal.value) and one_sentence(str(refusal.value))


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        ("        while True:\n            pass\n", SoftTimeLimitExceeded, "it takes longer than it may"),
        (
            # held, they would be so many that the next test cannot fork
            "        while True:\n            bytes(10_000_000)\n",
            MemoryError,
            "it needs more memory than its process may have",
        ),
    ],
)
def test_a_planner_that_never_ends_is_told_with_its_line_when_its_limit_is_reached(
    tmp_path: Path, body: str, error: type[Exception], says: str
) -> None:
    """A limit comes as an error from outside, at whatever line the planner is."""
    file = write_method(tmp_path, THIRDS.partition("        first, last = ")[0] + body)

    def stop(number: int, frame: object) -> None:
        raise error

    registry.named(str(file))
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(PlanError) as told:
            prepare(spec_with("thirds"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert f"{error.__name__}: {says} ({file}, line " in str(told.value) and one_sentence(str(told.value))


BESIDE = "def fail():\n    raise ValueError('lost')\n"
CALL = "        beside.fail()\n"


def test_the_line_of_an_installed_module_is_its_own_and_none_of_what_is_installed_beside_it(
    site: Path,
) -> None:
    (site / "beside.py").write_text(BESIDE)
    file = write_method(site, THIRDS.replace(PLAN, f"        import beside\n{CALL}{PLAN}"))
    install(site)
    (one,), _ = installed()
    with pytest.raises(PlanError) as refusal, errors_of(one.method, "`plan` raised"):
        one.method.plan(star([1e10, 2e10]), GPT2, Workload(), one.method.Params())
    assert f"ValueError: lost ({file}, line {line_of(CALL, file)})." in str(refusal.value)


def test_the_line_of_a_file_is_its_own_and_none_of_an_environment_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "env" / "lib" / "site-packages"
    environment.mkdir(parents=True)
    (environment / "beside.py").write_text(BESIDE)
    monkeypatch.syspath_prepend(environment)
    file = write_method(tmp_path, THIRDS.replace(PLAN, f"        import beside\n{CALL}{PLAN}"))
    registry.named(str(file))
    with pytest.raises(PlanError) as refusal:
        prepare(spec_with("thirds"))
    assert f"ValueError: lost ({file}, line {line_of(CALL, file)})." in str(refusal.value)


def line_of(code: str, file: Path) -> int:
    return file.read_text().splitlines().index(code.rstrip()) + 1


def test_a_planner_that_returns_something_else_is_told_so(tmp_path: Path) -> None:
    registry.named(str(write_method(tmp_path, THIRDS.replace(PLAN, "        return None\n"))))
    with pytest.raises(PlanError, match=r"`plan` returned 'None': expected a plan of thirds with a Pipeline"):
        prepare(spec_with("thirds"))


FORWARD = """
    async def forward_all(self, ctx, plan, steps, tokens, done):
        raise KeyError("lost")
"""


def test_what_a_program_raises_ends_the_run_with_its_file_and_line(tmp_path: Path) -> None:
    file = write_method(tmp_path, THIRDS + FORWARD)
    registry.named(str(file))
    report = predict(spec_with("thirds"))
    assert report.outcome.kind == "failed"
    line = file.read_text().splitlines().index('        raise KeyError("lost")') + 1
    assert "thirds: a device's program raised" in report.outcome.sentence
    assert f"({file}, line {line})" in report.outcome.sentence


def test_a_mistake_of_our_own_methods_is_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(registry.strategy("gpipe")), "plan", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(spec_with("gpipe"))


# Classes as they stand ----------------------------------------------------------------------------
def test_a_class_of_this_process_is_used_as_it_stands(tmp_path: Path) -> None:
    kind = type(of_file(str(write_method(tmp_path))).method)
    chosen = registry.add(kind(share=0.5))
    assert type(chosen) is kind and registry.strategy("thirds") is chosen
    assert registry.add(kind()) is chosen  # the same class, not another method
    with pytest.raises(SpecError, match="there is a method of this name already"):
        registry.add(type("Own", (kind,), {"name": "gpipe", "__module__": "__main__"})())


def test_a_sentence_of_the_method_itself_stays_as_it_is(tmp_path: Path) -> None:
    own = THIRDS.replace(PLAN, '        raise PlanError("thirds: not today.")\n' + PLAN).replace(
        "Params, PlacesLayers, Plan,", "Params, PlacesLayers, Plan, PlanError,"
    )
    registry.named(str(write_method(tmp_path, own)))
    with pytest.raises(PlanError, match=r"^thirds: not today\.$"):
        prepare(spec_with("thirds"))
