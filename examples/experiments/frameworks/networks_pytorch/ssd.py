# SPDX-License-Identifier: Apache-2.0
"""SSD: a single-shot detector on four feature maps of a small convolutional backbone."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from anchors import SSD_ANCHORS_PER_CELL, SSD_STRIDES, make_ssd_anchors

from .boxes import decode_boxes, smooth_l1, suppress_overlaps, take_rows
from .layers import ConvNorm

NEGATIVES_PER_POSITIVE = 3


class Network(nn.Module):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        width, self.settings = settings["width"], settings
        self.class_count = settings["classes"] + 1  # and background
        self.stem = nn.Sequential(ConvNorm(3, width, 3, stride=2), ConvNorm(width, 2 * width, 3, stride=2))
        self.levels, self.class_heads, self.box_heads = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        inputs = 2 * width
        for _ in SSD_STRIDES:
            outputs = 4 * width
            self.levels.append(nn.Sequential(ConvNorm(inputs, outputs, 3, stride=2), ConvNorm(outputs, outputs, 3)))
            self.class_heads.append(nn.Conv2d(outputs, SSD_ANCHORS_PER_CELL * self.class_count, 3, padding=1))
            self.box_heads.append(nn.Conv2d(outputs, SSD_ANCHORS_PER_CELL * 4, 3, padding=1))
            inputs = outputs
        anchors = torch.from_numpy(make_ssd_anchors(settings["image_pixels"]))
        self.register_buffer("anchors", anchors, persistent=False)

    def detect(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Class logits and encoded box of each anchor."""
        x = self.stem(images)
        logits, boxes = [], []
        for level, class_head, box_head in zip(self.levels, self.class_heads, self.box_heads):
            x = level(x)
            logits.append(class_head(x).permute(0, 2, 3, 1).reshape(len(x), -1, self.class_count))
            boxes.append(box_head(x).permute(0, 2, 3, 1).reshape(len(x), -1, 4))
        return torch.cat(logits, dim=1), torch.cat(boxes, dim=1)

    def compute_loss(self, batch: dict) -> torch.Tensor:
        logits, boxes = self.detect(batch["images"])
        classes = batch["anchor_classes"]
        is_positive = classes > 0
        class_losses = functional.cross_entropy(logits.transpose(1, 2), classes, reduction="none")
        # Of the negative anchors only those with the largest losses count.
        negative_losses = class_losses.detach().masked_fill(is_positive, 0)
        ranks = negative_losses.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        positives = is_positive.sum(dim=1, keepdim=True)
        is_counted = is_positive | (ranks < NEGATIVES_PER_POSITIVE * positives)
        box_losses = smooth_l1(boxes - batch["anchor_boxes"])
        return (class_losses * is_counted + box_losses * is_positive).sum() / positives.sum()

    def predict(self, batch: dict) -> dict:
        logits, encoded = self.detect(batch["images"])
        scores, labels = logits.softmax(dim=-1)[..., 1:].max(dim=-1)
        scores, top_indices = scores.topk(self.settings["detections"], dim=1)
        boxes = decode_boxes(take_rows(encoded, top_indices), self.anchors[top_indices], self.settings["image_pixels"])
        return {
            "boxes": boxes,
            "labels": take_rows(labels, top_indices) + 1,
            "scores": suppress_overlaps(boxes, scores, 0.5),
        }
