# SPDX-License-Identifier: Apache-2.0
"""A small serving engine: continuous batching, chunked prefill, paged KV cache, preemption by recomputation, around a
Llama-shaped network with random weights. Reports its steps with `jm.engine_step`, so that `joulemap report --by request`
shows what each request cost. Runs on a CPU and on a GPU (bf16).

    engine = Engine(SHAPES["tiny"], device="cpu")
    engine.submit(Request("r1", prompt=[1, 2, 3], max_new_tokens=8, tenant="acme"))
    while engine.has_work():
        for request in engine.step():
            print(request.id, request.output)
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Optional

import torch
from torch.nn import functional

try:
    import joulemap as jm
except ImportError:  # the engine also runs without joulemap
    jm = None


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


SHAPES = {
    "tiny": Shape(hidden=256, layers=2, heads=8, kv_heads=2, intermediate=688, vocabulary=1024),
    "1b": Shape(hidden=2048, layers=16, heads=32, kv_heads=8, intermediate=8192, vocabulary=128256),  # Llama 3.2 1B
    "8b": Shape(hidden=4096, layers=32, heads=32, kv_heads=8, intermediate=14336, vocabulary=128256),  # Llama 3.1 8B
}


@dataclasses.dataclass
class Request:
    id: str
    prompt: list[int]
    max_new_tokens: int
    tenant: Optional[str] = None
    output: list[int] = dataclasses.field(default_factory=list)
    computed: int = 0  # tokens whose keys and values are in the cache
    blocks: list[int] = dataclasses.field(default_factory=list)
    row: Optional[int] = None  # of the block table

    @property
    def tokens(self) -> list[int]:
        return self.prompt + self.output

    @property
    def is_finished(self) -> bool:
        return len(self.output) >= self.max_new_tokens


class PagedCache:
    """Keys and values of all layers, in blocks of tokens that requests allocate and free. The block table on the device
    has a row for each request: the numbers of its blocks."""

    BLOCK = 16

    def __init__(self, shape: Shape, blocks: int, requests: int, device: str, dtype: torch.dtype) -> None:
        size = (shape.layers, shape.kv_heads, blocks * self.BLOCK, shape.head_size)
        self.keys = torch.zeros(size, device=device, dtype=dtype)
        self.values = torch.zeros(size, device=device, dtype=dtype)
        self.free = list(range(blocks))
        self.table = torch.zeros((requests, blocks), device=device, dtype=torch.int64)
        self.free_rows = list(range(requests))
        self.allocated: dict[tuple[int, int], int] = {}  # blocks that are not in the table yet, by row and column

    def reserve(self, request: Request, tokens: int) -> bool:
        """Allocates blocks for so many tokens; False if there are too few."""
        missing = math.ceil(tokens / self.BLOCK) - len(request.blocks)
        if missing > len(self.free):
            return False
        if request.row is None:
            request.row = self.free_rows.pop()
        for _ in range(missing):
            self.allocated[request.row, len(request.blocks)] = self.free[-1]
            request.blocks.append(self.free.pop())
        return True

    def release(self, request: Request) -> None:
        self.free += request.blocks
        if request.row is not None:
            self.free_rows.append(request.row)
        request.blocks, request.computed, request.row = [], 0, None

    def update_table(self) -> None:
        if self.allocated:
            places = torch.tensor([*self.allocated], device=self.table.device)
            self.table[places[:, 0], places[:, 1]] = torch.tensor([*self.allocated.values()], device=self.table.device)
            self.allocated = {}

    def slots(self, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Indices into keys and values."""
        return self.table[rows, positions // self.BLOCK] * self.BLOCK + positions % self.BLOCK


class Network(torch.nn.Module):
    """Weights of a Llama-shaped network, random. The forward pass takes the tokens of all requests of a step at once."""

    def __init__(self, shape: Shape, device: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.shape = shape

        def weight(rows: int, columns: int) -> torch.nn.Parameter:
            values = torch.empty(rows, columns, device=device, dtype=dtype).normal_(0, 1 / math.sqrt(columns))
            return torch.nn.Parameter(values, requires_grad=False)

        width = (shape.heads + 2 * shape.kv_heads) * shape.head_size
        self.embedding = weight(shape.vocabulary, shape.hidden)
        self.attention_in = torch.nn.ParameterList(weight(width, shape.hidden) for _ in range(shape.layers))
        self.attention_out = torch.nn.ParameterList(weight(shape.hidden, shape.hidden) for _ in range(shape.layers))
        self.gate_up = torch.nn.ParameterList(weight(2 * shape.intermediate, shape.hidden) for _ in range(shape.layers))
        self.down = torch.nn.ParameterList(weight(shape.hidden, shape.intermediate) for _ in range(shape.layers))
        self.unembedding = weight(shape.vocabulary, shape.hidden)
        exponents = torch.arange(0, shape.head_size, 2, device=device) / shape.head_size
        self.frequencies = 500_000.0**-exponents

    def rotate(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        angles = positions[:, None, None] * self.frequencies
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def forward(self, batch: Batch, cache: PagedCache) -> torch.Tensor:
        """Returns the next token of each request of the batch."""
        shape = self.shape
        norm = (shape.hidden,)
        x = functional.embedding(batch.tokens, self.embedding)
        for layer in range(shape.layers):
            mixed = functional.linear(functional.rms_norm(x, norm), self.attention_in[layer])
            mixed = mixed.view(len(x), -1, shape.head_size)
            query, key, value = mixed.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
            query, key = self.rotate(query, batch.positions), self.rotate(key, batch.positions)
            cache.keys[layer].index_copy_(1, batch.slots, key.transpose(0, 1))
            cache.values[layer].index_copy_(1, batch.slots, value.transpose(0, 1))
            attended = torch.empty(len(x), shape.hidden, device=x.device, dtype=x.dtype)
            for group in batch.groups:
                attended[group.rows] = group.attend(query[group.rows], cache.keys[layer], cache.values[layer])
            x = x + functional.linear(attended, self.attention_out[layer])
            gate, up = functional.linear(functional.rms_norm(x, norm), self.gate_up[layer]).chunk(2, dim=-1)
            x = x + functional.linear(functional.silu(gate) * up, self.down[layer])
        logits = functional.linear(functional.rms_norm(x[batch.last_rows], norm), self.unembedding)
        return logits.argmax(dim=-1)


class PrefillGroup:
    """The attention of one prompt, or a chunk of it."""

    def __init__(self, rows: slice, slots: torch.Tensor, begin: int) -> None:
        self.rows, self.slots = rows, slots
        count, context = rows.stop - rows.start, len(slots)
        self.mask = None
        if begin > 0:
            row = torch.arange(begin, begin + count, device=slots.device)
            self.mask = row[:, None] >= torch.arange(context, device=slots.device)

    def attend(self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        repeats = query.shape[1] // keys.shape[0]
        key = keys[:, self.slots].repeat_interleave(repeats, dim=0)
        value = values[:, self.slots].repeat_interleave(repeats, dim=0)
        attended = functional.scaled_dot_product_attention(
            query.transpose(0, 1)[None], key[None], value[None], self.mask, is_causal=self.mask is None
        )
        return attended[0].transpose(0, 1).flatten(1)


class DecodeGroup:
    """The attention of requests that decode one token each, with contexts of similar length."""

    def __init__(self, rows: torch.Tensor, slots: torch.Tensor, is_padding: torch.Tensor) -> None:
        self.rows, self.slots, self.is_padding = rows, slots, is_padding  # slots: requests x longest context

    def attend(self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        count, longest = self.slots.shape
        kv_heads, size = keys.shape[0], keys.shape[2]
        key = keys[:, self.slots.flatten()].view(kv_heads, count, longest, size)
        value = values[:, self.slots.flatten()].view(kv_heads, count, longest, size)
        grouped = query.view(count, kv_heads, -1, size).transpose(0, 1)  # kv_heads x requests x queries x size
        scores = (grouped @ key.transpose(2, 3)) / math.sqrt(size)
        scores = scores.masked_fill(self.is_padding[None, :, None, :], -torch.inf)
        attended = torch.softmax(scores.float(), dim=-1).to(value.dtype) @ value
        return attended.transpose(0, 1).reshape(count, -1)


class Batch:
    """The tokens of one step: for each request the next chunk of its tokens."""

    def __init__(self, chunks: list[tuple[Request, int]], cache: PagedCache, device: str) -> None:
        cache.update_table()
        tokens: list[int] = []
        positions: list[int] = []
        table_rows: list[int] = []
        last_rows: list[int] = []
        self.groups: list = []
        decoding: dict[int, list[tuple[int, Request]]] = collections.defaultdict(list)  # by bits of the context length
        for request, count in chunks:
            begin, end = request.computed, request.computed + count
            row = len(tokens)
            tokens += request.tokens[begin:end]
            positions += range(begin, end)
            table_rows += [request.row] * count
            last_rows.append(len(tokens) - 1)
            if count == 1:
                decoding[end.bit_length()].append((row, request))
            else:
                context = torch.arange(end, device=device)
                slots = cache.slots(torch.tensor(request.row, device=device), context)
                self.groups.append(PrefillGroup(slice(row, row + count), slots, begin))
        for members in decoding.values():
            rows, table, lengths = torch.tensor(
                [(row, request.row, request.computed + 1) for row, request in members]
            ).T.to(device)
            context = torch.arange(max(request.computed + 1 for _, request in members), device=device)
            is_padding = context >= lengths[:, None]
            self.groups.append(DecodeGroup(rows, cache.slots(table[:, None], context), is_padding))
        self.tokens, self.positions, table = torch.tensor([tokens, positions, table_rows], device=device)
        self.slots = cache.slots(table, self.positions)
        self.last_rows = torch.tensor(last_rows, device=device)


class Engine:
    """Serves requests: each step computes the next token of every running request, and chunks of waiting prompts."""

    def __init__(
        self,
        shape: Shape,
        device: str = "cpu",
        cache_blocks: int = 512,
        most_requests: int = 64,
        chunk_tokens: int = 2048,
        seed: int = 0,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        torch.manual_seed(seed)
        dtype = dtype or (torch.bfloat16 if device.startswith("cuda") else torch.float32)
        self.network = Network(shape, device, dtype)
        self.cache = PagedCache(shape, cache_blocks, 4 * most_requests, device, dtype)
        self.device, self.most_requests, self.chunk_tokens = device, most_requests, chunk_tokens
        self.waiting: collections.deque[Request] = collections.deque()
        self.running: list[Request] = []
        self.steps = 0

    def submit(self, request: Request) -> None:
        needed = math.ceil((len(request.prompt) + request.max_new_tokens) / PagedCache.BLOCK)
        blocks = len(self.cache.free) + sum(len(one.blocks) for one in self.running)
        if not request.prompt or request.max_new_tokens < 1 or needed > blocks:
            raise ValueError(f"request {request.id} needs a prompt, and at most {blocks} cache blocks, not {needed}")
        self.waiting.append(request)

    def abort(self, id: str) -> None:
        for request in [*self.running, *self.waiting]:
            if request.id == id:
                (self.running if request in self.running else self.waiting).remove(request)
                if jm and (request.computed or request.output):
                    jm.engine_event(id, "aborted")
                self.cache.release(request)

    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    def _schedule(self) -> tuple[list[tuple[Request, int]], list[Request]]:
        """The chunks of the next step, and the requests that lose their cache to make room for them."""
        preempted: list[Request] = []
        chunks: list[tuple[Request, int]] = []
        budget = self.chunk_tokens
        while self.waiting and len(self.running) < self.most_requests:
            if not self.cache.reserve(self.waiting[0], min(len(self.waiting[0].tokens), self.chunk_tokens)):
                break
            self.running.append(self.waiting.popleft())
        for request in list(self.running):
            missing = len(request.tokens) - request.computed
            count = min(missing, budget) if missing > 1 else missing
            if count == 0 or request in preempted:
                continue
            while not self.cache.reserve(request, request.computed + count):
                last = self.running.pop()
                self.cache.release(last)
                self.waiting.appendleft(last)
                preempted.append(last)
                if last is request:
                    break
            if request in preempted:
                continue
            chunks.append((request, count))
            budget -= count if missing > 1 else 0
        return [chunk for chunk in chunks if chunk[0] not in preempted], preempted

    @torch.inference_mode()
    def step(self) -> list[Request]:
        """Runs one forward step. Returns the requests that finished."""
        contexts = {request.id: request.computed for request in self.running}
        chunks, preempted = self._schedule()
        for request in preempted:
            if jm and contexts.get(request.id):
                jm.engine_event(request.id, "preempted")
        if not chunks:
            return []
        self.steps += 1
        if jm is None:
            return self._forward(chunks, None)
        with jm.engine_step() as step:
            return self._forward(chunks, step)

    def _forward(self, chunks: list[tuple[Request, int]], step) -> list[Request]:
        next_tokens = self.network(Batch(chunks, self.cache, self.device), self.cache).tolist()  # waits for the GPU
        for (request, count), token in zip(chunks, next_tokens):
            is_prefill = request.computed < len(request.prompt) or count > 1
            request.computed += count
            is_last_chunk = request.computed == len(request.tokens)
            if is_last_chunk:
                request.output.append(token)
            if step is not None:
                step.add(
                    request.id,
                    prompt=count if is_prefill else 0,
                    decoded=1 if is_last_chunk else 0,
                    context=request.computed,
                    finished=request.is_finished,
                    tenant=request.tenant,
                )
        finished = [request for request, _ in chunks if request.is_finished]
        for request in finished:
            self.running.remove(request)
            self.cache.release(request)
        return finished
