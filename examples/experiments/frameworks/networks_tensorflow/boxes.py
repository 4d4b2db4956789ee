# SPDX-License-Identifier: Apache-2.0
"""Boxes (top, left, bottom, right) on the device; shapes are (..., boxes, 4)."""

from __future__ import annotations

import tensorflow as tf

from anchors import ENCODING_SCALES

MAX_LOG_SIZE = 4.0


def decode_boxes(encoded: tf.Tensor, anchors: tf.Tensor, image_pixels: int) -> tf.Tensor:
    """The inverse of `anchors.encode_boxes`, clipped to the image."""
    encoded = encoded * ENCODING_SCALES
    sizes = anchors[..., 2:] - anchors[..., :2]
    centers = (anchors[..., :2] + anchors[..., 2:]) / 2 + encoded[..., :2] * sizes
    half_sizes = sizes * tf.exp(tf.minimum(encoded[..., 2:], MAX_LOG_SIZE)) / 2
    return tf.clip_by_value(tf.concat([centers - half_sizes, centers + half_sizes], axis=-1), 0, image_pixels)


def encode_boxes(boxes: tf.Tensor, anchors: tf.Tensor) -> tf.Tensor:
    sizes, anchor_sizes = boxes[..., 2:] - boxes[..., :2], tf.maximum(anchors[..., 2:] - anchors[..., :2], 1)
    offsets = (boxes[..., :2] + boxes[..., 2:] - anchors[..., :2] - anchors[..., 2:]) / 2 / anchor_sizes
    return tf.concat([offsets, tf.math.log(sizes / anchor_sizes)], axis=-1) / ENCODING_SCALES


def compute_iou(first_boxes: tf.Tensor, second_boxes: tf.Tensor) -> tf.Tensor:
    """Intersection over union of each pair: (..., first, second)."""
    top_left = tf.maximum(first_boxes[..., :, None, :2], second_boxes[..., None, :, :2])
    bottom_right = tf.minimum(first_boxes[..., :, None, 2:], second_boxes[..., None, :, 2:])
    intersection = tf.reduce_prod(tf.maximum(bottom_right - top_left, 0), axis=-1)
    first_area = tf.reduce_prod(first_boxes[..., 2:] - first_boxes[..., :2], axis=-1)
    second_area = tf.reduce_prod(second_boxes[..., 2:] - second_boxes[..., :2], axis=-1)
    union = first_area[..., :, None] + second_area[..., None, :] - intersection
    return intersection / tf.maximum(union, 1e-6)


def take_rows(values: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """Rows of each image: values (batch, rows, ...), indices (batch, count)."""
    return tf.gather(values, indices, batch_dims=1)


def suppress_overlaps(boxes: tf.Tensor, scores: tf.Tensor, max_iou: float) -> tf.Tensor:
    """Scores, 0 where a box with a higher score overlaps by more than `max_iou`. Expects descending scores."""
    iou = compute_iou(boxes, boxes)
    overlaps = tf.linalg.band_part(iou, 0, -1) - tf.linalg.band_part(iou, 0, 0)  # above the diagonal
    return tf.where(tf.reduce_max(overlaps, axis=-2) > max_iou, 0.0, scores)


def smooth_l1(difference: tf.Tensor) -> tf.Tensor:
    """Mean over the four numbers of a box."""
    size = tf.abs(difference)
    return tf.reduce_mean(tf.where(size < 1, 0.5 * size * size, size - 0.5), axis=-1)
