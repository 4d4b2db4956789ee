"""Work in DataLoader workers is attributed to them by operation, with every kind of loader, under `joulemap record`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

# Each item appends its duration to a file of its process: the lower bound for the time of the rows.
PROGRAM = """
import os, time
import torch, torch.nn as nn

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        began = time.perf_counter()
        total = sum(i * i for i in range(300_000))
        image = torch.randn(64, 64)
        for _ in range(20):
            image = torch.tanh(image)
        with open(os.path.join(os.environ["TRUTH"], str(os.getpid())), "a") as file:
            print(time.perf_counter() - began, file=file)
        return image.flatten() * (total % 2)

if __name__ == "__main__":
    net = nn.Linear(64 * 64, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Images(), batch_size=2, **OPTIONS)
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            net(batch).sum().backward()
            optimizer.step()
    del loader  # persistent workers end now; at the program's end they are killed, which costs their last second
"""
KINDS = {
    "in the program": "",
    "forked": 'num_workers=1, multiprocessing_context="fork"',
    "two forked": 'num_workers=2, multiprocessing_context="fork"',
    "spawned": 'num_workers=1, multiprocessing_context="spawn"',
    "two of a fork server": 'num_workers=2, multiprocessing_context="forkserver"',
    "persistent": 'num_workers=1, multiprocessing_context="fork", persistent_workers=True',
}
WORKER_PATH = ("train", "dataloader", "worker.preprocessing")


class Recorded:
    def __init__(self, joulemap, folder: Path, options: str) -> None:
        truth = folder / "truth"
        truth.mkdir()
        program = folder / "program.py"
        program.write_text(PROGRAM.replace("**OPTIONS", options))
        file = folder / "run.joule"
        command = ("--", "env", f"TRUTH={truth}", "OMP_NUM_THREADS=1", sys.executable, program)
        outcome = joulemap("record", "--sensors", "estimate", "-o", file, *command)
        assert outcome.code == 0, outcome.err
        self.truth_s = sum(float(line) for part in truth.iterdir() for line in part.read_text().split())
        report = joulemap("report", "--json", "--by", "op", file).json
        self.rows = {tuple(row["path"]): row for row in report["rows"] if row["device"] == "cpu"}

    def times(self, *path: str) -> dict[str, float]:
        """Time in seconds of each operation at a scope."""
        return {key[-1]: row["time_s"] for key, row in self.rows.items() if key[:-1] == path}

    def time_s(self, *path: str) -> float:
        """Time at a scope, with and without an operation: on a busy machine fewer steps record their operations."""
        return sum(row["time_s"] for key, row in self.rows.items() if key[: len(path)] == path)


@pytest.fixture
def recorded(joulemap, tmp_path):
    return lambda options: Recorded(joulemap, tmp_path, options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_costly_item_is_work_of_its_dataset_and_not_of_an_operation_of_the_loader(recorded, kind):
    run = recorded(KINDS[kind])
    place = ("train", "dataloader") if kind == "in the program" else WORKER_PATH
    operations = run.times(*place)
    assert operations["__main__.Images.__getitem__"] > 0.1 * run.truth_s
    assert {"torch.randn", "torch.tanh", "torch.stack"} <= set(operations)
    assert run.time_s(*place) > 0.9 * run.truth_s
    for path, row in run.rows.items():  # the loader draws a seed once per epoch
        assert path[-1] != "torch.empty" or row["time_s"] < 0.3 * run.truth_s, path
    if kind != "in the program":
        assert ("train", "dataloader") in run.rows  # the program waits for its workers
        assert ("train", "dataloader", "worker") in run.rows  # a worker waits in its loop
        assert WORKER_PATH not in run.rows  # operations and the dataset account for the whole batch
