# SPDX-License-Identifier: Apache-2.0
"""RoIAlign over a feature pyramid: one bilinear sample in each cell of a region."""

from __future__ import annotations

import tensorflow as tf

CANONICAL_PIXELS = 224  # a region of this size belongs to the third level, in an image of CANONICAL_IMAGE_PIXELS
CANONICAL_IMAGE_PIXELS = 800
CANONICAL_LEVEL = 2


def make_cell_centers(boxes: tf.Tensor, cells: int) -> tuple[tf.Tensor, tf.Tensor]:
    """y and x of the centers of a grid in each box: (batch, boxes, cells)."""
    fractions = (tf.range(cells, dtype=tf.float32) + 0.5) / cells
    top, left_edge, bottom_edge, right_edge = (boxes[..., number, None] for number in range(4))
    return top + (bottom_edge - top) * fractions, left_edge + (right_edge - left_edge) * fractions


def flatten_levels(levels: list[tf.Tensor]) -> tf.Tensor:
    """All levels as (batch, cells of all levels, width)."""
    return tf.concat([tf.reshape(level, (level.shape[0], -1, level.shape[-1])) for level in levels], axis=1)


def choose_levels(boxes: tf.Tensor, image_pixels: int, level_count: int) -> tf.Tensor:
    size = tf.sqrt(tf.maximum(tf.reduce_prod(boxes[..., 2:] - boxes[..., :2], axis=-1), 1))
    relative = size / (CANONICAL_PIXELS * image_pixels / CANONICAL_IMAGE_PIXELS)
    levels = CANONICAL_LEVEL + tf.math.log(relative) / tf.math.log(2.0)
    return tf.cast(tf.clip_by_value(tf.floor(levels), 0, level_count - 1), tf.int32)


def align_regions(
    pyramid: tf.Tensor, boxes: tf.Tensor, cells: int, image_pixels: int, strides: tuple[int, ...]
) -> tf.Tensor:
    """Features of each box: (batch, boxes, cells, cells, width)."""
    sides = [image_pixels // stride for stride in strides]
    starts = [sum(side * side for side in sides[:number]) for number in range(len(sides))]
    levels = choose_levels(boxes, image_pixels, len(strides))
    side, start, stride = (tf.gather(table, levels)[..., None] for table in (sides, starts, strides))
    y, x = (center / tf.cast(stride, tf.float32) - 0.5 for center in make_cell_centers(boxes, cells))
    y, x = (tf.minimum(tf.maximum(place, 0), tf.cast(side - 1, tf.float32)) for place in (y, x))
    y0, x0 = tf.cast(tf.floor(y), tf.int32), tf.cast(tf.floor(x), tf.int32)
    y1, x1 = tf.minimum(y0 + 1, side - 1), tf.minimum(x0 + 1, side - 1)
    y_weight = (y - tf.cast(y0, tf.float32))[..., :, None, None]
    x_weight = (x - tf.cast(x0, tf.float32))[..., None, :, None]
    count, length, width = pyramid.shape
    table = tf.reshape(pyramid, (count * length, width))
    start = start + tf.range(count)[:, None, None] * length

    def take(row: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
        return tf.gather(table, (start + row * side)[..., :, None] + column[..., None, :])

    upper_values = take(y0, x0) * (1 - x_weight) + take(y0, x1) * x_weight
    lower = take(y1, x0) * (1 - x_weight) + take(y1, x1) * x_weight
    return upper_values * (1 - y_weight) + lower * y_weight


def crop_masks(masks: tf.Tensor, boxes: tf.Tensor, matches: tf.Tensor, cells: int) -> tf.Tensor:
    """The matched mask inside of each box, at the nearest pixels: (batch, boxes, cells, cells)."""
    count, objects, height, width = masks.shape
    y, x = make_cell_centers(boxes, cells)
    row = tf.clip_by_value(tf.cast(y, tf.int32), 0, height - 1)
    column = tf.clip_by_value(tf.cast(x, tf.int32), 0, width - 1)
    mask_index = tf.range(count)[:, None] * objects + matches
    index = (mask_index[..., None] * height + row)[..., :, None] * width + column[..., None, :]
    return tf.gather(tf.reshape(masks, (-1,)), index)
