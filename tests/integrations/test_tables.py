"""A recording as pandas and Arrow tables, read back by these libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas
import polars
import pyarrow.parquet
import pytest

import joulemap as jm
from joulemap._recorder import joulemap_program_path
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

GPU_RECORDING = Path(__file__).resolve().parent.parent.parent / "examples" / "resnet50-h200.joule"

WORK_PROGRAM = """
import joulemap as jm
for number in range(3):
    jm.step(number)
    with jm.region("forward"):
        sum(range(2_000_000))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "run.joule"
    command = [
        joulemap_program_path(),
        "record",
        "--sensors",
        "estimate",
        "-o",
        str(path),
        "--",
        sys.executable,
        "-c",
        WORK_PROGRAM,
    ]
    subprocess.run(command, check=True, timeout=120)
    return jm.load(path)


def test_rows_are_those_of_the_report_in_every_table(run, tmp_path):
    ledger = run.ledger(by="region")
    expected = [(" ".join(row.path), row.energy_j) for row in ledger.rows]
    assert "forward" in [row.name for row in ledger.rows]
    ledger.to_parquet(tmp_path / "rows.parquet")
    read = pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pandas()
    for table in (ledger.to_pandas(), read, ledger.to_arrow().to_pandas()):
        assert list(table["path"]) == [path for path, _ in expected]
        assert list(table["energy_j"]) == pytest.approx([joules for _, joules in expected], nan_ok=True)
        assert set(table["part"]) == {"cpu+ram"}


def test_steps_come_in_their_order(run, tmp_path):
    assert list(run.to_pandas(by="step")["path"]) == ["step 0", "step 1", "step 2"]
    run.to_csv(tmp_path / "steps.csv", by="step")
    read = pandas.read_csv(tmp_path / "steps.csv")
    assert list(read["energy_j"]) == pytest.approx(list(run.to_pandas(by="step")["energy_j"]))


def values_address(column) -> int:
    """Memory address of the values of an Arrow column."""
    (chunk,) = column.chunks
    return chunk.buffers()[1].address


def test_polars_takes_the_table_without_a_copy(run):
    table = run.ledger(by="region").to_arrow()
    frame = polars.from_arrow(table)
    for name in ("energy_j", "time_s"):
        assert frame[name].to_arrow().buffers()[1].address == values_address(table[name])
    assert frame["path"].to_list() == table["path"].to_pylist()


def test_pandas_takes_the_table_without_a_copy(run):
    table = run.ledger(by="region").to_arrow()
    frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
    for name in ("energy_j", "time_s"):
        assert values_address(frame[name].array.__arrow_array__()) == values_address(table[name])


def test_libraries_with_arrows_c_interface_accept_the_ledger(run):
    ledger = run.ledger(by="region")
    assert polars.DataFrame(ledger)["energy_j"].to_list() == [row.energy_j for row in ledger.rows]
    assert pyarrow.table(ledger) == ledger.to_arrow()


def test_layers_are_exported_per_step_as_means_and_as_sums(tmp_path):
    run = jm.load(GPU_RECORDING)
    step_energy_table = run.to_pandas(per="step")
    column = step_energy_table["gpu0 train backward layer4.0.conv1"]
    assert step_energy_table.index.name == "step"
    assert len(step_energy_table) > 100
    tables = (
        run.to_pandas(per=aggregation).set_index(["device", "path"])["energy_j"] for aggregation in ("sum", "mean")
    )
    sum_j, mean_j = (table["gpu0", "train backward layer4.0.conv1"] for table in tables)
    assert mean_j == pytest.approx(sum_j / len(run.steps()))
    assert column.mean() == pytest.approx(mean_j, rel=0.25)  # steps with individually recorded kernels
    run.to_csv(tmp_path / "full.csv", per="step")
    assert list(pandas.read_csv(tmp_path / "full.csv").columns) == ["step", *step_energy_table.columns]
    selected_layer_table = run.layer_steps(["layer4.0.conv1", "fc"])
    assert {name.split()[-1] for name in selected_layer_table.columns} == {"layer4.0.conv1", "fc"}


def test_tensorboard_reads_what_a_run_wrote_into_its_folder(tmp_path):
    jm.load(GPU_RECORDING).to_tensorboard(tmp_path / "runs")
    events = EventAccumulator(str(tmp_path / "runs"))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert "joulemap_step/energy_j" in tags
    assert any(tag.startswith("joulemap_gpu0_train_backward/layer4") for tag in tags)


def test_lines_are_drawn_of_the_layers_that_were_chosen(tmp_path):
    run = jm.load(GPU_RECORDING)
    run.plot(tmp_path / "lines.svg", "lines", layers=["layer4.0.conv1", "fc"], smooth=5)
    svg_text = (tmp_path / "lines.svg").read_text()
    assert "means over 5 points" in svg_text
    assert "layer4.0.conv1" in svg_text and "train backward fc" in svg_text and "layer3" not in svg_text


def test_the_program_exports_only_the_requested_part_to_parquet(tmp_path):
    recording = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"
    sums = []
    for name, options in (("whole", []), ("part", ["--time", "12,16"])):
        file = tmp_path / f"{name}.parquet"
        command = [
            joulemap_program_path(),
            "export",
            str(recording),
            "--to",
            "parquet",
            "--exclude",
            "cpu,ram",
            "-o",
            str(file),
            *options,
        ]
        subprocess.run(command, check=True, env={**os.environ, "JOULEMAP_PYTHON": sys.executable})
        sums.append(sum(joules or 0 for joules in pyarrow.parquet.read_table(file)["energy_j"].to_pylist()))
    assert 0 < sums[1] < 0.5 * sums[0]


def test_the_program_exports_parquet(run, tmp_path):
    environment = {**os.environ, "JOULEMAP_PYTHON": sys.executable}
    command = [
        joulemap_program_path(),
        "export",
        *run.files,
        "--to",
        "parquet",
        "--by",
        "region",
        "-o",
        str(tmp_path / "rows.parquet"),
    ]
    subprocess.run(command, check=True, timeout=120, env=environment)
    energies = pyarrow.parquet.read_table(tmp_path / "rows.parquet")["energy_j"].to_pylist()
    assert energies == [row.energy_j for row in run.ledger(by="region").rows]
