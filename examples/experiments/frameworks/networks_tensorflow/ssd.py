# SPDX-License-Identifier: Apache-2.0
"""SSD: a single-shot detector on four feature maps of a small convolutional backbone."""

from __future__ import annotations

import keras
import tensorflow as tf

from anchors import SSD_ANCHORS_PER_CELL, SSD_STRIDES, make_ssd_anchors

from .boxes import decode_boxes, smooth_l1, suppress_overlaps, take_rows
from .layers import ConvNorm, cross_entropy, make_convolution

NEGATIVES_PER_POSITIVE = 3


class Network(keras.Model):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        width, self.settings = settings["width"], settings
        self.class_count = settings["classes"] + 1  # and background
        self.stem = [ConvNorm("stem.0", width, 3, stride=2), ConvNorm("stem.1", 2 * width, 3, stride=2)]
        self.levels, self.class_heads, self.box_heads = [], [], []
        for i in range(len(SSD_STRIDES)):
            downsampling_convolution = ConvNorm(f"levels.{i}.0", 4 * width, 3, stride=2)
            self.levels.append([downsampling_convolution, ConvNorm(f"levels.{i}.1", 4 * width, 3)])
            self.class_heads.append(make_convolution(f"class_heads.{i}", SSD_ANCHORS_PER_CELL * self.class_count, 3))
            self.box_heads.append(make_convolution(f"box_heads.{i}", SSD_ANCHORS_PER_CELL * 4, 3))
        self.anchors = make_ssd_anchors(settings["image_pixels"])

    def detect(self, images: tf.Tensor, training: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """Class logits and encoded box of each anchor."""
        x = images
        for layer in self.stem:
            x = layer(x, training=training)
        logits, boxes = [], []
        for level, class_head, box_head in zip(self.levels, self.class_heads, self.box_heads):
            for layer in level:
                x = layer(x, training=training)
            logits.append(tf.reshape(class_head(x), (x.shape[0], -1, self.class_count)))
            boxes.append(tf.reshape(box_head(x), (x.shape[0], -1, 4)))
        return tf.concat(logits, axis=1), tf.concat(boxes, axis=1)

    def compute_training_loss(self, batch: dict) -> tf.Tensor:
        logits, boxes = self.detect(batch["images"], training=True)
        classes = batch["anchor_classes"]
        is_positive = classes > 0
        class_losses = cross_entropy(logits, classes)
        # Of the negative anchors only those with the largest losses count.
        negative_losses = tf.where(is_positive, 0.0, tf.stop_gradient(class_losses))
        order = tf.argsort(negative_losses, axis=1, direction="DESCENDING", stable=True)
        ranks = tf.argsort(order, axis=1)
        positives = tf.reduce_sum(tf.cast(is_positive, tf.int32), axis=1, keepdims=True)
        is_counted = tf.cast(is_positive | (ranks < NEGATIVES_PER_POSITIVE * positives), tf.float32)
        box_losses = smooth_l1(boxes - batch["anchor_boxes"]) * tf.cast(is_positive, tf.float32)
        return tf.reduce_sum(class_losses * is_counted + box_losses) / tf.cast(tf.reduce_sum(positives), tf.float32)

    def infer(self, batch: dict) -> dict:
        logits, encoded = self.detect(batch["images"], training=False)
        probabilities = tf.nn.softmax(logits)[..., 1:]
        scores, top_indices = tf.math.top_k(tf.reduce_max(probabilities, axis=-1), self.settings["detections"])
        boxes = decode_boxes(
            take_rows(encoded, top_indices), tf.gather(self.anchors, top_indices), self.settings["image_pixels"]
        )
        labels = take_rows(tf.argmax(probabilities, axis=-1), top_indices) + 1
        return {"boxes": boxes, "labels": labels, "scores": suppress_overlaps(boxes, scores, 0.5)}
