# SPDX-License-Identifier: Apache-2.0
"""Synthetic data that networks can learn, from a fixed seed: the same arrays for every framework.

`make_batches` returns the batches of the training and others for inference. Images are (batch, height, width,
channels).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anchors import make_pyramid_anchors, make_ssd_anchors, match_anchors

Batch = dict[str, np.ndarray]
SEED = 20_220_521
INFERENCE_BATCHES = 8  # distinct ones; inference cycles through them
PROTOTYPE_CELLS = 8
NOISE_DEVIATION = 0.5


def make_image_batch(settings: dict, world: np.random.Generator, random: np.random.Generator) -> Batch:
    """Each class is a coarse color pattern under noise."""
    cells = PROTOTYPE_CELLS
    patterns = world.standard_normal((settings["drawn_classes"], cells, cells, 3), dtype=np.float32)
    labels = random.integers(0, settings["drawn_classes"], settings["batch"])
    scale = settings["image_pixels"] // cells
    images = patterns[labels].repeat(scale, axis=1).repeat(scale, axis=2)
    images += NOISE_DEVIATION * random.standard_normal(images.shape, dtype=np.float32)
    return {"images": images, "labels": labels.astype(np.int32)}


def draw_object(pixels: int, is_ellipse: bool, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Box and mask of a rectangle or an ellipse."""
    height, width = random.uniform(0.2, 0.55, 2) * pixels
    top, left_edge = random.uniform(0, pixels - height), random.uniform(0, pixels - width)
    centers = np.arange(pixels) + 0.5
    y, x = centers[:, None], centers[None, :]
    relative_y, relative_x = 2 * (y - top) / height - 1, 2 * (x - left_edge) / width - 1
    if is_ellipse:
        mask = relative_y**2 + relative_x**2 <= 1
    else:
        mask = (np.abs(relative_y) <= 1) & (np.abs(relative_x) <= 1)
    return np.array([top, left_edge, top + height, left_edge + width], dtype=np.float32), mask


def make_detection_batch(settings: dict, world: np.random.Generator, random: np.random.Generator) -> Batch:
    """Images of noise with objects: the class determines color and shape."""
    pixels, count, objects = settings["image_pixels"], settings["batch"], settings["objects"]
    colors = world.uniform(-2, 2, (settings["classes"] + 1, 3)).astype(np.float32)
    images = NOISE_DEVIATION * random.standard_normal((count, pixels, pixels, 3), dtype=np.float32)
    labels = random.integers(1, settings["classes"] + 1, (count, objects)).astype(np.int32)
    boxes = np.zeros((count, objects, 4), dtype=np.float32)
    masks = np.zeros((count, objects, pixels, pixels), dtype=np.float32)
    for image in range(count):
        for number, label in enumerate(labels[image]):
            boxes[image, number], mask = draw_object(pixels, bool(label % 2), random)
            masks[image, :number] *= ~mask  # the later object hides the earlier ones
            masks[image, number] = mask
            images[image][mask] += colors[label]
    return {"images": images, "labels": labels, "boxes": boxes, "masks": masks}


def add_anchor_targets(batch: Batch, anchors: np.ndarray, negative_below: float) -> Batch:
    targets = [match_anchors(anchors, *objects, negative_below) for objects in zip(batch["boxes"], batch["labels"])]
    batch["anchor_classes"], batch["anchor_boxes"] = (np.stack(column) for column in zip(*targets))
    return batch


def make_ssd_batch(settings: dict, world: np.random.Generator, random: np.random.Generator) -> Batch:
    batch = make_detection_batch(settings, world, random)
    del batch["masks"]
    return add_anchor_targets(batch, make_ssd_anchors(settings["image_pixels"]), negative_below=0.5)


def make_mask_rcnn_batch(settings: dict, world: np.random.Generator, random: np.random.Generator) -> Batch:
    batch = make_detection_batch(settings, world, random)
    return add_anchor_targets(batch, make_pyramid_anchors(settings["image_pixels"]), negative_below=0.3)


def make_ncf_batch(settings: dict, world: np.random.Generator, random: np.random.Generator) -> Batch:
    """Users and items belong to groups; a user likes items of some groups. A quarter of the pairs is liked."""
    groups = settings["groups"]
    user_groups = world.integers(0, groups, settings["users"])
    item_groups = world.integers(0, groups, settings["items"])
    is_liked = world.random((groups, groups)) < 0.25
    users = random.integers(0, settings["users"], settings["batch"])
    items = random.integers(0, settings["items"], settings["batch"])
    liked = is_liked[user_groups[users], item_groups[items]]
    ranked_users = random.integers(0, settings["users"], settings["inference_users"])
    ranked_items = random.integers(0, settings["items"], (settings["inference_users"], settings["candidates"]))
    return {
        "users": users.astype(np.int32),
        "items": items.astype(np.int32),
        "liked": liked.astype(np.float32),
        "ranked_users": ranked_users.astype(np.int32),
        "ranked_items": ranked_items.astype(np.int32),
        "ranked_liked": is_liked[user_groups[ranked_users][:, None], item_groups[ranked_items]],
    }


def draw_tokens(
    count: int, length: int, word_count: int, world: np.random.Generator, random: np.random.Generator
) -> np.ndarray:
    """Texts of a Markov chain: each token has four possible successors, of unequal probability."""
    successors = world.integers(1, word_count, (word_count, 4))
    tokens = np.empty((count, length), dtype=np.int32)
    tokens[:, 0] = random.integers(1, word_count, count)
    choices = random.choice(4, (count, length), p=[0.55, 0.25, 0.15, 0.05])
    for place in range(1, length):
        tokens[:, place] = successors[tokens[:, place - 1], choices[:, place]]
    return tokens


def make_translation_batch(settings: dict, world: np.random.Generator, random: np.random.Generator) -> Batch:
    """The translation replaces each word and swaps neighbors. Token 0 begins a text."""
    word_count, length = settings["drawn_words"], settings["length"]
    words = np.concatenate([[0], 1 + world.permutation(word_count - 1)]).astype(np.int32)
    sources = draw_tokens(settings["batch"], length, word_count, world, random)
    targets = words[sources.reshape(-1, length // 2, 2)[:, :, ::-1].reshape(-1, length)]
    begin = np.zeros((settings["batch"], 1), dtype=np.int32)
    return {"sources": sources, "inputs": np.concatenate([begin, targets[:, :-1]], axis=1), "targets": targets}


def make_text_batch(settings: dict, world: np.random.Generator, random: np.random.Generator) -> Batch:
    length = settings["segment"] * settings["segments"]
    tokens = draw_tokens(settings["batch"], length + 1, settings["drawn_words"], world, random)
    return {"inputs": tokens[:, :-1].copy(), "targets": tokens[:, 1:].copy()}


BATCH_MAKERS: dict[str, Callable[[dict, np.random.Generator, np.random.Generator], Batch]] = {
    "resnet50": make_image_batch,
    "ssd": make_ssd_batch,
    "mask_rcnn": make_mask_rcnn_batch,
    "ncf": make_ncf_batch,
    "lstm_translator": make_translation_batch,
    "transformer_xl": make_text_batch,
}


def make_batches(network: str, settings: dict) -> tuple[list[Batch], list[Batch]]:
    random = np.random.default_rng(SEED)

    def make(count: int) -> list[Batch]:
        # The same `world` (classes, colors, words) for every batch.
        return [BATCH_MAKERS[network](settings, np.random.default_rng(SEED + 1), random) for _ in range(count)]

    return make(settings["train_batches"]), make(INFERENCE_BATCHES)
