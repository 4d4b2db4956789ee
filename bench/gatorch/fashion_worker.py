# SPDX-License-Identifier: Apache-2.0
"""GATorch's Fashion-MNIST example under one tool: `nothing`, `gatorch` or `joulemap`. side_by_side.py runs one process
for each. Prints JSON: seconds per step, and the tool's values for each layer and pass.

The network and the loop are those of GATorch's example (examples/fashion_mnist): 784-512-512-10 with ReLU after every
layer, batches of 64 in the order of the data, SGD.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import struct
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 64
WARM_UP_STEPS = 20


class NeuralNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10), nn.ReLU()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear_relu_stack(self.flatten(x))


def read_idx_file(file: Path) -> torch.Tensor:
    data = gzip.decompress(file.read_bytes())
    sizes = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return torch.frombuffer(bytearray(data[4 + 4 * data[3] :]), dtype=torch.uint8).reshape(sizes)


class Training:
    def __init__(self, folder: Path, steps: int) -> None:
        torch.manual_seed(0)
        images = (
            read_idx_file(folder / "train-images-idx3-ubyte.gz")[: (steps + WARM_UP_STEPS) * BATCH_SIZE].float() / 255
        )
        labels = read_idx_file(folder / "train-labels-idx1-ubyte.gz")[: (steps + WARM_UP_STEPS) * BATCH_SIZE].long()
        self.model, self.compute_loss = NeuralNetwork(), nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.loader = DataLoader(TensorDataset(images, labels), batch_size=BATCH_SIZE)
        self._batches = iter(self.loader)
        self.run(WARM_UP_STEPS)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            images, labels = next(self._batches)
            self.optimizer.zero_grad()
            self.compute_loss(self.model(images), labels).backward()
            self.optimizer.step()

    def weights(self) -> float:
        return sum(parameter.double().sum().item() for parameter in self.model.parameters())


def time_steps(training: Training, steps: int) -> dict:
    begin_ns, begin_cpu_s = time.monotonic_ns(), time.process_time()
    training.run(steps)
    end_ns, end_cpu_s = time.monotonic_ns(), time.process_time()
    step_s, cpu_s = (end_ns - begin_ns) / 1e9 / steps, (end_cpu_s - begin_cpu_s) / steps
    return {"begin_ns": begin_ns, "end_ns": end_ns, "step_s": step_s, "cpu_s": cpu_s}


def measure_without_tool(training: Training, steps: int, file: str) -> dict:
    return time_steps(training, steps)


def measure_with_gatorch(training: Training, steps: int, file: str) -> dict:
    from GATorch import GA

    ga, captured_output = GA(), io.StringIO()
    with contextlib.redirect_stdout(captured_output):  # GATorch prints missing devices for each layer
        ga.attach_model(training.model, loss=training.compute_loss)
    timing = time_steps(training, steps)
    full_measurements = ga.get_full_measurements()
    rows = {
        f"{name} {pass_name}": sum(values)
        for name, values_by_pass in full_measurements.items()
        for pass_name, values in values_by_pass.items()
        if values
    }
    zeros = {f"{name} {pass_name}": sum(value == 0 for value in values) / len(values)
             for name, values_by_pass in full_measurements.items()
             for pass_name, values in values_by_pass.items() if values}  # fmt: skip
    return {**timing, "rows": rows, "zeros": zeros}


def measure_with_joulemap(training: Training, steps: int, file: str) -> dict:
    import joulemap as jm

    with jm.attach(training.model, loss=training.compute_loss, optimizer=training.optimizer, file=file) as run:
        timing = time_steps(training, steps)
    ledger = run.ledger(by="layer")
    rows = {" ".join(row.path): [row.energy_j, row.low_j, row.high_j, row.basis] for row in ledger.rows}
    unattributed = {"idle": ledger.idle_j, "not attributed": ledger.unattributed_j}
    return {**timing, "rows": rows, "unattributed": unattributed, "steps": len(run.steps()), "joules": ledger.joules}


MEASUREMENT_TOOLS = {
    "nothing": measure_without_tool,
    "gatorch": measure_with_gatorch,
    "joulemap": measure_with_joulemap,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=MEASUREMENT_TOOLS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)  # excludes threads that wait for each other from the comparison
    training = Training(options.data, options.steps)
    try:
        timing = MEASUREMENT_TOOLS[options.tool](training, options.steps, f"{options.out}.joule")
        timing["weights"] = training.weights()
    except RuntimeError as error:
        timing = {"error": str(error)}
    options.out.write_text(json.dumps(timing))


if __name__ == "__main__":
    main()
