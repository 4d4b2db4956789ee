# SPDX-License-Identifier: Apache-2.0
"""Boxes (top, left, bottom, right) on the device; shapes are (..., boxes, 4)."""

from __future__ import annotations

import torch

from anchors import ENCODING_SCALES

MAX_LOG_SIZE = 4.0


def decode_boxes(encoded: torch.Tensor, anchors: torch.Tensor, image_pixels: int) -> torch.Tensor:
    """The inverse of `anchors.encode_boxes`, clipped to the image."""
    encoded = encoded * torch.as_tensor(ENCODING_SCALES, device=encoded.device)
    sizes = anchors[..., 2:] - anchors[..., :2]
    centers = (anchors[..., :2] + anchors[..., 2:]) / 2 + encoded[..., :2] * sizes
    half_sizes = sizes * encoded[..., 2:].clamp(max=MAX_LOG_SIZE).exp() / 2
    return torch.cat([centers - half_sizes, centers + half_sizes], dim=-1).clamp(0, image_pixels)


def encode_boxes(boxes: torch.Tensor, anchors: torch.Tensor) -> torch.Tensor:
    sizes, anchor_sizes = boxes[..., 2:] - boxes[..., :2], (anchors[..., 2:] - anchors[..., :2]).clamp(min=1)
    offsets = (boxes[..., :2] + boxes[..., 2:] - anchors[..., :2] - anchors[..., 2:]) / 2 / anchor_sizes
    encoded = torch.cat([offsets, (sizes / anchor_sizes).log()], dim=-1)
    return encoded / torch.as_tensor(ENCODING_SCALES, device=boxes.device)


def compute_iou(first_boxes: torch.Tensor, second_boxes: torch.Tensor) -> torch.Tensor:
    """Intersection over union of each pair: (..., first, second)."""
    top_left = torch.maximum(first_boxes[..., :, None, :2], second_boxes[..., None, :, :2])
    bottom_right = torch.minimum(first_boxes[..., :, None, 2:], second_boxes[..., None, :, 2:])
    intersection = (bottom_right - top_left).clamp(min=0).prod(dim=-1)
    first_area = (first_boxes[..., 2:] - first_boxes[..., :2]).prod(dim=-1)
    second_area = (second_boxes[..., 2:] - second_boxes[..., :2]).prod(dim=-1)
    union = first_area[..., :, None] + second_area[..., None, :] - intersection
    return intersection / union.clamp(min=1e-6)


def take_rows(values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Rows of each image: values (batch, rows, ...), indices (batch, count)."""
    shape = indices.shape + values.shape[2:]
    return values.gather(1, indices.reshape(indices.shape + (1,) * (values.dim() - 2)).expand(shape))


def suppress_overlaps(boxes: torch.Tensor, scores: torch.Tensor, max_iou: float) -> torch.Tensor:
    """Scores, 0 where a box with a higher score overlaps by more than `max_iou`. Expects descending scores."""
    overlaps = compute_iou(boxes, boxes).triu(diagonal=1)
    return torch.where(overlaps.amax(dim=-2) > max_iou, torch.zeros_like(scores), scores)


def smooth_l1(difference: torch.Tensor) -> torch.Tensor:
    """Mean over the four numbers of a box."""
    size = difference.abs()
    return torch.where(size < 1, 0.5 * size * size, size - 0.5).mean(dim=-1)
