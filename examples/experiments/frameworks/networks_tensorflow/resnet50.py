# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 (v1.5: the 3 x 3 convolution has the stride), also the backbone of Mask R-CNN."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers

from .layers import Composite, ConvNorm, Pool, cross_entropy

EXPANSION = 4


class Bottleneck(Composite):
    def __init__(self, name: str, width: int, stride: int, has_projection: bool) -> None:
        super().__init__(name)
        outputs = width * EXPANSION
        self.conv1 = ConvNorm(f"{name}.conv1", width, 1)
        self.conv2 = ConvNorm(f"{name}.conv2", width, 3, stride)
        self.conv3 = ConvNorm(f"{name}.conv3", outputs, 1, has_relu=False)
        self.shortcut = ConvNorm(f"{name}.shortcut", outputs, 1, stride, has_relu=False) if has_projection else None

    def call(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        shortcut = self.shortcut(x, training=training) if self.shortcut else x
        x = self.conv2(self.conv1(x, training=training), training=training)
        return tf.nn.relu(self.conv3(x, training=training) + shortcut)


class Backbone(Composite):
    """Feature maps with strides 4, 8, 16 and 32."""

    def __init__(self, width: int, blocks: tuple[int, ...]) -> None:
        super().__init__("backbone")
        self.stem = ConvNorm("backbone.stem", width, 7, stride=2)
        self.pool = Pool("backbone.pool")
        self.stages = []
        for number, count in enumerate(blocks):
            self.stages.append(
                [
                    Bottleneck(
                        f"backbone.stages.{number}.{index}",
                        width * 2**number,
                        stride=2 if number > 0 and index == 0 else 1,
                        has_projection=index == 0,
                    )
                    for index in range(count)
                ]
            )

    def call(self, images: tf.Tensor, training: bool) -> list[tf.Tensor]:
        x = self.pool(self.stem(images, training=training))
        features = []
        for stage in self.stages:
            for block in stage:
                x = block(x, training=training)
            features.append(x)
        return features


class Network(keras.Model):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        self.backbone = Backbone(settings["width"], settings["blocks"])
        self.classifier = layers.Dense(settings["classes"], name="classifier")

    def classify(self, images: tf.Tensor, training: bool) -> tf.Tensor:
        return self.classifier(tf.reduce_mean(self.backbone(images, training=training)[-1], axis=(1, 2)))

    def compute_training_loss(self, batch: dict) -> tf.Tensor:
        return tf.reduce_mean(cross_entropy(self.classify(batch["images"], training=True), batch["labels"]))

    def infer(self, batch: dict) -> dict:
        return {"labels": tf.argmax(self.classify(batch["images"], training=False), axis=1)}
