# SPDX-License-Identifier: Apache-2.0
"""SSD: a single-shot detector on four feature maps of a small convolutional backbone."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from anchors import SSD_ANCHORS_PER_CELL, SSD_STRIDES, make_ssd_anchors

from .boxes import decode_boxes, smooth_l1, suppress_overlaps, take_rows
from .layers import Scope, convolve, convolve_and_normalize, cross_entropy

NEGATIVES_PER_POSITIVE = 3


def detect(scope: Scope, images: jax.Array, settings: dict) -> tuple[jax.Array, jax.Array]:
    """Class logits and encoded box of each anchor."""
    width, classes = settings["width"], settings["classes"] + 1  # and background
    x = convolve_and_normalize(scope, "stem.0", images, width, 3, stride=2)
    x = convolve_and_normalize(scope, "stem.1", x, 2 * width, 3, stride=2)
    logits, boxes = [], []
    for number in range(len(SSD_STRIDES)):
        x = convolve_and_normalize(scope, f"levels.{number}.0", x, 4 * width, 3, stride=2)
        x = convolve_and_normalize(scope, f"levels.{number}.1", x, 4 * width, 3)
        level_logits = convolve(scope, f"class_heads.{number}", x, SSD_ANCHORS_PER_CELL * classes, 3)
        level_boxes = convolve(scope, f"box_heads.{number}", x, SSD_ANCHORS_PER_CELL * 4, 3)
        logits.append(level_logits.reshape(len(x), -1, classes))
        boxes.append(level_boxes.reshape(len(x), -1, 4))
    return jnp.concatenate(logits, axis=1), jnp.concatenate(boxes, axis=1)


def compute_loss(scope: Scope, batch: dict, settings: dict) -> jax.Array:
    logits, boxes = detect(scope, batch["images"], settings)
    classes = batch["anchor_classes"]
    is_positive = classes > 0
    class_losses = cross_entropy(logits, classes)
    # Of the negative anchors only those with the largest losses count.
    negative_losses = jnp.where(is_positive, 0, jax.lax.stop_gradient(class_losses))
    ranks = jnp.argsort(jnp.argsort(-negative_losses, axis=1), axis=1)
    positives = is_positive.sum(axis=1, keepdims=True)
    is_counted = is_positive | (ranks < NEGATIVES_PER_POSITIVE * positives)
    box_losses = smooth_l1(boxes - batch["anchor_boxes"])
    return (class_losses * is_counted + box_losses * is_positive).sum() / positives.sum()


def predict(scope: Scope, batch: dict, settings: dict) -> dict:
    logits, encoded = detect(scope, batch["images"], settings)
    probabilities = jax.nn.softmax(logits)[..., 1:]
    scores, top_indices = jax.lax.top_k(probabilities.max(axis=-1), settings["detections"])
    anchors = jnp.asarray(make_ssd_anchors(settings["image_pixels"]))
    boxes = decode_boxes(take_rows(encoded, top_indices), anchors[top_indices], settings["image_pixels"])
    labels = take_rows(probabilities.argmax(axis=-1), top_indices) + 1
    return {"boxes": boxes, "labels": labels, "scores": suppress_overlaps(boxes, scores, 0.5)}
