"""The experiments of examples/experiments that train networks: programs, plans and tables, in sizes of seconds."""

from __future__ import annotations

import csv
import gzip
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS_FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments"
CELLS_BY_PLAN = {
    "hyperparameters/cpu.toml": 18,
    "hyperparameters/h200.toml": 18,
    "levels/cpu.toml": 6,
    "levels/h200.toml": 24,
    "precision/cpu.toml": 8,
    "precision/h200.toml": 24,
}

# Runs a program once for each list of arguments, in one process: importing PyTorch takes longer than these runs.
# torch.compile captures the network, but does not call a C++ compiler.
RUN_PROGRAM = """
import functools
sys.path.insert(0, {folder!r})
import torch
import {module} as program
torch.compile = functools.partial(torch.compile, backend="eager")
results = []
for arguments in {argument_lists!r}:
    sys.argv = ["program", *arguments, "--folder", {output!r}]
    program.main()
    with open({output!r} + "/metrics.json") as file:
        results.append(json.load(file))
{more}
print(json.dumps(results))
"""
COUNT_PARAMETERS = """
with torch.device("meta"):
    networks = [program.make_resnet(depth, 1000) for depth in (50, 101, 152)]
results += [sum(parameter.numel() for parameter in network.parameters()) for network in networks]
"""


@pytest.fixture
def run_experiment(python, tmp_path):
    """Returns the metrics of each run of experiment/module.py, and what the program `more` adds to `results`."""

    def run(experiment: str, module: str, *argument_lists: str, more: str = "") -> list:
        program = RUN_PROGRAM.format(
            folder=str(EXPERIMENTS_FOLDER / experiment),
            module=module,
            argument_lists=[line.split() for line in argument_lists],
            output=str(tmp_path),
            more=more,
        )
        return python(program)

    return run


def write_idx_file(file: Path, sizes: list[int], values: bytes) -> None:
    header = bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes)
    file.write_bytes(gzip.compress(header + values))


@pytest.fixture
def fashion_folder(tmp_path) -> Path:
    """A data set in the format of Fashion-MNIST: an image of class c has a bright row number 2 c."""
    folder = tmp_path / "images"
    folder.mkdir()
    draw = random.Random(1)
    for part, count in (("train", 640), ("t10k", 100)):
        classes = [i % 10 for i in range(count)]
        pixels = bytearray(draw.randbytes(784 * count))
        for i, label in enumerate(classes):
            begin = 784 * i + 28 * 2 * label
            pixels[begin : begin + 28] = bytes([255] * 28)
        write_idx_file(folder / f"{part}-images-idx3-ubyte.gz", [count, 28, 28], bytes(pixels))
        write_idx_file(folder / f"{part}-labels-idx1-ubyte.gz", [count], bytes(classes))
    return folder


def test_hyperparameters_trainings_end_at_the_target_or_at_the_limit(run_experiment, fashion_folder):
    common_arguments = f"--data {fashion_folder} --images-between-tests 320 --epochs 4"
    target_reached_row, target_missed_row, large_network_row = run_experiment(
        "hyperparameters",
        "train",
        f"{common_arguments} --optimizer adam --rate 0.01 --batch 32 --trainings 2",
        f"{common_arguments} --optimizer sgd --rate 0 --batch 128",
        f"{common_arguments} --size large --optimizer sgd --rate 0.01 --batch 128 --target 0",
    )
    assert (
        target_reached_row["reached"] == 1
        and target_reached_row["accuracy"] >= 0.85
        and target_reached_row["epochs"] < 4
    )
    assert target_missed_row["reached"] == 0 and target_missed_row["accuracy"] < 0.85, (
        "the energy until the limit is still reported"
    )
    assert target_missed_row["epochs"] == 4 and target_missed_row["steps"] == 20
    assert large_network_row["epochs"] == 0.4, "tested after 2 of 2.5 batches"
    assert all(
        row["training_j"] > 0 and row["provenance"]
        for row in (target_reached_row, target_missed_row, large_network_row)
    )


def test_levels_train_networks_of_the_published_size(run_experiment):
    arguments = "--depth 50 --batch 8 --images 32 --epochs 3"
    row, *counts = run_experiment("levels", "train", arguments, more=COUNT_PARAMETERS)
    assert row["training_j"] > 0 and row["first_epoch_ratio"] > 0
    assert sum(row["epoch_s"]) > 0.5 * row["training_s"], "the window contains the epochs and nothing long beside them"
    assert len(row["epoch_s"]) == 3 and row["loss"][2] < row["loss"][0]
    assert counts == [25_557_032, 44_549_160, 60_192_808]


def test_precision_steps_train_and_infer(run_experiment):
    variants = [
        "--network transformer",
        "--network transformer --precision bf16",
        "--network transformer --precision fp16",
        "--network resnet --execution compiled",
    ]
    rows = run_experiment("precision", "measure_steps", *(f"{variant} --seconds 0.05" for variant in variants))
    for row in rows:
        assert row["last_loss"] < row["first_loss"]
        assert row["training_ms"] > 0 and row["inference_ms"] > 0
    fp32, bf16, fp16, compiled = (row["score_error"] for row in rows)
    assert fp32 == 0 and compiled < 1e-4
    assert 1e-5 < fp16 < bf16 < 0.05, "fp16 has more digits"


@pytest.mark.parametrize("plan, cells", CELLS_BY_PLAN.items())
def test_plans_are_valid(joulemap, plan, cells):
    outcome = joulemap("experiment", "plan", EXPERIMENTS_FOLDER / plan, "--top", "1")
    assert outcome.code == 0, outcome.err
    assert f": {cells} cells, {10 if 'cpu' in plan else 5} repetitions" in outcome.out


def write_csv(file: Path, rows: list[dict]) -> None:
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def cell_rows(factors: dict, **means: float) -> list[dict]:
    """Lines of `experiment analyze --csv-cells`."""
    return [
        factors | {"metric": metric, "n": 10, "mean": mean, "low": mean, "high": mean} for metric, mean in means.items()
    ]


def make_tables(experiment: str, folder: Path, cells: list[dict], epochs: list[dict] | None = None) -> str:
    """README.md with the tables of such results."""
    copy = folder / experiment
    (copy / "results").mkdir(parents=True)
    for name in ("README.md", "make_tables.py"):
        shutil.copy(EXPERIMENTS_FOLDER / experiment / name, copy)
    shutil.copy(EXPERIMENTS_FOLDER / "result_tables.py", copy.parent)
    write_csv(copy / "results" / "cpu-cells.csv", cells)
    write_csv(copy / "results" / "cpu-effects.csv", [{"verdict": "a verdict"}])
    if epochs:
        write_csv(copy / "results" / "cpu-epochs.csv", epochs)
    for _ in range(2):  # writing the tables again changes nothing
        subprocess.run([sys.executable, copy / "make_tables.py"], check=True)
    page = (copy / "README.md").read_text()
    assert page.count("- a verdict\n") == 1 and page.count("<!-- / -->") == 2
    return page


def test_table_of_hyperparameters_marks_cells_that_miss_the_target(tmp_path):
    cells = []
    for batch, target_reached_share in ((32, 1), (128, 0.5), (512, 0)):
        factors = {"optimizer": "sgd", "rate": 0.1, "batch": batch}
        cells += cell_rows(factors, training_j=12.34, reached=target_reached_share, accuracy=0.8, epochs=1.5)
    page = make_tables("hyperparameters", tmp_path, cells)
    cells_text = "12.3 J, 1.5 epochs | 12.3 J, 1.5 epochs (50 % of the trainings) | not reached: 80.0 % after 12.3 J"
    assert f"| sgd | 0.1 | {cells_text} |\n" in page


def test_table_of_levels_compares_the_first_epoch(tmp_path):
    cells = cell_rows({"depth": 50, "batch": 8}, energy_j=99, training_j=20)
    epochs = [{"depth": 50, "batch": 8, "epoch": i, "energy_j": j} for i, j in enumerate([12, 7, 9, 100], 1)]
    page = make_tables("levels", tmp_path, cells, epochs)
    assert "| 50 | 8 | 20 J | 20 to 20 J | 1.50 |\n" in page, "the fourth entry follows the training"


def test_table_of_precision_shows_ratios_to_fp32(tmp_path):
    cells = []
    for precision, energy_j in (("fp32", 2.0), ("bf16", 1.0)):
        factors = {"network": "resnet", "precision": precision, "execution": "eager"}
        preparation = {"prepare_training_s": 1, "prepare_inference_s": 0.5}
        cells += cell_rows(factors, training_j=energy_j, inference_j=energy_j / 4, score_error=0.01, **preparation)
    page = make_tables("precision", tmp_path, cells)
    assert "| resnet | bf16 | eager | 1 J (0.50 x) | 0.25 J (0.50 x) | 1.5 s | 1.0e-02 |\n" in page
