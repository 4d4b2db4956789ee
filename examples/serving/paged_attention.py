# SPDX-License-Identifier: Apache-2.0
"""Attention of requests that decode one token each, over a paged KV cache. With Triton where it is installed and the
tensors are on a GPU: reads each request's own context once, whatever the others' lengths are, and has no shape that
depends on the lengths, so it can be part of a CUDA graph. Otherwise with PyTorch, over copies padded to the longest
context.
"""

from __future__ import annotations

import math

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # on machines without a GPU
    triton = None

TILE_TOKENS = 64  # tokens that a thread block reads at once
CONTEXT_SPLIT_COUNT = (
    8  # parts of a context, computed in parallel: otherwise few long contexts leave most of a GPU idle
)


def attend_with_torch(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, slots: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """`query`: requests x heads x size. `keys`, `values`: KV heads x slots of the cache x size. `slots`: requests x
    longest context. Returns requests x (heads x size)."""
    count, max_context_length = slots.shape
    kv_heads, _, size = keys.shape
    key = keys[:, slots.flatten()].view(kv_heads, count, max_context_length, size)
    value = values[:, slots.flatten()].view(kv_heads, count, max_context_length, size)
    grouped = query.view(count, kv_heads, -1, size).transpose(0, 1)  # KV heads x requests x heads of a group x size
    is_padding = torch.arange(max_context_length, device=lengths.device) >= lengths[:, None]
    scores = (grouped @ key.transpose(2, 3)) / math.sqrt(size)
    scores = scores.masked_fill(is_padding[None, :, None, :], -torch.inf)
    attention_output = torch.softmax(scores.float(), dim=-1).to(value.dtype) @ value
    return attention_output.transpose(0, 1).reshape(count, -1)


def attend_with_triton(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    table: torch.Tensor,
    rows: torch.Tensor,
    lengths: torch.Tensor,
    block: int,
) -> torch.Tensor:
    """As above; slots are found through the row of each request in the block table, whose blocks have `block` tokens."""
    count, heads, size = query.shape
    kv_heads, slots, _ = keys.shape
    query = query.contiguous()
    partial_outputs = torch.empty(count, heads, CONTEXT_SPLIT_COUNT, size, device=query.device, dtype=torch.float32)
    sums = torch.empty(count, heads, CONTEXT_SPLIT_COUNT, 2, device=query.device, dtype=torch.float32)
    attention_output = torch.empty(count, heads * size, device=query.device, dtype=query.dtype)
    group = heads // kv_heads
    _attend_to_split[(count, kv_heads, CONTEXT_SPLIT_COUNT)](
        query, keys, values, table, rows, lengths, partial_outputs, sums, table.shape[1], slots, 1 / math.sqrt(size),
        heads, group, max(16, triton.next_power_of_2(group)), size, block, TILE_TOKENS, CONTEXT_SPLIT_COUNT,
    )  # fmt: skip
    _merge_splits[(count, heads)](partial_outputs, sums, attention_output, heads, size, CONTEXT_SPLIT_COUNT)
    return attention_output


if triton is not None:

    @triton.jit
    def _attend_to_split(
        query, keys, values, table, rows, lengths, partial_outputs, sums, table_columns, slots, scale,
        heads: tl.constexpr, group: tl.constexpr, padded_group_size: tl.constexpr, size: tl.constexpr,
        block: tl.constexpr, tile: tl.constexpr, split_count: tl.constexpr,
    ):  # fmt: skip
        """The attention of the heads of one KV head of one request to one part of its context; not normalized."""
        request, kv_head, split_index = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64), tl.program_id(2)
        row, length = tl.load(rows + request), tl.load(lengths + request)
        tokens = tl.cdiv(tl.cdiv(length, split_count), tile) * tile
        begin = split_index * tokens
        end = tl.minimum(begin + tokens, length)
        member, element = tl.arange(0, padded_group_size), tl.arange(0, size)
        head = kv_head * group + member
        is_group_member = (member < group)[:, None]
        query_vectors = tl.load(
            query + (request * heads + head)[:, None] * size + element[None, :], mask=is_group_member, other=0
        )
        running_max_score = tl.full([padded_group_size], -float("inf"), tl.float32)
        total = tl.zeros([padded_group_size], tl.float32)
        attention_output = tl.zeros([padded_group_size, size], tl.float32)
        for tile_begin in range(begin, end, tile):
            position = tile_begin + tl.arange(0, tile)
            is_inside = position < end
            number = tl.load(table + row * table_columns + position // block, mask=is_inside, other=0)
            slot = kv_head * slots + number * block + position % block
            places = slot[:, None] * size + element[None, :]
            key = tl.load(keys + places, mask=is_inside[:, None], other=0)
            value = tl.load(values + places, mask=is_inside[:, None], other=0)
            scores = tl.where(is_inside[None, :], tl.dot(query_vectors, tl.trans(key)) * scale, -float("inf"))
            updated_max_score = tl.maximum(running_max_score, tl.max(scores, 1))
            weights = tl.exp(scores - updated_max_score[:, None])
            factor = tl.exp(running_max_score - updated_max_score)
            total = total * factor + tl.sum(weights, 1)
            attention_output = attention_output * factor[:, None] + tl.dot(weights.to(value.dtype), value)
            running_max_score = updated_max_score
        part = ((request * heads + head) * split_count + split_index)[:, None]
        tl.store(partial_outputs + part * size + element[None, :], attention_output, mask=is_group_member)
        tl.store(sums + part * 2, running_max_score[:, None], mask=is_group_member)
        tl.store(sums + part * 2 + 1, total[:, None], mask=is_group_member)

    @triton.jit
    def _merge_splits(
        partial_outputs, sums, attention_output, heads: tl.constexpr, size: tl.constexpr, split_count: tl.constexpr
    ):
        request, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
        split_indices, element = tl.arange(0, split_count), tl.arange(0, size)
        part = (request * heads + head) * split_count + split_indices
        max_scores, total = tl.load(sums + part * 2), tl.load(sums + part * 2 + 1)
        weights = tl.exp(max_scores - tl.max(max_scores, 0))
        values = tl.load(partial_outputs + part[:, None] * size + element[None, :])
        merged_output = tl.sum(values * weights[:, None], 0) / tl.sum(total * weights, 0)
        tl.store(
            attention_output + (request * heads + head) * size + element,
            merged_output.to(attention_output.dtype.element_ty),
        )
