# SPDX-License-Identifier: Apache-2.0
"""Mask R-CNN: backbone with feature pyramid, region proposals, RoIAlign, box head and mask head."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient, top_k

from anchors import PYRAMID_ANCHORS_PER_CELL, PYRAMID_STRIDES, make_pyramid_anchors

from .boxes import (
    compute_iou,
    decode_boxes,
    encode_boxes,
    smooth_l1,
    suppress_overlaps,
    take_rows,
)
from .layers import (
    Scope,
    binary_cross_entropy,
    convolve,
    cross_entropy,
    linear,
    upsample,
)
from .resnet50 import run_backbone
from .roi_align import align_regions, crop_masks, flatten_levels

BOX_CELLS = 7
MASK_CELLS = 14
MASK_CONVOLUTIONS = 4


def run_pyramid(scope: Scope, features: list[jax.Array], width: int) -> list[jax.Array]:
    """Feature pyramid: each level adds the upsampled level above."""
    levels = [convolve(scope, f"pyramid.lateral.{i}", feature, width, 1) for i, feature in enumerate(features)]
    for number in reversed(range(len(levels) - 1)):
        levels[number] = levels[number] + upsample(levels[number + 1])
    return [convolve(scope, f"pyramid.smooth.{i}", level, width, 3) for i, level in enumerate(levels)]


def run_proposal_head(scope: Scope, levels: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Objectness and encoded box of each anchor."""
    objectness, boxes = [], []
    for level in levels:
        x = jax.nn.relu(convolve(scope, "proposal_head.conv", level, level.shape[-1], 3))
        level_objectness = convolve(scope, "proposal_head.objectness", x, PYRAMID_ANCHORS_PER_CELL, 1)
        level_boxes = convolve(scope, "proposal_head.boxes", x, PYRAMID_ANCHORS_PER_CELL * 4, 1)
        objectness.append(level_objectness.reshape(len(x), -1))
        boxes.append(level_boxes.reshape(len(x), -1, 4))
    return jnp.concatenate(objectness, axis=1), jnp.concatenate(boxes, axis=1)


def run_box_head(scope: Scope, regions: jax.Array, settings: dict) -> tuple[jax.Array, jax.Array]:
    x = regions.reshape(*regions.shape[:2], -1)
    x = jax.nn.relu(linear(scope, "box_head.linear1", x, settings["box_width"]))
    x = jax.nn.relu(linear(scope, "box_head.linear2", x, settings["box_width"]))
    return linear(scope, "box_head.classifier", x, settings["classes"] + 1), linear(scope, "box_head.boxes", x, 4)


def run_mask_head(scope: Scope, regions: jax.Array, labels: jax.Array, settings: dict) -> jax.Array:
    """Logits of the mask of each region for its class: (batch, regions, height, width)."""
    x = regions.reshape(-1, *regions.shape[2:])
    for number in range(MASK_CONVOLUTIONS):
        x = jax.nn.relu(convolve(scope, f"mask_head.convs.{number}", x, x.shape[-1], 3))
    x = jax.nn.relu(convolve(scope, "mask_head.upsampled", upsample(x), x.shape[-1], 3))
    x = convolve(scope, "mask_head.output", x, settings["classes"] + 1, 1)
    x = x.reshape(*labels.shape, *x.shape[1:])
    return jnp.take_along_axis(x, labels[..., None, None, None], axis=-1)[..., 0]


def find_anchors(settings: dict) -> jax.Array:
    return jnp.asarray(make_pyramid_anchors(settings["image_pixels"]))


def propose(objectness: jax.Array, encoded: jax.Array, settings: dict) -> jax.Array:
    """The boxes with the highest scores after suppression, without gradients."""
    scores, top_indices = top_k(jax.nn.sigmoid(stop_gradient(objectness)), settings["candidates"])
    encoded = take_rows(stop_gradient(encoded), top_indices)
    boxes = decode_boxes(encoded, find_anchors(settings)[top_indices], settings["image_pixels"])
    scores = suppress_overlaps(boxes, scores, 0.7)
    return take_rows(boxes, top_k(scores, settings["proposals"])[1])


def compute_proposal_loss(objectness: jax.Array, encoded: jax.Array, batch: dict) -> jax.Array:
    """Positive and negative anchors have equal weight; ignored ones have none."""
    classes = batch["anchor_classes"]
    is_positive, is_negative = (classes > 0).astype(jnp.float32), (classes == 0).astype(jnp.float32)
    losses = binary_cross_entropy(objectness, is_positive)
    positives = is_positive.sum()
    box_losses = smooth_l1(encoded - batch["anchor_boxes"])
    balanced = (losses * is_positive).sum() / positives + (losses * is_negative).sum() / is_negative.sum()
    return balanced / 2 + (box_losses * is_positive).sum() / positives


def align(pyramid: jax.Array, boxes: jax.Array, cells: int, settings: dict) -> jax.Array:
    return align_regions(pyramid, boxes, cells, settings["image_pixels"], PYRAMID_STRIDES)


def compute_region_loss(
    scope: Scope, pyramid: jax.Array, proposals: jax.Array, batch: dict, settings: dict
) -> jax.Array:
    """Losses of classes, boxes and masks. The true boxes are added to the proposals."""
    regions = jnp.concatenate([proposals, batch["boxes"]], axis=1)
    iou = compute_iou(regions, batch["boxes"])
    overlaps, matches = iou.max(axis=2), iou.argmax(axis=2)
    is_positive = overlaps >= 0.5
    labels = jnp.where(is_positive, take_rows(batch["labels"], matches), 0)
    logits, encoded = run_box_head(scope, align(pyramid, regions, BOX_CELLS, settings), settings)
    class_loss = cross_entropy(logits, labels).mean()
    targets = encode_boxes(take_rows(batch["boxes"], matches), regions)
    box_loss = (smooth_l1(encoded - targets) * is_positive).sum() / is_positive.sum()

    overlaps, mask_region_indices = top_k(overlaps, settings["mask_regions"])
    boxes, matches, labels = (take_rows(values, mask_region_indices) for values in (regions, matches, labels))
    mask_logits = run_mask_head(scope, align(pyramid, boxes, MASK_CELLS, settings), labels, settings)
    masks = crop_masks(batch["masks"], boxes, matches, mask_logits.shape[-1])
    losses = binary_cross_entropy(mask_logits, masks).mean(axis=(2, 3))
    counts = (overlaps >= 0.5).astype(jnp.float32)
    return class_loss + box_loss + (losses * counts).sum() / counts.sum()


def run_levels(scope: Scope, images: jax.Array, settings: dict) -> list[jax.Array]:
    features = run_backbone(scope, images, settings["width"], settings["blocks"])
    return run_pyramid(scope, features, settings["pyramid_width"])


def compute_loss(scope: Scope, batch: dict, settings: dict) -> jax.Array:
    levels = run_levels(scope, batch["images"], settings)
    objectness, encoded = run_proposal_head(scope, levels)
    proposals = propose(objectness, encoded, settings)
    region_loss = compute_region_loss(scope, flatten_levels(levels), proposals, batch, settings)
    return compute_proposal_loss(objectness, encoded, batch) + region_loss


def predict(scope: Scope, batch: dict, settings: dict) -> dict:
    levels = run_levels(scope, batch["images"], settings)
    pyramid = flatten_levels(levels)
    regions = propose(*run_proposal_head(scope, levels), settings)
    logits, encoded = run_box_head(scope, align(pyramid, regions, BOX_CELLS, settings), settings)
    probabilities = jax.nn.softmax(logits)[..., 1:]
    scores, top_indices = top_k(probabilities.max(axis=-1), settings["detections"])
    boxes = decode_boxes(take_rows(encoded, top_indices), take_rows(regions, top_indices), settings["image_pixels"])
    labels = take_rows(probabilities.argmax(axis=-1), top_indices) + 1
    masks = run_mask_head(scope, align(pyramid, boxes, MASK_CELLS, settings), labels, settings) > 0
    return {"boxes": boxes, "labels": labels, "scores": suppress_overlaps(boxes, scores, 0.5), "masks": masks}
