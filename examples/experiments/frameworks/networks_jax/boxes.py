# SPDX-License-Identifier: Apache-2.0
"""Boxes (top, left, bottom, right) on the device; shapes are (..., boxes, 4)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from anchors import ENCODING_SCALES

MAX_LOG_SIZE = 4.0


def decode_boxes(encoded: jax.Array, anchors: jax.Array, image_pixels: int) -> jax.Array:
    """The inverse of `anchors.encode_boxes`, clipped to the image."""
    encoded = encoded * ENCODING_SCALES
    sizes = anchors[..., 2:] - anchors[..., :2]
    centers = (anchors[..., :2] + anchors[..., 2:]) / 2 + encoded[..., :2] * sizes
    half_sizes = sizes * jnp.exp(jnp.minimum(encoded[..., 2:], MAX_LOG_SIZE)) / 2
    return jnp.clip(jnp.concatenate([centers - half_sizes, centers + half_sizes], axis=-1), 0, image_pixels)


def encode_boxes(boxes: jax.Array, anchors: jax.Array) -> jax.Array:
    sizes, anchor_sizes = boxes[..., 2:] - boxes[..., :2], jnp.maximum(anchors[..., 2:] - anchors[..., :2], 1)
    offsets = (boxes[..., :2] + boxes[..., 2:] - anchors[..., :2] - anchors[..., 2:]) / 2 / anchor_sizes
    return jnp.concatenate([offsets, jnp.log(sizes / anchor_sizes)], axis=-1) / ENCODING_SCALES


def compute_iou(first_boxes: jax.Array, second_boxes: jax.Array) -> jax.Array:
    """Intersection over union of each pair: (..., first, second)."""
    top_left = jnp.maximum(first_boxes[..., :, None, :2], second_boxes[..., None, :, :2])
    bottom_right = jnp.minimum(first_boxes[..., :, None, 2:], second_boxes[..., None, :, 2:])
    intersection = jnp.maximum(bottom_right - top_left, 0).prod(axis=-1)
    first_area = (first_boxes[..., 2:] - first_boxes[..., :2]).prod(axis=-1)
    second_area = (second_boxes[..., 2:] - second_boxes[..., :2]).prod(axis=-1)
    union = first_area[..., :, None] + second_area[..., None, :] - intersection
    return intersection / jnp.maximum(union, 1e-6)


def take_rows(values: jax.Array, indices: jax.Array) -> jax.Array:
    """Rows of each image: values (batch, rows, ...), indices (batch, count)."""
    return jax.vmap(lambda rows, index: rows[index])(values, indices)


def suppress_overlaps(boxes: jax.Array, scores: jax.Array, max_iou: float) -> jax.Array:
    """Scores, 0 where a box with a higher score overlaps by more than `max_iou`. Expects descending scores."""
    overlaps = jnp.triu(compute_iou(boxes, boxes), k=1)
    return jnp.where(overlaps.max(axis=-2) > max_iou, 0.0, scores)


def smooth_l1(difference: jax.Array) -> jax.Array:
    """Mean over the four numbers of a box."""
    size = jnp.abs(difference)
    return jnp.where(size < 1, 0.5 * size * size, size - 0.5).mean(axis=-1)
