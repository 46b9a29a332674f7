"""The table of first commands, from commands that were not started."""

from bench.emulation.first import PARTS, Case, Ended, table_of


def ended(strategy: str, wall_s: float, running_s: float, valid: bool = True) -> Ended:
    parts_s = dict.fromkeys(PARTS, 0.5) | {"running": running_s}
    return Ended(Case(strategy, "lab-3", "demo-lm"), 0 if valid else 3, valid, 1, 4.0, wall_s, parts_s)


def test_the_wall_time_of_first_commands_is_told_by_parts_and_the_command_s_own_is_what_is_left() -> None:
    commands = (ended("single", 8.0, 1.0), ended("single", 10.0, 2.0), ended("voltage", 20.0, 6.0, False))
    table = table_of(commands, busy=0)
    assert len(table.columns) == len(table.rows[0]) == 15
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(rows) == ["single", "voltage", "all"]
    single, every = rows["single"], rows["all"]
    assert (single["median wall time"], single["running, s"], single["verifying, s"]) == (
        "9.0 s",
        "1.5",
        "0.5",
    )
    # 8 - 6 x 0.5 - 1 = 4 and 10 - 3 - 2 = 5; with 20 - 3 - 6 = 11 the middle one of three is 5
    assert (single["command, s"], every["command, s"]) == ("4.5", "5.0")
    assert (every["valid"], every["running, s"]) == ("66.7%", "2.0")
