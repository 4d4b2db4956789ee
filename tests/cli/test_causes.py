"""Causes of the energy of functions, from a recorded training on an H200: in reports, exports and experiment tables."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest

RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"
CAUSE_CLASSES = ["compute", "memory", "launch", "synchronisation"]
CONV_FUNCTION = "torch.nn.functional.conv2d"
PLAN_TOML = """
name = "kinds"
command = ["train", "{framework}"]
repetitions = 2
order = "blocked"
[factors]
framework = ["torch", "other"]
[metrics.accuracy]
more_is_better = true
"""


@pytest.fixture(scope="module")
def reports(binaries):
    """report --json of the recording by level; --mode integral takes a tenth of the time of regression."""

    def report(by: str) -> dict:
        command = [binaries / "joulemap", "report", RECORDING, "--mode", "integral", "--by", by, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)

    return {report_level: report(report_level) for report_level in ("function", "kernel", "domain")}


def row(rows: list[dict], name: str, device: str) -> dict:
    return next(report_row for report_row in rows if report_row["name"] == name and report_row["device"] == device)


def test_every_function_has_a_cause_whose_times_are_its_own(reports):
    rows = [report_row for report_row in reports["function"]["rows"] if report_row["name"] != "background"]
    for function_row in rows:
        assert function_row["cause"] in CAUSE_CLASSES and function_row["cause_basis"] in ("ledger", "name")
        assert list(function_row["cause_s"]) == CAUSE_CLASSES
        assert sum(function_row["cause_s"].values()) == pytest.approx(function_row["time_s"], rel=1e-6, abs=1e-9)
        assert function_row["cause_s"][function_row["cause"]] == max(function_row["cause_s"].values())
    background = row(reports["function"]["rows"], "background", "cpu")
    assert background["cause"] is None and background["cause_s"] is None


def test_gpu_and_host_activity_determine_the_cause(reports):
    rows = reports["function"]["rows"]
    assert row(rows, CONV_FUNCTION, "gpu0")["cause"] == "compute"
    assert row(rows, CONV_FUNCTION, "cpu")["cause"] == "launch"
    assert row(rows, CONV_FUNCTION, "cpu")["cause_basis"] == "ledger"
    on_gpu = [function_row for function_row in rows if function_row["device"] == "gpu0"]
    assert all(function_row["cause_basis"] == "ledger" for function_row in on_gpu), (
        "kernels and copies are known one by one"
    )
    synchronize_row = row(rows, "torch.cuda.synchronize", "cpu")
    assert (synchronize_row["cause"], synchronize_row["cause_basis"]) == ("synchronisation", "name")


def test_copies_are_memory_and_domains_have_no_cause(reports):
    causes = {kernel_row["name"]: kernel_row["cause"] for kernel_row in reports["kernel"]["rows"]}
    assert causes["HtoD"] == "memory"
    assert any(cause == "compute" for cause in causes.values())
    assert all(domain_row["cause"] is None for domain_row in reports["domain"]["rows"])


def test_exports_contain_the_same_causes(joulemap, reports):
    def exported(form: str) -> str:
        return joulemap("export", RECORDING, "--mode", "integral", "--to", form, "--by", "function").out

    rows = {(csv_row["name"], csv_row["device"]): csv_row for csv_row in csv.DictReader(io.StringIO(exported("csv")))}
    for function_row in reports["function"]["rows"]:
        line = rows[function_row["name"], function_row["device"]]
        assert line["cause"] == (function_row["cause"] or "")
        assert line["cause_basis"] == (function_row["cause_basis"] or "")
        if function_row["cause"]:
            assert float(line["launch_s"]) == function_row["cause_s"]["launch"]
    graph = exported("dot")
    label = next(line for line in graph.splitlines() if line.startswith('  "ConvolutionBackward0" ['))
    assert "\\ncompute" in label


@pytest.fixture
def experiment(joulemap, reports, tmp_path) -> Path:
    """Two rows of each cell are done. One framework has recorded functions, the other only function names."""
    (tmp_path / "experiment.toml").write_text(PLAN_TOML)
    folder = tmp_path / "exp"
    assert joulemap("experiment", "plan", tmp_path / "experiment.toml", "-o", folder).code == 0
    recorded_functions = [
        function_row
        for function_row in reports["function"]["rows"]
        if function_row["name"] not in ("probe", "background")
    ]
    members = ("name", "device", "count", "time_s", "energy_j")
    with (folder / "run_table.csv").open() as file:
        table = list(csv.DictReader(file))
    for number, planned in enumerate(table):
        names = [{"name": "cudaMemcpyAsync", "device": "cpu", "count": 3, "time_s": 0.5, "energy_j": 4.0}]
        functions = recorded_functions if planned["framework"] == "torch" else names
        function_entries = [
            {key: function_row[key] for key in (*members, *(key for key in function_row if key.startswith("cause")))}
            for function_row in functions
        ]
        attempt = folder / "rows" / f"{number:05}" / "attempt-1"
        attempt.mkdir(parents=True)
        (attempt / "row.json").write_text(json.dumps({
            "schema": "joulemap.row/1", "number": number, "block": int(planned["block"]), "state": "done",
            "levels": {"framework": planned["framework"]}, "exit_code": 0, "functions": function_entries,
            "elapsed_s": 49.0 + number, "energy_j": 17000.0 + number, "throttled_share": 0.0 if number else 0.5,
            "metrics": {"accuracy": 0.75 if number else None},
        }))  # fmt: skip
    return folder


def test_an_experiment_reports_functions_of_each_cell_and_the_evidence_for_their_causes(joulemap, experiment, reports):
    result = joulemap("experiment", "analyze", experiment, "--json").json
    torch, other_cell = (
        next(cell for cell in result["cells"] if cell["factors"]["framework"] == name) for name in ("torch", "other")
    )
    conv = row(torch["functions"], CONV_FUNCTION, "gpu0")
    expected = row(reports["function"]["rows"], CONV_FUNCTION, "gpu0")
    assert (conv["n"], conv["cause"], conv["cause_basis"]) == (2, "compute", "ledger")
    assert conv["energy_j"] == pytest.approx(expected["energy_j"])
    assert conv["count"] == expected["count"]
    assert conv["share"] == pytest.approx(expected["energy_j"] / 17000, rel=1e-3)
    assert row(torch["functions"], CONV_FUNCTION, "cpu")["cause"] == "launch"
    copy_row = row(other_cell["functions"], "cudaMemcpyAsync", "cpu")
    assert (copy_row["cause"], copy_row["cause_basis"]) == ("memory", "name")


def test_every_table_of_an_experiment_has_the_causes(joulemap, experiment, tmp_path):
    function_csv_rows = csv.DictReader(
        io.StringIO(joulemap("experiment", "analyze", experiment, "--csv-functions").out)
    )
    lines = {(line["framework"], line["function"], line["device"]): line for line in function_csv_rows}
    assert lines["torch", CONV_FUNCTION, "cpu"]["cause"] == "launch"
    assert lines["torch", CONV_FUNCTION, "cpu"]["cause_basis"] == "ledger"
    assert lines["other", "cudaMemcpyAsync", "cpu"]["cause_basis"] == "name"
    markdown = joulemap("experiment", "analyze", experiment, "--markdown").out
    line = next(line for line in markdown.splitlines() if "cudaMemcpyAsync" in line)
    assert line.endswith("| memory | 100.0 % | name |")
    text = joulemap("experiment", "analyze", experiment, "--full").out
    part = text[text.index("Functions with the highest energy, with causes") : text.index("Comparisons")]
    assert "synchronisation" in part and "compute" in part, "classes are not cut off in 80 columns"
    assert max(map(len, part.splitlines())) <= 80
    page = tmp_path / "page.html"
    assert joulemap("experiment", "analyze", experiment, "--html", page).code == 0
    assert '<section id="functions">' in page.read_text() and "<td>launch" in page.read_text()


def test_single_rows_come_as_csv_with_their_metrics_and_flags(joulemap, experiment):
    rows = list(csv.DictReader(io.StringIO(joulemap("experiment", "analyze", experiment, "--csv-rows").out)))
    assert [line["row"] for line in rows] == ["0", "1", "2", "3"]
    assert {line["framework"] for line in rows} == {"torch", "other"}
    assert [line["state"] for line in rows] == ["done"] * 4
    assert [float(line["energy_j"]) for line in rows] == [17000, 17001, 17002, 17003]
    assert [line["accuracy"] for line in rows] == ["", "0.75", "0.75", "0.75"]
    assert rows[0]["flags"] == "throttled" and rows[1]["flags"] == ""


def test_two_kinds_of_csv_at_once_are_wrong_usage(joulemap, experiment):
    assert joulemap("experiment", "analyze", experiment, "--csv-rows", "--csv-functions").code == 2
