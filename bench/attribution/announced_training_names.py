# SPDX-License-Identifier: Apache-2.0
"""The operations that announced_training.py announces, and the report rows that belong to them. Needs no PyTorch."""

from typing import List

LAYER_NAMES = ["conv1", "norm1", "act1", "pool1", "conv2", "norm2", "act2", "pool2", "fc1", "act3", "fc2"]
NEIGHBOUR_OPERATION = "neighbour"
OPERATION_NAMES = [
    "outside",
    "dataloader",
    "optimizer",
    *(
        f"{pass_name}.{layer}"
        for pass_name in ("forward", "backward", "evaluation")
        for layer in [*LAYER_NAMES, "loss"]
    ),
    NEIGHBOUR_OPERATION,
]


def find_row_operation(path: List[str]) -> str:
    """Returns the operation that a row of `report --by op` belongs to."""
    if path == ["background"]:
        return "background"
    if "optimizer" in path:
        return "optimizer"
    if "dataloader" in path:
        return "dataloader"
    pass_name = "evaluation" if path[0] == "inference" else "backward" if "backward" in path else "forward"
    layers = [element for element in path if element in LAYER_NAMES]
    if layers:
        return f"{pass_name}.{layers[0]}"
    return f"{pass_name}.loss" if any("loss" in element.lower() for element in path) else "outside"
