"""Writes the folder of an experiment whose rows have already run; the test supplies the energy of each row."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

PLAN_TOML = """name = "made"
repetitions = {repetitions}
order = "blocked"
seed = 1

[factors]
"framework" = ["a", "b"]

[metrics."accuracy"]
more_is_better = true
"""


def make_domain(name: str, joules: float | None, provenance: str = "measured") -> dict:
    domain_entry = {
        "name": name,
        "joules": joules,
        "uncertainty_j": None if joules is None else joules / 100,
        "counted": True,
    }
    return {**domain_entry, "provenance": None if joules is None else provenance, "sensor": "made"}


def deterministic_noise(block: int) -> float:
    """Deterministic noise in [0, 1) without a trend."""
    return (7 * block + 3) % 10 / 10


def write_rows(folder: Path, make_row_members, repetitions: int = 10) -> Path:
    """`make_row_members(level, block)` returns the members of row.json with the row's energy; `level` is 0 or 1."""
    folder.mkdir()
    (folder / "experiment.toml").write_text(PLAN_TOML.format(repetitions=repetitions))
    table = ["__run_id,__done,row,block,framework,attempts"]
    for number in range(2 * repetitions):
        block, level = divmod(number, 2)
        attempt = folder / "rows" / f"{number:05}" / "attempt-1"
        attempt.mkdir(parents=True)
        row = {
            "schema": "joulemap.row/1",
            "number": number,
            "block": block,
            "state": "done",
            **make_row_members(level, block),
        }
        (attempt / "row.json").write_text(json.dumps(row))
        table.append(f"run_{level}_repetition_{block},DONE,{number},{block},{'ab'[level]},1")
    (folder / "run_table.csv").write_text("\n".join(table) + "\n")
    return folder


def write_factorial(
    folder: Path, factors: dict[str, list[str]], make_row_members, repetitions: int, order: str = "blocked"
) -> Path:
    """`make_row_members(levels, block)` returns the members of row.json; `levels` are the indices of the levels. The
    first factor is compared."""
    folder.mkdir()
    compared_factor = next(iter(factors))
    factor_lines = "".join(f'"{name}" = {json.dumps(levels)}\n' for name, levels in factors.items())
    plan = f'name = "made"\nrepetitions = {repetitions}\norder = "{order}"\nseed = 1\ncompare = ["{compared_factor}"]\n'
    (folder / "experiment.toml").write_text(f"{plan}\n[factors]\n{factor_lines}")
    table = ["__run_id,__done,row,block," + ",".join(factors) + ",attempts"]
    cells = list(itertools.product(*(range(len(levels)) for levels in factors.values())))
    for number, (block, cell) in enumerate(itertools.product(range(repetitions), cells)):
        attempt = folder / "rows" / f"{number:05}" / "attempt-1"
        attempt.mkdir(parents=True)
        row = {
            "schema": "joulemap.row/1",
            "number": number,
            "block": block,
            "state": "done",
            **make_row_members(cell, block),
        }
        (attempt / "row.json").write_text(json.dumps(row))
        names = ",".join(levels[i] for levels, i in zip(factors.values(), cell))
        table.append(f"run_{number},DONE,{number},{block},{names},1")
    (folder / "run_table.csv").write_text("\n".join(table) + "\n")
    return folder
