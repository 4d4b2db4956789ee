# SPDX-License-Identifier: Apache-2.0
"""A real training on the CPU that announces its current operation to the simulated machine, which gives each its own
power.

    announced_training.py PAGE KINDS SECONDS

Layers are single operations. Between two layers, a function announces the next operation: the next layer in the forward
pass, the previous layer in the backward pass. PAGE and KINDS are the files of tests/simulated_machine/operations.h.
"""

import sys
import time
from typing import Any, List, Tuple

from announced_training_names import LAYER_NAMES
from announcer import Announcer

# Announces before importing PyTorch, because the import takes seconds of CPU time, which belong to this program, too.
ANNOUNCER = Announcer(sys.argv[1], sys.argv[2], slot=0)

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402


class OperationMarker(torch.autograd.Function):
    """An identity function between two layers that announces the next operation, in the forward and backward pass."""

    announcer: Announcer

    @staticmethod
    def forward(context: Any, x: Tensor, forward: str, backward: str) -> Tensor:
        """Announces the next layer."""
        context.backward_operation = backward
        OperationMarker.announcer.at(forward)
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tuple[Tensor, None, None]:
        """Announces the backward pass of the previous layer."""
        OperationMarker.announcer.at(context.backward_operation)
        return gradient, None, None


class Net(nn.Module):
    """A small convolutional network whose layers differ in their CPU usage."""

    def __init__(self) -> None:
        """Creates all layers, each one operation."""
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(32)
        self.act1 = nn.GELU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(32, 48, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(48)
        self.act2 = nn.Softplus()
        self.pool2 = nn.MaxPool2d(4)
        self.fc1 = nn.Linear(48 * 64, 1024)
        self.act3 = nn.Tanh()
        self.fc2 = nn.Linear(1024, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Runs all layers with announcements between them."""
        pass_name = "forward" if torch.is_grad_enabled() else "evaluation"
        backward_operation = "backward.conv1"
        for name in LAYER_NAMES:
            x = OperationMarker.apply(x, f"{pass_name}.{name}", backward_operation)
            if name == "fc1":
                x = x.flatten(1)
            x = getattr(self, name)(x)
            backward_operation = f"backward.{name}"
        return OperationMarker.apply(x, f"{pass_name}.loss", backward_operation)


class PictureDataset(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Pictures that are generated, cropped and flipped in Python, as in a real training."""

    def __len__(self) -> int:
        """More than any run uses."""
        return 1 << 30

    def __getitem__(self, index: int) -> Tuple[Tensor, int]:
        """Returns the same picture for the same index."""
        picture = torch.linspace(-1, 1, 3 * 72 * 72).mul(index % 97).sin().view(3, 72, 72)
        noise = sum((i * i) % 7 for i in range(600)) / 1800
        return picture[:, index % 8 : index % 8 + 64, index % 5 : index % 5 + 64] + noise, index % 10


def train(seconds: float, announcer: Announcer) -> None:
    """Trains for that many seconds, with an evaluation from time to time."""
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    criterion = nn.CrossEntropyLoss()
    loader = iter(torch.utils.data.DataLoader(PictureDataset(), batch_size=16))
    end = time.monotonic() + seconds
    losses: List[float] = []
    while time.monotonic() < end:
        announcer.at("dataloader")
        pictures, labels = next(loader)
        announcer.at("outside")
        optimizer.zero_grad()
        loss = criterion(net(pictures), labels)
        loss.backward()
        announcer.at("optimizer")
        optimizer.step()
        announcer.at("outside")
        losses.append(loss.item())
        if len(losses) % 25 == 0:
            net.eval()
            with torch.no_grad():
                for _ in range(4):
                    net(pictures)
            announcer.at("outside")
            net.train()
    print(f"{len(losses)} steps, loss {losses[-1]:.3f}", file=sys.stderr)


if __name__ == "__main__":
    torch.set_num_threads(2)
    OperationMarker.announcer = ANNOUNCER
    train(float(sys.argv[3]), ANNOUNCER)
