"""Every table of `experiment analyze --html`, cell by cell, against `--json`."""

from __future__ import annotations

import json
import re
import subprocess
from html.parser import HTMLParser

import pytest
from made_rows import make_domain, deterministic_noise, write_factorial, write_rows

UNIT_SCALES = {"MJ": 1e6, "kJ": 1e3, "J": 1, "mJ": 1e-3, "W": 1, "h": 3600, "s": 1, "ms": 1e-3, "%": 0.01, "": 1}


class Tables(HTMLParser):
    """tables["cells"]: rows of the table in the section with that id; the first row contains the column headers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict = {}
        self._section_id, self._cell = "", None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs) -> None:
        if tag == "section":
            self._section_id = dict(attrs)["id"]
        elif tag == "tr":
            self.tables.setdefault(self._section_id, []).append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.tables[self._section_id][-1].append("".join(self._cell))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)


def row_of(level: int, block: int) -> dict:
    joules = 100 * (1 + level) + deterministic_noise(block)
    cause = {"cause": "compute", "cause_basis": "ledger", "cause_s": {"compute": 2.0}}
    return {
        "elapsed_s": 10 + deterministic_noise(block + 3),
        "domains": [
            make_domain("gpu0", joules),
            make_domain("package-0", 20 + deterministic_noise(block + 6)),
            make_domain("dram-0", 7, "estimated"),
        ],
        "metrics": {"accuracy": 0.7 + 0.1 * level},
        "epochs": [
            {"start_s": 0, "elapsed_s": 6, "energy_j": 60 + level},
            {"start_s": 6, "elapsed_s": 4, "energy_j": 40},
        ],
        "functions": [{"name": "conv2d", "device": "gpu0", "count": 9, "time_s": 2.0, "energy_j": joules / 2, **cause}],
    }


@pytest.fixture(scope="module")
def page_and_json(tmp_path_factory, binaries):
    """The tables of the page, and the output of --json."""
    folder = tmp_path_factory.mktemp("page")
    analyze = [binaries / "joulemap", "experiment", "analyze", write_rows(folder / "exp", row_of)]
    subprocess.run([*analyze, "--html", folder / "page.html"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    out = subprocess.run([*analyze, "--json"], check=True, timeout=60, capture_output=True, text=True).stdout
    return Tables((folder / "page.html").read_text()).tables, json.loads(out.splitlines()[-1])


def assert_near(text: str, value, rel: float = 6e-3) -> None:
    if value is None:
        assert text == "-"
        return
    quantity_match = re.fullmatch(r"([+-]?[\d.]+(?:e-?\d+)?) ?([a-zA-Z%]*)", text)
    assert quantity_match, text
    assert float(quantity_match[1]) * UNIT_SCALES[quantity_match[2]] == pytest.approx(value, rel=rel, abs=1e-9), text


def assert_near_p(text: str, p) -> None:
    assert (text == "<1e-9" and p < 1e-9) or text == "-" and p is None or float(text) == pytest.approx(p, rel=0.06)


def join_levels(entry: dict) -> str:
    return ", ".join(entry.values())


def test_there_is_no_other_table_than_those_compared_here(page_and_json):
    tables, _ = page_and_json
    expected_table_names = {
        "cells",
        "verdicts",
        "comparisons",
        "epoch-table",
        "each-epoch",
        "functions",
        "pareto",
        "associations",
    }
    expected_table_names.add("cell-flags")
    assert set(tables) == expected_table_names


def test_cells_match_the_means_and_intervals_in_json(page_and_json):
    tables, result = page_and_json
    heads, *rows = tables["cells"]
    assert heads == ["framework", "n", "energy_j", "95 %", "gpu", "package", "dram", "time_s", "accuracy", "flags"]
    assert len(rows) == len(result["cells"])
    for row, cell in zip(rows, result["cells"]):
        assert (row[0], int(row[1])) == (cell["factors"]["framework"], cell["n"])
        assert_near(row[2], cell["energy_j"]["mean"])
        low, high = row[3].split(" to ")
        assert_near(low, cell["energy_j"]["low"])
        assert_near(high, cell["energy_j"]["high"])
        for text, kind in zip(row[4:7], heads[4:7]):
            assert_near(text, cell["domains"][kind]["mean"])
        assert_near(row[7], cell["time_s"]["mean"])
        assert_near(row[8], cell["metrics"]["accuracy"]["mean"])
        assert row[9].split(", ") == list(dict.fromkeys(flag["code"] for flag in cell["flags"])) or not cell["flags"]


def test_comparisons_and_verdicts_match_json(page_and_json):
    tables, result = page_and_json
    _, *rows = tables["comparisons"]
    _, *verdicts = tables["verdicts"]
    assert len(rows) == len(verdicts) == len(result["comparisons"]) > 3
    for row, verdict, comparison in zip(rows, verdicts, result["comparisons"]):
        stratum, metric, pair, difference, percent, a12, test, p, adjusted, _ = row
        assert (stratum, metric, pair) == (
            join_levels(comparison["within"]),
            comparison["metric"],
            f"{comparison['a']} - {comparison['b']}",
        )
        assert_near(difference, comparison["difference"])
        assert float(percent.split()[0]) == pytest.approx(comparison["percent"], abs=0.06)
        assert float(a12) == pytest.approx(comparison["a12"], abs=6e-3)
        assert test in comparison["test"]
        assert_near_p(p, comparison["p"])
        assert_near_p(adjusted, comparison["p_adjusted"])
        assert verdict == [stratum, metric, test, comparison["verdict"]]


def test_each_epoch_matches_json(page_and_json):
    tables, result = page_and_json
    heads, *rows = tables["each-epoch"]
    assert heads == ["cell", "epoch", "n", "energy", "time", "power"]
    expected_epochs = [
        (join_levels(cell["factors"]), cell_epoch) for cell in result["cells"] for cell_epoch in cell["epochs"]["each"]
    ]
    assert len(rows) == len(expected_epochs) == 4
    for row, (name, epoch) in zip(rows, expected_epochs):
        assert (row[0], int(row[1]), int(row[2])) == (name, epoch["number"], epoch["n"])
        for text, key in zip(row[3:], ("energy_j", "time_s", "power_w")):
            assert_near(text, epoch[key])


def test_epochs_match_json(page_and_json):
    tables, result = page_and_json
    _, *rows = tables["epoch-table"]
    for row, cell in zip(rows, result["cells"]):
        epochs = cell["epochs"]
        assert (row[0], int(row[1])) == (join_levels(cell["factors"]), epochs["count"])
        for text, key in zip(row[2:], ("first_j", "later_j", "first_s", "later_s")):
            assert_near(text, epochs[key])


def test_functions_match_json(page_and_json):
    tables, result = page_and_json
    _, *rows = tables["functions"]
    expected_functions = [
        (join_levels(cell["factors"]), function) for cell in result["cells"] for function in cell["functions"]
    ]
    assert len(rows) == len(expected_functions) == 2
    for row, (cell_label, function) in zip(rows, expected_functions):
        cell, name, device, energy, share, time, calls, cause, cause_time_share, cause_basis = row
        assert (cell, name, device) == (cell_label, function["name"], function["device"])
        assert (cause, cause_basis) == (function["cause"], function["cause_basis"])
        assert_near(energy, function["energy_j"])
        assert_near(share, function["share"], rel=0.01)
        assert_near(time, function["time_s"])
        assert float(calls) == function["count"]
        assert_near(cause_time_share, function["cause_s"][function["cause"]] / function["time_s"], rel=0.01)


def test_the_pareto_front_matches_json(page_and_json):
    tables, result = page_and_json
    _, *rows = tables["pareto"]
    points = [point for group in result["pareto"] for point in group["points"]]
    assert len(rows) == len(points)
    for (_, cell, on_front, probability), point in zip(rows, points):
        assert (cell, on_front == "yes") == (join_levels(point["factors"]), point["on_front"])
        assert float(probability) == pytest.approx(point["probability"], abs=6e-3)


def test_associations_match_json(page_and_json):
    tables, result = page_and_json
    _, *rows = tables["associations"]
    assert len(rows) == len(result["associations"])
    for (cell, n, spearman, p, kendall, kendall_p), association in zip(rows, result["associations"]):
        assert cell == (join_levels(association["factors"]) if association["factors"] else "medians of all cells")
        assert int(n) == association["n"]
        assert float(spearman) == pytest.approx(association["spearman"], abs=6e-3)
        assert_near_p(p, association["spearman_p"])
        assert float(kendall) == pytest.approx(association["kendall"], abs=6e-3)
        assert_near_p(kendall_p, association["kendall_p"])


def test_flags_match_json(page_and_json):
    tables, result = page_and_json
    _, *rows = tables["cell-flags"]
    flags = [("the experiment", flag) for flag in result["flags"]]
    flags += [(join_levels(cell["factors"]), flag) for cell in result["cells"] for flag in cell["flags"]]
    expected_rows = [[flag_scope, flag["code"], flag["message"], flag["remedy"] or ""] for flag_scope, flag in flags]
    assert rows == expected_rows


FACTORS = {"framework": ["a", "b"], "model": ["m", "n", "o"], "batch": ["1", "2"]}


def factorial_row(cell: tuple[int, ...], block: int) -> dict:
    ratio = 1.3 if cell[0] else 1
    joules = 100 * (1 + cell[1]) * ratio * (1 + 0.01 * deterministic_noise(block + 3 * cell[0] + cell[1]))
    return {
        "elapsed_s": 10 + deterministic_noise(block + cell[0] + 4 * cell[2]),
        "domains": [make_domain("gpu0", joules)],
    }


def test_effects_over_all_combinations_match_json(tmp_path, binaries):
    analyze = [
        binaries / "joulemap",
        "experiment",
        "analyze",
        write_factorial(tmp_path / "exp", FACTORS, factorial_row, 2),
    ]
    subprocess.run([*analyze, "--html", tmp_path / "page.html"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    result = json.loads(
        subprocess.run([*analyze, "--json"], check=True, timeout=60, capture_output=True, text=True).stdout
    )
    tables = Tables((tmp_path / "page.html").read_text()).tables
    _, *rows = tables["main-effects"]
    assert len(rows) == len(result["main_effects"]) == 2  # energy, time
    for row, json_entry in zip(rows, result["main_effects"]):
        factor, metric, pair, percent, _, higher, test, p, adjusted, effect_conclusion, verdict = row
        assert (factor, metric, pair) == ("framework", json_entry["metric"], "a - b")
        assert float(percent.split()[0]) == pytest.approx(json_entry["percent"], abs=0.06)
        assert higher == f"{json_entry['higher']} of {json_entry['combinations']}"
        assert (test, effect_conclusion, verdict) == (json_entry["test"], json_entry["result"], json_entry["verdict"])
        assert_near_p(p, json_entry["p"])
        assert_near_p(adjusted, json_entry["p_adjusted"])
    _, *rows = tables["interactions"]
    assert len(rows) == len(result["interactions"]) == 4
    for row, json_entry in zip(rows, result["interactions"]):
        assert row[:3] == [json_entry["factor"], json_entry["other"], json_entry["metric"]]
        assert_near_p(row[5], json_entry["p"])
        assert_near_p(row[7], json_entry["rank_p"])
        assert row[8] == json_entry["verdict"]
    _, *rows = tables["correlations"]
    assert len(rows) == len(result["correlations"]) > 4
    for (level, energy, correlated_metric, n, spearman, p), json_entry in zip(rows, result["correlations"]):
        assert (level, energy, correlated_metric, int(n)) == (
            json_entry["level"] or "all cells",
            json_entry["x"],
            json_entry["y"],
            json_entry["n"],
        )
        assert float(spearman) == pytest.approx(json_entry["spearman"], abs=6e-3)
        assert_near_p(p, json_entry["p"])
