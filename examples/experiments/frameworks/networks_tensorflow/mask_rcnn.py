# SPDX-License-Identifier: Apache-2.0
"""Mask R-CNN: backbone with feature pyramid, region proposals, RoIAlign, box head and mask head."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow.math import top_k

from anchors import PYRAMID_ANCHORS_PER_CELL, PYRAMID_STRIDES, make_pyramid_anchors

from .boxes import (
    compute_iou,
    decode_boxes,
    encode_boxes,
    smooth_l1,
    suppress_overlaps,
    take_rows,
)
from .layers import Composite, cross_entropy, make_convolution
from .resnet50 import Backbone
from .roi_align import align_regions, crop_masks, flatten_levels

BOX_CELLS = 7
MASK_CELLS = 14
MASK_CONVOLUTIONS = 4


class Pyramid(Composite):
    """Feature pyramid: each level adds the upsampled level above."""

    def __init__(self, level_count: int, outputs: int) -> None:
        super().__init__("pyramid")
        self.lateral = [make_convolution(f"pyramid.lateral.{i}", outputs, 1) for i in range(level_count)]
        self.smooth = [make_convolution(f"pyramid.smooth.{i}", outputs, 3) for i in range(level_count)]
        self.upsample = layers.UpSampling2D(2)

    def call(self, features: list[tf.Tensor]) -> list[tf.Tensor]:
        levels = [lateral(feature) for lateral, feature in zip(self.lateral, features)]
        for number in reversed(range(len(levels) - 1)):
            levels[number] = levels[number] + self.upsample(levels[number + 1])
        return [smooth(level) for smooth, level in zip(self.smooth, levels)]


class ProposalHead(Composite):
    """Objectness and encoded box of each anchor."""

    def __init__(self, width: int) -> None:
        super().__init__("proposal_head")
        self.conv = make_convolution("proposal_head.conv", width, 3)
        self.objectness = make_convolution("proposal_head.objectness", PYRAMID_ANCHORS_PER_CELL, 1)
        self.boxes = make_convolution("proposal_head.boxes", PYRAMID_ANCHORS_PER_CELL * 4, 1)

    def call(self, levels: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        objectness, boxes = [], []
        for level in levels:
            x = tf.nn.relu(self.conv(level))
            objectness.append(tf.reshape(self.objectness(x), (x.shape[0], -1)))
            boxes.append(tf.reshape(self.boxes(x), (x.shape[0], -1, 4)))
        return tf.concat(objectness, axis=1), tf.concat(boxes, axis=1)


class BoxHead(Composite):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__("box_head")
        self.linear1 = layers.Dense(width, "relu", name="box_head.linear1")
        self.linear2 = layers.Dense(width, "relu", name="box_head.linear2")
        self.classifier = layers.Dense(classes + 1, name="box_head.classifier")
        self.boxes = layers.Dense(4, name="box_head.boxes")

    def call(self, regions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        count, regions_per_image, *cells_and_width = regions.shape
        x = tf.reshape(regions, (count, regions_per_image, cells_and_width[0] ** 2 * cells_and_width[2]))
        x = self.linear2(self.linear1(x))
        return self.classifier(x), self.boxes(x)


class MaskHead(Composite):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__("mask_head")
        self.convs = [make_convolution(f"mask_head.convs.{i}", width, 3) for i in range(MASK_CONVOLUTIONS)]
        self.upsample = layers.UpSampling2D(2)
        self.upsampled = make_convolution("mask_head.upsampled", width, 3)
        self.output_layer = make_convolution("mask_head.output", classes + 1, 1)

    def call(self, regions: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Logits of the mask of each region for its class: (batch, regions, height, width)."""
        x = tf.reshape(regions, (-1, *regions.shape[2:]))
        for conv in self.convs:
            x = tf.nn.relu(conv(x))
        x = self.output_layer(tf.nn.relu(self.upsampled(self.upsample(x))))
        x = tf.reshape(x, (*labels.shape, *x.shape[1:]))
        return tf.gather(tf.transpose(x, (0, 1, 4, 2, 3)), labels, batch_dims=2)


class Network(keras.Model):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        self.settings, width = settings, settings["pyramid_width"]
        self.backbone = Backbone(settings["width"], settings["blocks"])
        self.pyramid = Pyramid(len(PYRAMID_STRIDES), width)
        self.proposal_head = ProposalHead(width)
        self.box_head = BoxHead(settings["box_width"], settings["classes"])
        self.mask_head = MaskHead(width, settings["classes"])
        self.anchors = make_pyramid_anchors(settings["image_pixels"])

    def align(self, pyramid: tf.Tensor, boxes: tf.Tensor, cells: int) -> tf.Tensor:
        return align_regions(pyramid, boxes, cells, self.settings["image_pixels"], PYRAMID_STRIDES)

    def propose(self, objectness: tf.Tensor, encoded: tf.Tensor) -> tf.Tensor:
        """The boxes with the highest scores after suppression, without gradients."""
        scores, top_indices = top_k(tf.sigmoid(tf.stop_gradient(objectness)), self.settings["candidates"])
        encoded = take_rows(tf.stop_gradient(encoded), top_indices)
        boxes = decode_boxes(encoded, tf.gather(self.anchors, top_indices), self.settings["image_pixels"])
        scores = suppress_overlaps(boxes, scores, 0.7)
        return take_rows(boxes, top_k(scores, self.settings["proposals"]).indices)

    def compute_proposal_loss(self, objectness: tf.Tensor, encoded: tf.Tensor, batch: dict) -> tf.Tensor:
        """Positive and negative anchors have equal weight; ignored ones have none."""
        classes = batch["anchor_classes"]
        is_positive, is_negative = tf.cast(classes > 0, tf.float32), tf.cast(classes == 0, tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=is_positive, logits=objectness)
        positives = tf.reduce_sum(is_positive)
        box_losses = smooth_l1(encoded - batch["anchor_boxes"])
        balanced = tf.reduce_sum(losses * is_positive) / positives
        balanced += tf.reduce_sum(losses * is_negative) / tf.reduce_sum(is_negative)
        return balanced / 2 + tf.reduce_sum(box_losses * is_positive) / positives

    def compute_region_loss(self, pyramid: tf.Tensor, proposals: tf.Tensor, batch: dict) -> tf.Tensor:
        """Losses of classes, boxes and masks. The true boxes are added to the proposals."""
        regions = tf.concat([proposals, batch["boxes"]], axis=1)
        iou = compute_iou(regions, batch["boxes"])
        overlaps, matches = tf.reduce_max(iou, axis=2), tf.argmax(iou, axis=2, output_type=tf.int32)
        labels = tf.where(overlaps >= 0.5, take_rows(batch["labels"], matches), 0)
        logits, encoded = self.box_head(self.align(pyramid, regions, BOX_CELLS))
        class_loss = tf.reduce_mean(cross_entropy(logits, labels))
        targets = encode_boxes(take_rows(batch["boxes"], matches), regions)
        is_positive = tf.cast(overlaps >= 0.5, tf.float32)
        box_loss = tf.reduce_sum(smooth_l1(encoded - targets) * is_positive) / tf.reduce_sum(is_positive)

        overlaps, mask_region_indices = top_k(overlaps, self.settings["mask_regions"])
        boxes, matches, labels = (take_rows(values, mask_region_indices) for values in (regions, matches, labels))
        mask_logits = self.mask_head(self.align(pyramid, boxes, MASK_CELLS), labels)
        masks = crop_masks(batch["masks"], boxes, matches, mask_logits.shape[-1])
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=masks, logits=mask_logits)
        counts = tf.cast(overlaps >= 0.5, tf.float32)
        mask_loss = tf.reduce_sum(tf.reduce_mean(losses, axis=(2, 3)) * counts) / tf.reduce_sum(counts)
        return class_loss + box_loss + mask_loss

    def compute_training_loss(self, batch: dict) -> tf.Tensor:
        levels = self.pyramid(self.backbone(batch["images"], training=True))
        objectness, encoded = self.proposal_head(levels)
        proposals = self.propose(objectness, encoded)
        region_loss = self.compute_region_loss(flatten_levels(levels), proposals, batch)
        return self.compute_proposal_loss(objectness, encoded, batch) + region_loss

    def infer(self, batch: dict) -> dict:
        levels = self.pyramid(self.backbone(batch["images"], training=False))
        pyramid = flatten_levels(levels)
        regions = self.propose(*self.proposal_head(levels))
        logits, encoded = self.box_head(self.align(pyramid, regions, BOX_CELLS))
        probabilities = tf.nn.softmax(logits)[..., 1:]
        scores, top_indices = top_k(tf.reduce_max(probabilities, axis=-1), self.settings["detections"])
        boxes = decode_boxes(
            take_rows(encoded, top_indices), take_rows(regions, top_indices), self.settings["image_pixels"]
        )
        labels = take_rows(tf.argmax(probabilities, axis=-1, output_type=tf.int32), top_indices) + 1
        masks = self.mask_head(self.align(pyramid, boxes, MASK_CELLS), labels) > 0
        return {"boxes": boxes, "labels": labels, "scores": suppress_overlaps(boxes, scores, 0.5), "masks": masks}
