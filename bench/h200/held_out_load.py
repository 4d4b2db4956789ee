#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two trainings, part of whose power is predicted from the rest. held_out.py starts this under `joulemap record`.

steady: ResNet-50 with identical steps. varied: the same network in turns of 0.4 to 2 s: training, evaluation,
training on smaller images, and training with a loader that keeps the device waiting after every step.
"""

from __future__ import annotations

import random
import sys
import time

import torch
from study_load import Device, LoadLog, remaining_s, make_load_parser, print_progress
from torch import nn

STEADY_TIME_SHARE = 0.45
MIN_TURN_S, MAX_TURN_S = 0.4, 2.0
LOADER_DELAY_S = 0.012


def network(device: str, is_tiny_model: bool) -> tuple[nn.Module, torch.Tensor]:
    if is_tiny_model:
        layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1000)]
        return nn.Sequential(*layers).to(device), torch.randn(8, 3, 64, 64, device=device)
    import torchvision

    return torchvision.models.resnet50().to(device), torch.randn(64, 3, 224, 224, device=device)


class TrainingTurns:
    def __init__(self, device: str, is_tiny_model: bool) -> None:
        self.model, self.images = network(device, is_tiny_model)
        self.labels = torch.randint(0, 1000, (len(self.images),), device=device)
        self.small = nn.functional.interpolate(self.images, scale_factor=0.5).contiguous()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9)

    def train(self, images: torch.Tensor | None = None) -> None:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(self.model(self.images if images is None else images), self.labels).backward()
        self.optimizer.step()

    def evaluate(self) -> None:
        self.model.eval()
        with torch.no_grad():
            self.model(self.images)

    def train_after_loading(self) -> None:
        """Runs one step at a time with a pause, as with a slow data loader."""
        self.train()
        if self.images.is_cuda:
            torch.cuda.synchronize()
        time.sleep(LOADER_DELAY_S)

    def kinds(self) -> dict:
        small_image_step = lambda: self.train(self.small)  # noqa: E731
        return {
            "train": self.train,
            "evaluate": self.evaluate,
            "train small": small_image_step,
            "loader": self.train_after_loading,
        }


def main() -> int:
    parser = make_load_parser(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(0)
    device, chance = Device(torch, options.device), random.Random(options.seed)
    training_turns = TrainingTurns(options.device, options.tiny)
    load_log = LoadLog(
        options.out, options.device, network="tiny" if options.tiny else "ResNet-50, batch 64", seed=options.seed
    )
    for call in training_turns.kinds().values():
        device.run(call, 0.3)
    print_progress("warm")
    span = device.run(training_turns.train, STEADY_TIME_SHARE * remaining_s(options))
    load_log.add(load="steady", turn="train", **span)
    while remaining_s(options) > MIN_TURN_S:
        for kind in chance.sample(sorted(training_turns.kinds()), 4):
            seconds = min(chance.uniform(MIN_TURN_S, MAX_TURN_S), remaining_s(options))
            if seconds > 0:
                load_log.add(load="varied", turn=kind, **device.run(training_turns.kinds()[kind], seconds))
    print_progress(f"{len(load_log.document['entries'])} turns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
