#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One function for each public Python entry point, on a small training. entry_points.py runs them.

    entry_points_load.py NAME [--device cpu]

Functions that measure the training loop print a line of JSON with the energy of a step.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

LOAD_S = 5.0


class Training:
    """A residual network on random images: about 15 ms a step on an H200."""

    def __init__(self, device: str) -> None:
        import torch

        torch.manual_seed(0)
        self.torch, self.device, self.gpu = torch, device, device == "cuda"
        nn = torch.nn
        self.model = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(2048, 10),
        ).to(device)  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        batch, size = (256, 64) if self.gpu else (8, 16)
        self.images = torch.randn(batch, 3, size, size, device=device)
        self.labels = torch.randint(0, 10, (batch,), device=device)

    def compute_loss(self):
        return self.torch.nn.functional.cross_entropy(self.model(self.images), self.labels)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.compute_loss().backward()
        self.optimizer.step()

    def synchronize(self) -> None:
        if self.gpu:
            self.torch.cuda.synchronize()

    def warm_up(self) -> None:
        end_s = time.monotonic() + 1.5
        while time.monotonic() < end_s:
            self.step()
        self.synchronize()

    def run(self, seconds: float = LOAD_S, each_step=lambda: None) -> int:
        """Trains for some time and returns the number of steps."""
        count, end_s = 0, time.monotonic() + seconds
        while time.monotonic() < end_s:
            each_step()
            self.step()
            count += 1
        self.synchronize()
        return count

    def evaluate(self) -> float:
        with self.torch.no_grad():
            return sum(self.compute_loss().item() for _ in range(60 if self.gpu else 3)) / 60


def print_step_energy(energy_j: float | None, steps: int) -> None:
    if energy_j is None:
        raise SystemExit("the energy is unknown")
    print(json.dumps({"joules_per_step": energy_j / steps}))


def train(options) -> None:
    """Regions, steps, epochs and metrics, as `joulemap record` records them."""
    import joulemap as jm

    training = Training(options.device)
    training.warm_up()
    if options.ready:
        print("ready", flush=True)
    for epoch in range(2):
        jm.epoch(epoch)
        training.run(options.seconds / 2, jm.step)
        with jm.region("evaluation"):
            jm.log(loss=training.evaluate(), samples=len(training.images))


def measure(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    training.warm_up()
    with jm.measure("loop") as window:
        steps = training.run()
    print(window)
    print_step_energy(window.joules, steps)
    short = [jm.measure(lambda: training.run(0.05)) for _ in range(3)]
    for function in short:
        function()
        print(function.last)


def begin(options) -> None:
    import joulemap as jm

    jm.start(period_s=0.02)
    training = Training(options.device)
    training.warm_up()
    window = jm.begin("loop")
    steps = training.run()
    jm.end(window)
    print(window.wait())
    print_step_energy(window.joules, steps)
    jm.stop()


def attach(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    training.warm_up()
    with jm.attach(training.model, optimizer=training.optimizer, file=str(options.folder / "attached.joule")) as run:
        with jm.measure("loop") as window:
            steps = training.run()
    print(run.report(by="layer"))
    print(run.ledger(by="phase").to_pandas())
    for row in run.ledger(by="layer").nested().rows[:3]:
        print(row.path, row.energy_j, row.low_j, row.high_j, row.waiting_j)
    run.to_csv(options.folder / "attached.csv")
    run.plot(options.folder / "attached.svg", kind="bars")
    print(run.layer_steps().columns.keys())
    print_step_energy(window.joules, steps)


def attach_probe(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    with jm.attach(training.model, probe=True, trace="full", file=str(options.folder / "probed.joule")) as run:
        training.run(3.0)
    print(run.report(by="layer"))


def doctor(options) -> None:
    import joulemap as jm

    print(json.dumps(jm.doctor(), indent=1))


def predict(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    for execution in ("eager", "compiled"):
        prediction = jm.predict(training.model, [training.images], training=True, execution=execution)
        print(prediction)
    document = jm.list_operations(training.model, [training.images], training=True, optimizer="adamw")
    (options.folder / "operations.json").write_text(json.dumps(document))


def predict_total(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    forecast = jm.predict_total(steps=600 if training.gpu else 60)
    for number in range(600 if training.gpu else 60):
        forecast.step()
        training.step()
        if number in (60, 200, 400):
            training.synchronize()
            print(forecast.total(wait=True))
    training.synchronize()
    print(forecast.end())


def early_stop(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    early_stopper = jm.EarlyStop(joules_per_loss=2000)
    for epoch in range(30):
        training.run(0.4)
        if early_stopper.update(training.evaluate()):
            break
    print(epoch, early_stopper.reason, early_stopper.energy)


def layer_value(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    training.warm_up()
    values = jm.layer_value(training.model, lambda model: training.evaluate(), rounds=2)
    print(values)
    values.save(str(options.folder / "layers.html"))


def tune(options) -> None:
    import joulemap as jm

    def train_once(config, trial):
        training = Training(options.device)
        training.optimizer = training.torch.optim.AdamW(training.model.parameters(), lr=config["rate"])
        for epoch in range(6):
            training.run(0.3)
            if trial.report(epoch, loss=training.evaluate()):
                break

    print(jm.tune(train_once, {"rate": jm.log_uniform(1e-5, 1e-2)}, at_most={"loss": 2.0}, max_trials=4))


def validate(options) -> None:
    import joulemap as jm

    training = Training(options.device)
    validation_result = jm.validate(training.model, training.images, train=True, seconds=0.4, rounds=2, recorded_s=5,
                        blocks={"first": ["0", "2"], "second": ["5"]})  # fmt: skip
    print(validation_result)


def callback_lightning(options) -> None:
    import pytorch_lightning
    import torch

    import joulemap as jm
    from joulemap.lightning import EnergyCallback

    training = Training(options.device)

    class Classifier(pytorch_lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = training.model

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    data = torch.utils.data.TensorDataset(training.images.cpu(), training.labels.cpu())
    loader = torch.utils.data.DataLoader(data, batch_size=64)
    trainer = pytorch_lightning.Trainer(
        max_epochs=40 if training.gpu else 2, accelerator="gpu" if training.gpu else "cpu", devices=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, callbacks=[EnergyCallback()])  # fmt: skip
    trainer.fit(Classifier(), loader)
    print(trainer.callback_metrics, jm.is_recording())


FUNCTIONS = {function.__name__: function for function in (
    train, measure, begin, attach, attach_probe, doctor, predict, predict_total, early_stop, layer_value, tune, validate,
    callback_lightning)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=FUNCTIONS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--seconds", type=float, default=LOAD_S)
    parser.add_argument("--ready", action="store_true")
    options = parser.parse_args()
    FUNCTIONS[options.name](options)


if __name__ == "__main__":
    sys.exit(main())
