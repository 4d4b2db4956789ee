# SPDX-License-Identifier: Apache-2.0
"""RoIAlign over a feature pyramid: one bilinear sample in each cell of a region."""

from __future__ import annotations

import torch
from torch import nn

CANONICAL_PIXELS = 224  # a region of this size belongs to the third level, in an image of CANONICAL_IMAGE_PIXELS
CANONICAL_IMAGE_PIXELS = 800
CANONICAL_LEVEL = 2


def make_cell_centers(boxes: torch.Tensor, cells: int) -> tuple[torch.Tensor, torch.Tensor]:
    """y and x of the centers of a grid in each box: (batch, boxes, cells)."""
    fractions = (torch.arange(cells, device=boxes.device) + 0.5) / cells
    top, left_edge, bottom_edge, right_edge = (edge[..., None] for edge in boxes.unbind(dim=-1))
    return top + (bottom_edge - top) * fractions, left_edge + (right_edge - left_edge) * fractions


class RoiAlign(nn.Module):
    def __init__(self, image_pixels: int, strides: tuple[int, ...]) -> None:
        super().__init__()
        sides = [image_pixels // stride for stride in strides]
        starts = [sum(side * side for side in sides[:number]) for number in range(len(sides))]
        self.canonical_pixels = CANONICAL_PIXELS * image_pixels / CANONICAL_IMAGE_PIXELS
        for name, values in (("sides", sides), ("starts", starts), ("strides", strides)):
            self.register_buffer(name, torch.tensor(values), persistent=False)

    @staticmethod
    def flatten_levels(levels: list[torch.Tensor]) -> torch.Tensor:
        """All levels as (batch, cells of all levels, width)."""
        return torch.cat([level.flatten(2) for level in levels], dim=2).transpose(1, 2)

    def choose_levels(self, boxes: torch.Tensor) -> torch.Tensor:
        size = (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1).clamp(min=1).sqrt()
        levels = CANONICAL_LEVEL + torch.log2(size / self.canonical_pixels)
        return levels.floor().clamp(0, len(self.sides) - 1).long()

    def forward(self, pyramid: torch.Tensor, boxes: torch.Tensor, cells: int) -> torch.Tensor:
        """Features of each box: (batch, boxes, cells, cells, width)."""
        levels = self.choose_levels(boxes)
        side, start, stride = (table[levels][..., None] for table in (self.sides, self.starts, self.strides))
        y, x = (center / stride - 0.5 for center in make_cell_centers(boxes, cells))
        y, x = (torch.minimum(place.clamp(min=0), side - 1.0) for place in (y, x))
        y0, x0 = y.floor().long(), x.floor().long()
        y1, x1 = torch.minimum(y0 + 1, side - 1), torch.minimum(x0 + 1, side - 1)
        y_weight, x_weight = (y - y0)[..., :, None, None], (x - x0)[..., None, :, None]
        count, length, width = pyramid.shape
        table = pyramid.reshape(count * length, width)
        start = start + torch.arange(count, device=boxes.device)[:, None, None] * length

        def take(row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
            index = (start + row * side)[..., :, None] + column[..., None, :]
            return table.index_select(0, index.flatten()).reshape(*index.shape, width)

        upper_values = take(y0, x0) * (1 - x_weight) + take(y0, x1) * x_weight
        lower = take(y1, x0) * (1 - x_weight) + take(y1, x1) * x_weight
        return upper_values * (1 - y_weight) + lower * y_weight


def crop_masks(masks: torch.Tensor, boxes: torch.Tensor, matches: torch.Tensor, cells: int) -> torch.Tensor:
    """The matched mask inside of each box, at the nearest pixels: (batch, boxes, cells, cells)."""
    count, objects, height, width = masks.shape
    y, x = make_cell_centers(boxes, cells)
    row, column = y.long().clamp(0, height - 1), x.long().clamp(0, width - 1)
    mask_index = torch.arange(count, device=boxes.device)[:, None] * objects + matches
    index = (mask_index[..., None] * height + row)[..., :, None] * width + column[..., None, :]
    return masks.flatten()[index]
