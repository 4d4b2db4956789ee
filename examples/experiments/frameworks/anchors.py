# SPDX-License-Identifier: Apache-2.0
"""Anchors of the detectors and the targets of their training, in NumPy, before the measurement.

Boxes are (top, left, bottom, right) in pixels.
"""

from __future__ import annotations

import numpy as np

ENCODING_SCALES = np.array([0.1, 0.1, 0.2, 0.2], dtype=np.float32)  # of offsets and of log sizes
SSD_STRIDES = (8, 16, 32, 64)
PYRAMID_STRIDES = (4, 8, 16, 32)
ASPECT_RATIOS = (1.0, 2.0, 0.5)
SSD_ANCHORS_PER_CELL = len(ASPECT_RATIOS) + 1  # and a larger square
PYRAMID_ANCHORS_PER_CELL = len(ASPECT_RATIOS)
IGNORED = -1


def make_level_anchors(image_pixels: int, stride: int, sizes_and_ratios: list[tuple[float, float]]) -> np.ndarray:
    """Anchors of one feature map, cell by cell: (cells x shapes, 4)."""
    centers = (np.arange(image_pixels // stride) + 0.5) * stride
    y, x = np.meshgrid(centers, centers, indexing="ij")
    center = np.stack([y, x], axis=-1).reshape(-1, 1, 2)
    shapes = np.array([(size * ratio**-0.5, size * ratio**0.5) for size, ratio in sizes_and_ratios])
    return np.concatenate([center - shapes / 2, center + shapes / 2], axis=-1).reshape(-1, 4)


def make_ssd_anchors(image_pixels: int) -> np.ndarray:
    levels = []
    for stride in SSD_STRIDES:
        shapes = [(2.0 * stride, ratio) for ratio in ASPECT_RATIOS] + [(2.8 * stride, 1.0)]
        levels.append(make_level_anchors(image_pixels, stride, shapes))
    return np.concatenate(levels).astype(np.float32)


def make_pyramid_anchors(image_pixels: int) -> np.ndarray:
    levels = [
        make_level_anchors(image_pixels, stride, [(4.0 * stride, ratio) for ratio in ASPECT_RATIOS])
        for stride in PYRAMID_STRIDES
    ]
    return np.concatenate(levels).astype(np.float32)


def compute_iou(first_boxes: np.ndarray, second_boxes: np.ndarray) -> np.ndarray:
    """Intersection over union of each pair: (first, second)."""
    top_left = np.maximum(first_boxes[:, None, :2], second_boxes[None, :, :2])
    bottom_right = np.minimum(first_boxes[:, None, 2:], second_boxes[None, :, 2:])
    intersection = np.prod(np.maximum(bottom_right - top_left, 0), axis=-1)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1) for boxes in (first_boxes, second_boxes)]
    return intersection / (areas[0][:, None] + areas[1][None, :] - intersection)


def encode_boxes(boxes: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Offsets of the centers and logarithms of the sizes, relative to the anchors."""
    sizes, anchor_sizes = boxes[:, 2:] - boxes[:, :2], anchors[:, 2:] - anchors[:, :2]
    offsets = (boxes[:, :2] + boxes[:, 2:] - anchors[:, :2] - anchors[:, 2:]) / 2 / anchor_sizes
    return (np.concatenate([offsets, np.log(sizes / anchor_sizes)], axis=1) / ENCODING_SCALES).astype(np.float32)


def match_anchors(
    anchors: np.ndarray, boxes: np.ndarray, labels: np.ndarray, negative_below: float
) -> tuple[np.ndarray, np.ndarray]:
    """Class of each anchor (0 is background, IGNORED between the thresholds) and its encoded box."""
    iou = compute_iou(anchors, boxes)
    matched_box_indices = iou.argmax(axis=1)
    matched_box_indices[iou.argmax(axis=0)] = np.arange(len(boxes))  # each object has at least one anchor
    best_iou = iou.max(axis=1)
    best_iou[iou.argmax(axis=0)] = 1
    classes = np.where(best_iou >= 0.5, labels[matched_box_indices], np.where(best_iou < negative_below, 0, IGNORED))
    return classes.astype(np.int32), encode_boxes(boxes[matched_box_indices], anchors)
