# SPDX-License-Identifier: Apache-2.0
"""Mask R-CNN: backbone with feature pyramid, region proposals, RoIAlign, box head and mask head."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from anchors import PYRAMID_ANCHORS_PER_CELL, PYRAMID_STRIDES, make_pyramid_anchors

from .boxes import (
    compute_iou,
    decode_boxes,
    encode_boxes,
    smooth_l1,
    suppress_overlaps,
    take_rows,
)
from .resnet50 import EXPANSION, Backbone
from .roi_align import RoiAlign, crop_masks

BOX_CELLS = 7
MASK_CELLS = 14
MASK_CONVOLUTIONS = 4


class Pyramid(nn.Module):
    """Feature pyramid: each level adds the upsampled level above."""

    def __init__(self, widths: list[int], outputs: int) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(width, outputs, 1) for width in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(outputs, outputs, 3, padding=1) for _ in widths)

    def forward(self, features: list[torch.Tensor]) -> list[torch.Tensor]:
        levels = [lateral(feature) for lateral, feature in zip(self.lateral, features)]
        for number in reversed(range(len(levels) - 1)):
            levels[number] = levels[number] + functional.interpolate(levels[number + 1], scale_factor=2)
        return [smooth(level) for smooth, level in zip(self.smooth, levels)]


class ProposalHead(nn.Module):
    """Objectness and encoded box of each anchor."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.objectness = nn.Conv2d(width, PYRAMID_ANCHORS_PER_CELL, 1)
        self.boxes = nn.Conv2d(width, PYRAMID_ANCHORS_PER_CELL * 4, 1)

    def forward(self, levels: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        objectness, boxes = [], []
        for level in levels:
            x = torch.relu(self.conv(level))
            objectness.append(self.objectness(x).permute(0, 2, 3, 1).flatten(1))
            boxes.append(self.boxes(x).permute(0, 2, 3, 1).reshape(len(x), -1, 4))
        return torch.cat(objectness, dim=1), torch.cat(boxes, dim=1)


class BoxHead(nn.Module):
    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(inputs, width)
        self.linear2 = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes + 1)
        self.boxes = nn.Linear(width, 4)

    def forward(self, regions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.linear2(torch.relu(self.linear1(regions.flatten(2)))))
        return self.classifier(x), self.boxes(x)


class MaskHead(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(MASK_CONVOLUTIONS))
        self.upsampled = nn.Conv2d(width, width, 3, padding=1)
        self.output = nn.Conv2d(width, classes + 1, 1)

    def forward(self, regions: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Logits of the mask of each region for its class: (batch, regions, height, width)."""
        x = regions.flatten(0, 1).permute(0, 3, 1, 2)
        for conv in self.convs:
            x = torch.relu(conv(x))
        x = self.output(torch.relu(self.upsampled(functional.interpolate(x, scale_factor=2))))
        x = x.unflatten(0, labels.shape)
        index = labels[..., None, None, None].expand(*labels.shape, 1, *x.shape[-2:])
        return x.gather(2, index).squeeze(2)


class Network(nn.Module):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        self.settings, width = settings, settings["pyramid_width"]
        self.backbone = Backbone(settings["width"], settings["blocks"])
        self.pyramid = Pyramid([settings["width"] * 2**number * EXPANSION for number in range(4)], width)
        self.proposal_head = ProposalHead(width)
        self.box_head = BoxHead(width * BOX_CELLS**2, settings["box_width"], settings["classes"])
        self.mask_head = MaskHead(width, settings["classes"])
        self.roi_align = RoiAlign(settings["image_pixels"], PYRAMID_STRIDES)
        anchors = torch.from_numpy(make_pyramid_anchors(settings["image_pixels"]))
        self.register_buffer("anchors", anchors, persistent=False)

    def propose(self, objectness: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        """The boxes with the highest scores after suppression, without gradients."""
        scores, top_indices = objectness.detach().sigmoid().topk(self.settings["candidates"], dim=1)
        boxes = decode_boxes(
            take_rows(encoded.detach(), top_indices), self.anchors[top_indices], self.settings["image_pixels"]
        )
        scores = suppress_overlaps(boxes, scores, 0.7)
        return take_rows(boxes, scores.topk(self.settings["proposals"], dim=1).indices)

    def compute_proposal_loss(self, objectness: torch.Tensor, encoded: torch.Tensor, batch: dict) -> torch.Tensor:
        """Positive and negative anchors have equal weight; ignored ones have none."""
        classes = batch["anchor_classes"]
        is_positive, is_negative = (classes > 0).float(), (classes == 0).float()
        losses = functional.binary_cross_entropy_with_logits(objectness, is_positive, reduction="none")
        positives = is_positive.sum()
        box_losses = smooth_l1(encoded - batch["anchor_boxes"])
        balanced = (losses * is_positive).sum() / positives + (losses * is_negative).sum() / is_negative.sum()
        return balanced / 2 + (box_losses * is_positive).sum() / positives

    def compute_region_loss(self, pyramid: torch.Tensor, proposals: torch.Tensor, batch: dict) -> torch.Tensor:
        """Losses of classes, boxes and masks. The true boxes are added to the proposals."""
        regions = torch.cat([proposals, batch["boxes"]], dim=1)
        overlaps, matches = compute_iou(regions, batch["boxes"]).max(dim=2)
        is_positive = overlaps >= 0.5
        labels = torch.where(is_positive, batch["labels"].gather(1, matches), 0)
        logits, encoded = self.box_head(self.roi_align(pyramid, regions, BOX_CELLS))
        class_loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        targets = encode_boxes(take_rows(batch["boxes"], matches), regions)
        box_loss = (smooth_l1(encoded - targets) * is_positive).sum() / is_positive.sum()

        overlaps, mask_region_indices = overlaps.topk(self.settings["mask_regions"], dim=1)
        boxes, matches, labels = (take_rows(values, mask_region_indices) for values in (regions, matches, labels))
        mask_logits = self.mask_head(self.roi_align(pyramid, boxes, MASK_CELLS), labels)
        masks = crop_masks(batch["masks"], boxes, matches, mask_logits.shape[-1])
        losses = functional.binary_cross_entropy_with_logits(mask_logits, masks, reduction="none").mean(dim=(2, 3))
        counts = (overlaps >= 0.5).float()
        return class_loss + box_loss + (losses * counts).sum() / counts.sum()

    def compute_loss(self, batch: dict) -> torch.Tensor:
        levels = self.pyramid(self.backbone(batch["images"]))
        objectness, encoded = self.proposal_head(levels)
        pyramid = self.roi_align.flatten_levels(levels)
        region_loss = self.compute_region_loss(pyramid, self.propose(objectness, encoded), batch)
        return self.compute_proposal_loss(objectness, encoded, batch) + region_loss

    def predict(self, batch: dict) -> dict:
        levels = self.pyramid(self.backbone(batch["images"]))
        pyramid = self.roi_align.flatten_levels(levels)
        regions = self.propose(*self.proposal_head(levels))
        logits, encoded = self.box_head(self.roi_align(pyramid, regions, BOX_CELLS))
        scores, labels = logits.softmax(dim=-1)[..., 1:].max(dim=-1)
        scores, top_indices = scores.topk(self.settings["detections"], dim=1)
        boxes = decode_boxes(
            take_rows(encoded, top_indices), take_rows(regions, top_indices), self.settings["image_pixels"]
        )
        labels = take_rows(labels, top_indices) + 1
        masks = self.mask_head(self.roi_align(pyramid, boxes, MASK_CELLS), labels) > 0
        return {"boxes": boxes, "labels": labels, "scores": suppress_overlaps(boxes, scores, 0.5), "masks": masks}
