# SPDX-License-Identifier: Apache-2.0
"""Quality of the inference of each network, in NumPy: a share between 0 and 1, more is better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anchors import compute_iou

Batch = dict[str, np.ndarray]


def compute_accuracy(batch: Batch, output: Batch) -> float:
    return float((output["labels"] == batch["labels"]).mean())


def compute_token_accuracy(batch: Batch, output: Batch) -> float:
    return float((output["tokens"] == batch["targets"]).mean())


def compute_liked_share(batch: Batch, output: Batch) -> float:
    """Share of liked items among the ten that the network ranks first."""
    return float(np.take_along_axis(batch["ranked_liked"], output["best"].astype(int), axis=1).mean())


def choose_best_detections(scores: np.ndarray, count: int) -> np.ndarray:
    return np.argsort(-scores, kind="stable")[:count]


def count_matches(iou: np.ndarray, has_same_label: np.ndarray) -> int:
    """Detections (rows) with an object of the same class at an IoU of 0.5 or more; each object matches once."""
    matches = np.where(has_same_label, iou, 0)
    count = 0
    for row in range(len(matches)):
        best_object_index = matches[row].argmax()
        if matches[row, best_object_index] >= 0.5:
            matches[:, best_object_index] = 0
            count += 1
    return count


def compute_box_precision(batch: Batch, output: Batch) -> float:
    """Precision of as many detections as an image has objects."""
    images, objects = batch["labels"].shape
    matches = 0
    for image in range(images):
        detection_indices = choose_best_detections(output["scores"][image], objects)
        has_same_label = output["labels"][image, detection_indices][:, None] == batch["labels"][image][None, :]
        matches += count_matches(
            compute_iou(output["boxes"][image, detection_indices], batch["boxes"][image]), has_same_label
        )
    return matches / (images * objects)


def paste_mask(mask: np.ndarray, box: np.ndarray, pixels: int) -> np.ndarray:
    """The mask of a box as a mask of the image."""
    top, left_edge, bottom_edge, right_edge = box
    centers = np.arange(pixels) + 0.5
    row = np.floor((centers - top) / max(bottom_edge - top, 1e-6) * len(mask)).astype(int)
    column = np.floor((centers - left_edge) / max(right_edge - left_edge, 1e-6) * len(mask)).astype(int)
    is_row_inside, is_column_inside = (row >= 0) & (row < len(mask)), (column >= 0) & (column < len(mask))
    pasted = mask[row.clip(0, len(mask) - 1)][:, column.clip(0, len(mask) - 1)]
    return pasted & is_row_inside[:, None] & is_column_inside[None, :]


def compute_mask_iou(first_masks: np.ndarray, second_masks: np.ndarray) -> np.ndarray:
    flat = [masks.reshape(len(masks), -1).astype(np.float32) for masks in (first_masks, second_masks)]
    intersection = flat[0] @ flat[1].T
    return intersection / np.maximum(flat[0].sum(axis=1)[:, None] + flat[1].sum(axis=1)[None, :] - intersection, 1)


def compute_mask_precision(batch: Batch, output: Batch) -> float:
    """Precision of the masks of as many detections as an image has objects."""
    images, objects = batch["labels"].shape
    pixels = batch["masks"].shape[-1]
    matches = 0
    for image in range(images):
        detection_indices = choose_best_detections(output["scores"][image], objects)
        masks = [paste_mask(output["masks"][image, i], output["boxes"][image, i], pixels) for i in detection_indices]
        has_same_label = output["labels"][image, detection_indices][:, None] == batch["labels"][image][None, :]
        matches += count_matches(compute_mask_iou(np.stack(masks), batch["masks"][image]), has_same_label)
    return matches / (images * objects)


QUALITY_MEASURES: dict[str, tuple[str, Callable[[Batch, Batch], float]]] = {
    "resnet50": ("accuracy", compute_accuracy),
    "ssd": ("precision of boxes", compute_box_precision),
    "mask_rcnn": ("precision of masks", compute_mask_precision),
    "ncf": ("liked items among the first ten", compute_liked_share),
    "lstm_translator": ("accuracy of tokens, greedy decoding", compute_token_accuracy),
    "transformer_xl": ("accuracy of next tokens", compute_token_accuracy),
}


def compute_quality(network: str, batches: list[Batch], outputs: list[Batch]) -> float:
    _, measure = QUALITY_MEASURES[network]
    return float(np.mean([measure(batch, output) for batch, output in zip(batches, outputs)]))
