"""Trains a small neural network on drawn digits, with NumPy alone: a real workload that installs in seconds.

joulemap stat -r 3 -- python examples/train_digits.py --epochs 4
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext

import numpy as np

try:
    import joulemap as jm  # its annotations appear in the recording of `joulemap record`
except ImportError:
    jm = None


def part(name: str):
    """Marks a part of the program as a region for `joulemap report --by region`."""
    return jm.region(name) if jm else nullcontext()


# Seven segments: top, top-left, top-right, middle, bottom-left, bottom-right, bottom.
DIGIT_SEGMENTS = {
    0: "1110111", 1: "0010010", 2: "1011101", 3: "1011011", 4: "0111010",
    5: "1101011", 6: "1101111", 7: "1010010", 8: "1111111", 9: "1111011",
}  # fmt: skip
SEGMENT_SLICES = [
    (slice(4, 7), slice(8, 20)), (slice(4, 15), slice(7, 10)), (slice(4, 15), slice(18, 21)),
    (slice(13, 16), slice(8, 20)), (slice(14, 25), slice(7, 10)), (slice(14, 25), slice(18, 21)),
    (slice(22, 25), slice(8, 20)),
]  # fmt: skip


def draw_digits(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Images of 28 x 28 pixels, shifted and noisy, and the digits they show."""
    digits = random.integers(0, 10, count)
    images = np.zeros((count, 28, 28), dtype=np.float32)
    for image, digit in zip(images, digits):
        for lit, place in zip(DIGIT_SEGMENTS[int(digit)], SEGMENT_SLICES):
            if lit == "1":
                image[place] = random.uniform(0.5, 1.0)
        image[:] = np.roll(image, random.integers(-3, 4, 2), axis=(0, 1))
    images += random.normal(0, 0.35, images.shape).astype(np.float32)
    return images.reshape(count, -1), digits


class Network:
    """Two hidden layers with ReLU, softmax, and plain gradient descent with momentum."""

    def __init__(self, sizes: list[int], random: np.random.Generator) -> None:
        self.weights = [
            random.normal(0, np.sqrt(2 / rows), (rows, columns)).astype(np.float32)
            for rows, columns in zip(sizes, sizes[1:])
        ]
        self.velocities = [np.zeros_like(weight) for weight in self.weights]

    def forward(self, inputs: np.ndarray) -> list[np.ndarray]:
        activations = [inputs]
        for weight in self.weights[:-1]:
            activations.append(np.maximum(activations[-1] @ weight, 0))
        logits = activations[-1] @ self.weights[-1]
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        activations.append(exponentials / exponentials.sum(axis=1, keepdims=True))
        return activations

    def step(self, inputs: np.ndarray, digits: np.ndarray, rate: float) -> float:
        with part("forward"):
            activations = self.forward(inputs)
        rows = np.arange(len(digits))
        loss = -np.log(activations[-1][rows, digits] + 1e-9).mean()
        gradient = activations[-1].copy()
        gradient[rows, digits] -= 1
        gradient /= len(digits)
        for layer in reversed(range(len(self.weights))):
            with part(f"backward of layer {layer}"):
                update = activations[layer].T @ gradient
                if layer > 0:
                    gradient = (gradient @ self.weights[layer].T) * (activations[layer] > 0)
            with part("update"):
                self.velocities[layer] = 0.9 * self.velocities[layer] - rate * update
                self.weights[layer] += self.velocities[layer]
        return float(loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--samples", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=128)
    arguments = parser.parse_args()

    random = np.random.default_rng(1)
    with part("drawing the digits"):
        images, digits = draw_digits(arguments.samples, random)
        test_images, test_digits = draw_digits(1024, random)
    network = Network([784, 1024, 512, 10], random)
    for epoch in range(1, arguments.epochs + 1):
        epoch_begin_s = time.perf_counter()
        order = random.permutation(arguments.samples)
        batches = np.split(order, range(arguments.batch, arguments.samples, arguments.batch))
        losses = []
        for batch in batches:
            losses.append(network.step(images[batch], digits[batch], 0.02))
            if jm:
                jm.step()
                jm.log(loss=losses[-1])
        if jm:
            jm.epoch(epoch)
        with part("test"):
            test_accuracy = (network.forward(test_images)[-1].argmax(axis=1) == test_digits).mean()
        seconds = time.perf_counter() - epoch_begin_s
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {test_accuracy:.1%}, {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
