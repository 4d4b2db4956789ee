# SPDX-License-Identifier: Apache-2.0
"""RoIAlign over a feature pyramid: one bilinear sample in each cell of a region."""

from __future__ import annotations

import jax
import jax.numpy as jnp

CANONICAL_PIXELS = 224  # a region of this size belongs to the third level, in an image of CANONICAL_IMAGE_PIXELS
CANONICAL_IMAGE_PIXELS = 800
CANONICAL_LEVEL = 2


def make_cell_centers(boxes: jax.Array, cells: int) -> tuple[jax.Array, jax.Array]:
    """y and x of the centers of a grid in each box: (batch, boxes, cells)."""
    fractions = (jnp.arange(cells) + 0.5) / cells
    top, left_edge, bottom_edge, right_edge = (boxes[..., number, None] for number in range(4))
    return top + (bottom_edge - top) * fractions, left_edge + (right_edge - left_edge) * fractions


def flatten_levels(levels: list[jax.Array]) -> jax.Array:
    """All levels as (batch, cells of all levels, width)."""
    return jnp.concatenate([level.reshape(len(level), -1, level.shape[-1]) for level in levels], axis=1)


def choose_levels(boxes: jax.Array, image_pixels: int, level_count: int) -> jax.Array:
    size = jnp.sqrt(jnp.maximum((boxes[..., 2:] - boxes[..., :2]).prod(axis=-1), 1))
    levels = CANONICAL_LEVEL + jnp.log2(size / (CANONICAL_PIXELS * image_pixels / CANONICAL_IMAGE_PIXELS))
    return jnp.clip(jnp.floor(levels), 0, level_count - 1).astype(jnp.int32)


def align_regions(
    pyramid: jax.Array, boxes: jax.Array, cells: int, image_pixels: int, strides: tuple[int, ...]
) -> jax.Array:
    """Features of each box: (batch, boxes, cells, cells, width)."""
    sides = [image_pixels // stride for stride in strides]
    starts = [sum(side * side for side in sides[:number]) for number in range(len(sides))]
    levels = choose_levels(boxes, image_pixels, len(strides))
    side, start, stride = (jnp.array(table)[levels][..., None] for table in (sides, starts, strides))
    y, x = (center / stride - 0.5 for center in make_cell_centers(boxes, cells))
    y, x = (jnp.minimum(jnp.maximum(place, 0), side - 1.0) for place in (y, x))
    y0, x0 = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
    y1, x1 = jnp.minimum(y0 + 1, side - 1), jnp.minimum(x0 + 1, side - 1)
    y_weight, x_weight = (y - y0)[..., :, None, None], (x - x0)[..., None, :, None]
    count, length, width = pyramid.shape
    table = pyramid.reshape(count * length, width)
    start = start + jnp.arange(count)[:, None, None] * length

    def take(row: jax.Array, column: jax.Array) -> jax.Array:
        return table[(start + row * side)[..., :, None] + column[..., None, :]]

    upper_values = take(y0, x0) * (1 - x_weight) + take(y0, x1) * x_weight
    lower = take(y1, x0) * (1 - x_weight) + take(y1, x1) * x_weight
    return upper_values * (1 - y_weight) + lower * y_weight


def crop_masks(masks: jax.Array, boxes: jax.Array, matches: jax.Array, cells: int) -> jax.Array:
    """The matched mask inside of each box, at the nearest pixels: (batch, boxes, cells, cells)."""
    count, objects, height, width = masks.shape
    y, x = make_cell_centers(boxes, cells)
    row = jnp.clip(y.astype(jnp.int32), 0, height - 1)
    column = jnp.clip(x.astype(jnp.int32), 0, width - 1)
    mask_index = jnp.arange(count)[:, None] * objects + matches
    return masks.reshape(-1)[(mask_index[..., None] * height + row)[..., :, None] * width + column[..., None, :]]
