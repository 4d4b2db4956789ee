"""`import prengdl`, `import nvidia-smi --epochs` and `experiment analyze`, end to end on generated files of the
published layouts."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from pathlib import Path

import pytest
from made_rows import make_domain, write_factorial

PERF_OUTPUT = """
 Performance counter stats for 'system wide':

        {package:,.2f} Joules power/energy-pkg/
        {dram:,.2f} Joules power/energy-ram/

    {seconds:.9f} seconds time elapsed
"""
# Published values: NCF inference with TensorFlow, seconds per run.
WARM_UP_RUN_TIMES_S = [336, 216, 217, 205, 66, 20, 19, 19.2, 19.1, 19.3]
TORCH_TIMES_S = [150 + (7 * i + 3) % 10 for i in range(10)]


@pytest.fixture(scope="module")
def published_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "measurements_inference"
    folder.mkdir()
    for framework, times in (("PyTorch", TORCH_TIMES_S), ("TensorFlow", WARM_UP_RUN_TIMES_S)):
        for model, factor in (("ncf", 1), ("mask_rcnn", 2)):
            for number, seconds in enumerate(times if model == "ncf" else [10 + t / 1000 for t in TORCH_TIMES_S], 1):
                stem = folder / f"{model}_{framework}"
                text = PERF_OUTPUT.format(package=100 * seconds * factor, dram=10 * seconds, seconds=seconds)
                Path(f"{stem}_perf_{number}.txt").write_text(text)
                # Samples are less than one second apart: one sample more than the whole seconds.
                powers = [5.7 if number == 1 else 35.0] + [100.0] * int(seconds)
                Path(f"{stem}_nvidia_smi_{number}.txt").write_text("".join(f"{p:.2f} W\n" for p in powers))
    return folder.parent


@pytest.fixture
def experiment(joulemap, published_folder, tmp_path) -> Path:
    import_outcome = joulemap("import", "prengdl", str(published_folder), "-o", str(tmp_path / "exp"))
    assert import_outcome.code == 0, import_outcome.err
    assert "40 rows in 4 cells" in import_outcome.err
    return tmp_path / "exp"


def test_published_data_are_analysed_and_their_faults_are_reported(joulemap, experiment):
    result = json.loads(joulemap("experiment", "analyze", str(experiment), "--json").out)
    assert result["schema"] == "joulemap.analysis/1"
    codes = {flag["code"] for flag in result["flags"]}
    assert {"arbitrary_pairing", "not_interleaved", "warm_up", "drift", "cool_down", "sum_of_samples"} <= codes
    ncf_factors = {"framework": "TensorFlow", "model": "ncf"}
    ncf_cell = next(cell for cell in result["cells"] if ncf_factors.items() <= cell["factors"].items())
    assert ncf_cell["time_s"]["values"] == pytest.approx(WARM_UP_RUN_TIMES_S)
    assert ncf_cell["time_s"]["median"] == pytest.approx(43)
    assert {"warm_up", "large_spread"} <= {flag["code"] for flag in ncf_cell["flags"]}
    assert all(comparison["factor"] == "framework" for comparison in result["comparisons"])
    tests = {comparison["test"] for comparison in result["comparisons"]}
    assert tests == {"wilcoxon-signed-rank", "mann-whitney"}, "without blocks both stand there"
    assert any(note["code"] == "order_assumed" for note in result["diagnostics"])


def test_p_values_are_adjusted_by_the_requested_method(joulemap, experiment):
    def adjusted(*flags: str) -> list[dict]:
        out = joulemap("experiment", "analyze", str(experiment), "--json", "--metric", "time_s", *flags).out
        return json.loads(out)["comparisons"]

    for comparison in adjusted("--adjust", "bonferroni"):
        assert comparison["family"] == 2
        assert comparison["p_adjusted"] == pytest.approx(min(1, 2 * comparison["p"]))
    for comparison in adjusted("--adjust", "none"):
        assert comparison["p_adjusted"] == comparison["p"]


def test_every_format_contains_the_same_numbers(joulemap, experiment, tmp_path):
    result = json.loads(joulemap("experiment", "analyze", str(experiment), "--json").out)
    rows = list(csv.DictReader(io.StringIO(joulemap("experiment", "analyze", str(experiment), "--csv").out)))
    assert len(rows) == len(result["comparisons"])
    for row, comparison in zip(rows, result["comparisons"]):
        assert float(row["p"]) == comparison["p"]
        assert row["verdict"] == comparison["verdict"]
    markdown = joulemap("experiment", "analyze", str(experiment), "--markdown").out
    latex = joulemap("experiment", "analyze", str(experiment), "--latex").out
    assert "## Methods" in markdown
    assert "\\begin{longtable}" in latex and "mask\\_rcnn" in latex
    text = joulemap("experiment", "analyze", str(experiment), "--full").out
    assert "arbitrary_pairing" in text and "Verdicts" in text


def test_the_page_is_one_file_that_loads_nothing(joulemap, experiment, tmp_path):
    single_thread_page, multi_thread_page = tmp_path / "a.html", tmp_path / "b.html"
    for page, threads in ((single_thread_page, "1"), (multi_thread_page, "3")):
        assert joulemap("experiment", "analyze", str(experiment), "--threads", threads, "--html", str(page)).code == 0
    page = single_thread_page.read_text()
    assert page == multi_thread_page.read_text(), "the same bytes at any number of threads"
    assert not re.findall(r"(?:src|href)\s*=", page)
    assert page.count("<svg") >= 8
    for part in ("Flags of the experiment", "Verdicts", "Methods", "warm_up"):
        assert part in page


def test_logs_of_nvidia_smi_and_epochs_become_an_experiment(joulemap, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    for framework, watts in (("torch", 100), ("tf", 150)):
        for run in (1, 2, 3):
            gauges = "temperature.gpu, memory.used [MiB], utilization.gpu [%], utilization.memory [%]"
            lines = [f"timestamp, power.draw [W], {gauges}"]
            for second_of_minute in range(10, 31):
                lines.append(f"2023/05/08 01:48:{second_of_minute:02}.500, {watts + run}.00 W, 40, 512 MiB, 50 %, 5 %")
            (logs / f"run{run}-{framework}-ENERGY.csv").write_text("\n".join(lines) + "\n")
            epochs = ["epoch;precision;recall;accuracy;f1;timestamp"]
            epochs += [f"{i};0.1;0.2;0.{3 + i};0.4;2023-05-08 01:48:{20 + 5 * i}" for i in range(3)]
            (logs / f"run{run}-{framework}_MODEL.csv").write_text("\n".join(epochs) + "\n")
    import_outcome = joulemap(
        "import",
        "nvidia-smi",
        str(logs),
        "--pattern",
        "run{run}-{framework}-ENERGY.csv",
        "--epochs",
        "run{run}-{framework}_MODEL.csv",
        "--utc-offset",
        "Z",
        "-o",
        str(tmp_path / "exp"),
        "--json",
    )
    assert import_outcome.code == 0, import_outcome.err
    assert json.loads(import_outcome.out)["epochs"] == 18
    result = json.loads(joulemap("experiment", "analyze", str(tmp_path / "exp"), "--json").out)
    torch = next(cell for cell in result["cells"] if cell["factors"]["framework"] == "torch")
    assert torch["energy_j"]["values"] == pytest.approx([20 * 101, 20 * 102, 20 * 103])
    assert torch["epochs"]["first_j"] == pytest.approx(10 * 102)
    assert torch["epochs"]["later_j"] == pytest.approx(5 * 102)
    assert torch["metrics"]["accuracy"]["mean"] == pytest.approx(0.5)
    assert torch["metrics"]["gpu_utilization"]["mean"] == pytest.approx(50)
    assert "gpu_utilization" not in {comparison["metric"] for comparison in result["comparisons"]}, "shown, not compared"
    first_epoch, *_, last_epoch = torch["epochs"]["each"]
    assert (first_epoch["number"], first_epoch["n"], last_epoch["number"]) == (1, 3, 3)
    assert first_epoch["power_w"] == pytest.approx(102)
    assert first_epoch["values"] == pytest.approx(
        {
            "gpu_utilization": 50,
            "memory_utilization": 5,
            "memory_used": 512,
            "temperature": 40,
            "precision": 0.1,
            "recall": 0.2,
            "accuracy": 0.3,
            "f1": 0.4,
        }
    )
    assert last_epoch["values"]["accuracy"] == pytest.approx(0.5)
    rows = list(csv.DictReader(io.StringIO(joulemap("experiment", "analyze", tmp_path / "exp", "--csv-epochs").out)))
    assert len(rows) == 6 and {row["epoch"] for row in rows} == {"1", "2", "3"}
    row = next(row for row in rows if row["framework"] == "torch" and row["epoch"] == "2")
    assert float(row["power_w"]) == pytest.approx(102) and float(row["temperature"]) == 40
    text = joulemap("experiment", "analyze", tmp_path / "exp", "--full").out
    assert "Epochs: means over rows" in text and "GPU %" in text and "degC" in text and "accuracy" in text


@pytest.fixture(scope="module")
def many_cell_experiment(tmp_path_factory) -> Path:
    """24 cells with an accuracy, power over time and epochs."""

    def row_of(levels, block):
        joules = 1000 * (1 + levels[1]) * (1 + levels[2]) + 10 * levels[0] + block
        channels = [
            {"name": "gpu0", "unit": "W", "values": [50, 200, 200 + levels[1], None, 190]},
            {"name": "temperature", "unit": "degC", "values": [40, 50, 60, 61, 62]},
        ]
        return {
            "elapsed_s": 10,
            "domains": [make_domain("gpu0", joules)],
            "metrics": {"accuracy": 0.5 + 0.05 * levels[1] + 0.02 * levels[0] + 0.01 * levels[2]},
            "epochs": [
                {"start_s": 0, "elapsed_s": 6, "energy_j": 600, "metrics": {}, "gauges": {}},
                {"start_s": 6, "elapsed_s": 4, "energy_j": 400, "metrics": {}, "gauges": {}},
            ],
            "series": {"slice_s": 2, "channels": channels},
        }

    factors = {"framework": ["torch", "tf"], "model": ["r50", "r101", "r152"], "batch": ["32", "64", "128", "256"]}
    folder = write_factorial(tmp_path_factory.mktemp("many") / "exp", factors, row_of, repetitions=2)
    plan = folder / "experiment.toml"
    plan.write_text(plan.read_text() + '\n[metrics."accuracy"]\nmore_is_better = true\n')
    return folder


def test_one_run_over_time_of_chosen_cells_has_epoch_marks(joulemap, many_cell_experiment, tmp_path):
    picture = tmp_path / "runs.svg"
    cells = ["--cell", "framework=torch,model=r101,batch=128", "--cell", "framework=tf,model=r101,batch=128"]
    plot_outcome = joulemap("experiment", "analyze", many_cell_experiment, "--plot", "timeline", *cells, "-o", picture)
    assert plot_outcome.code == 0, plot_outcome.err
    svg = picture.read_text()
    assert "torch, r101, 128 (row" in svg and "tf, r101, 128 (row" in svg
    assert svg.count('stroke-dasharray="2 3"') == 4, "two runs with two epochs each"
    assert "power, W" in svg and "temp., degC" in svg


def test_cells_of_a_plot_must_be_named_completely(joulemap, many_cell_experiment, tmp_path):
    def plot(*flags):
        return joulemap("experiment", "analyze", many_cell_experiment, *flags, "-o", tmp_path / "p.svg")

    plot_outcome = plot("--plot", "timeline", "--cell", "framework=torch,model=r50")
    assert plot_outcome.code == 2 and "4 cells match" in plot_outcome.err and "batch=LEVEL" in plot_outcome.err
    plot_outcome = plot("--plot", "timeline", "--cell", "framework=jax")
    assert plot_outcome.code == 2 and "torch, tf" in plot_outcome.err
    assert plot("--plot", "timeline", "--cell", "weather=rain").code == 2
    assert plot("--plot", "bars", "--cell", "framework=torch").code == 2
    assert plot("--plot", "bars", "--json").code == 2
    assert plot("--plot", "pie").code == 2


def test_accuracy_against_energy_numbers_every_cell_and_draws_the_front(joulemap, many_cell_experiment, tmp_path):
    picture = tmp_path / "tradeoff.svg"
    plot_outcome = joulemap("experiment", "analyze", many_cell_experiment, "--plot", "tradeoff", "-o", picture)
    assert plot_outcome.code == 0, plot_outcome.err
    svg = picture.read_text()
    assert "accuracy against energy" in svg
    for number in range(1, 25):
        assert svg.count(f">{number}</text>") >= 2, "at its point and in the list"
    assert svg.count('stroke-dasharray="5 3"') >= 1, "the Pareto front"


def test_an_experiment_without_the_data_of_a_plot_says_what_is_missing(joulemap, experiment, tmp_path):
    for plot, missing_data in (("timeline", "power over time"), ("tradeoff", "metric"), ("epochs", "epochs")):
        plot_outcome = joulemap("experiment", "analyze", experiment, "--plot", plot, "-o", tmp_path / "p.svg")
        assert plot_outcome.code == 1 and missing_data in plot_outcome.err, plot
        assert not (tmp_path / "p.svg").exists()
    for plot in ("bars", "violins", "bubbles"):
        assert joulemap("experiment", "analyze", experiment, "--plot", plot, "-o", tmp_path / "p.svg").code == 0, plot


def test_invalid_queries_are_rejected_with_the_valid_choices(joulemap, experiment, tmp_path):
    analysis_outcome = joulemap("experiment", "analyze", str(experiment), "--metric", "happiness")
    assert analysis_outcome.code == 2 and "energy_j" in analysis_outcome.err
    assert joulemap("experiment", "analyze", str(experiment), "--factor", "weather").code == 2
    assert joulemap("experiment", "analyze", str(experiment), "--adjust", "sidak").code == 2
    assert joulemap("experiment", "analyze", str(tmp_path / "nothing")).code == 1
    assert joulemap("import", "prengdl", str(tmp_path), "-o", str(tmp_path / "new")).code == 1
    assert joulemap("import", "prengdl", str(experiment.parent), "-o", str(experiment)).code == 1


def test_a_long_analysis_is_summarized_on_a_screen_with_its_details_in_files(joulemap, experiment):
    folder = experiment
    full_report = joulemap("experiment", "analyze", str(folder), "--full").out
    assert full_report.count("\n") > 50
    summary = joulemap("experiment", "analyze", str(folder)).out
    assert summary.count("\n") <= 50 and "analysis.html" in summary
    assert (folder / "analysis" / "analysis.txt").read_text() == full_report
    comparisons = joulemap("experiment", "analyze", str(folder), "--csv").out
    assert (folder / "analysis" / "comparisons.csv").read_text() == comparisons
    assert joulemap("experiment", "analyze", str(folder)).out == summary  # its own files are no rows


FACTORS = {
    "framework": ["pytorch", "tensorflow"],
    "dataset": ["cifar10", "fashion", "imagenet"],
    "model": ["resnet", "vgg", "mobilenet"],
    "batch": ["32", "64", "128", "256"],
}


@pytest.fixture
def analyze_effects(joulemap, tmp_path):
    """effects_of(ratio): 36 combinations with two repetitions; `ratio(model)` is the energy of TensorFlow over PyTorch's."""

    def analyze(ratio, order: str = "random") -> dict:
        draw = random.Random(1)

        def row(cell: tuple[int, ...], block: int) -> dict:
            size = 50 * (1 + cell[1]) * (2 + cell[2]) * (1 + cell[3])
            joules = size * (ratio(cell[2]) if cell[0] else 1) * draw.lognormvariate(0, 0.03)
            return {"elapsed_s": size / 100 * draw.lognormvariate(0, 0.03), "domains": [make_domain("gpu0", joules)]}

        folder = write_factorial(tmp_path / "exp", FACTORS, row, 2, order)
        summary = joulemap("experiment", "analyze", folder, "--factor", "framework").out
        assert summary.count("\n") <= 50
        result = joulemap("experiment", "analyze", folder, "--factor", "framework", "--json").json
        rows = csv.DictReader(io.StringIO(joulemap("experiment", "analyze", folder, "--csv-effects").out))
        by_metric = {main_effect["metric"]: main_effect for main_effect in result["main_effects"]}
        assert {row["metric"]: row["verdict"] for row in rows if row["kind"] == "main effect"} == {
            metric: main_effect["verdict"] for metric, main_effect in by_metric.items()
        }
        assert " ".join(by_metric["energy_j"]["verdict"].split()) in " ".join(summary.split())
        for flag in ("--markdown", "--latex", "--full"):
            assert "Effects over all combinations" in joulemap("experiment", "analyze", folder, flag).out
        return {**result, "effects": by_metric, "summary": summary}

    return analyze


@pytest.mark.parametrize("order", ["random", "blocked"])
def test_a_consistent_effect_across_small_combinations_is_found(analyze_effects, order):
    result = analyze_effects(lambda model: 1.32, order)
    assert not any(comparison["different"] for comparison in result["comparisons"])
    energy = result["effects"]["energy_j"]
    assert (energy["result"], energy["combinations"], energy["lower"]) == ("general", 36, 36)
    assert energy["percent_low"] < 100 * (1 / 1.32 - 1) < energy["percent_high"]
    verdict_pattern = (
        r"tensorflow uses 3\d(\.\d)? % more energy than pytorch over 36 combinations of dataset, model and batch "
    )
    assert re.match(verdict_pattern + r"\(.* to .* %; higher in 36 of 36; p < 1e-9", energy["verdict"])
    assert result["effects"]["time_s"]["result"] == "not shown"
    assert result["summary"].index("Effects over all combinations") < result["summary"].index("Flags")


def test_effects_of_opposite_direction_have_no_general_verdict(analyze_effects):
    result = analyze_effects(lambda model: (1.5, 1.4, 0.8)[model])
    energy = result["effects"]["energy_j"]
    assert energy["result"] == "direction differs"
    assert energy["verdict"].startswith("no general effect of framework on energy: tensorflow is higher than pytorch")
    assert "in 24 of 36 combinations" in energy["verdict"]
    interacting_factors = {
        interaction["other"]
        for interaction in result["interactions"]
        if interaction["metric"] == "energy_j" and interaction["different"]
    }
    assert interacting_factors == {"model"}
    assert "the effect of framework on energy depends on model" in " ".join(result["summary"].split())


def test_equal_variants_have_no_effect_over_all_combinations(analyze_effects):
    result = analyze_effects(lambda model: 1)
    assert result["effects"]["energy_j"]["result"] == "not shown"
    assert result["effects"]["energy_j"]["verdict"].startswith(
        "no effect of framework on energy shown over 36 combinations"
    )
