# SPDX-License-Identifier: Apache-2.0
"""Measures the energy of parts of a program: nested windows, a decorator, a peek.

    PYTHONPATH=build/python python3 examples/measure_windows.py
"""

import math

import joulemap as jm


def work(rounds: int) -> float:
    return math.fsum(math.sqrt(i) for i in range(rounds))


@jm.measure("evaluation")
def evaluate() -> float:
    return work(300_000)


def main() -> None:
    with jm.measure("training") as training:
        for number in range(3):
            jm.epoch(number)
            with jm.measure(f"epoch {number}") as epoch:
                work(1_000_000)
            print(epoch)  # waits some milliseconds for the sensors, outside of its own window
            print("  so far:", training.peek())
    print(training)

    evaluate()
    print(evaluate.last)

    for domain in training.domains:
        energy_text = (
            "unknown" if domain.joules is None else f"{domain.joules:.3f} J, {domain.provenance} by {domain.sensor}"
        )
        print(f"  {domain.name}: {energy_text} {domain.reason}")
    for diagnostic in training.diagnostics:
        print(f"  {diagnostic.code}: {diagnostic.message}")


if __name__ == "__main__":
    main()
