# SPDX-License-Identifier: Apache-2.0
"""A small serving engine: continuous batching, chunked prefill, paged KV cache, preemption by recomputation, around a
Llama-shaped network with random weights. Reports its steps with `jm.engine_step`, so that `joulemap report --by request`
shows what each request cost. Runs on a CPU and on a GPU (bf16; decoding as CUDA graphs).

A step has up to two passes through the network: one decodes a token of every running request, one computes chunks of
prompts. The GPU decodes while the host launches the kernels of the prompts.

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
from typing import Callable, Optional

import torch
from paged_attention import attend_with_torch, attend_with_triton, triton
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
    on_token: Optional[Callable[[int, bool], None]] = None  # called with each new token, and whether it is the last
    output: list[int] = dataclasses.field(default_factory=list)
    computed: int = 0  # tokens whose keys and values are in the cache
    blocks: list[int] = dataclasses.field(default_factory=list)
    row: Optional[int] = None  # of the block table

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.output)

    def tokens(self, begin: int, end: int) -> list[int]:
        """Tokens of its prompt and output."""
        prompt_length = len(self.prompt)
        return self.prompt[begin:end] + self.output[max(begin - prompt_length, 0) : max(end - prompt_length, 0)]

    @property
    def is_finished(self) -> bool:
        return len(self.output) >= self.max_new_tokens


class PagedCache:
    """Keys and values of all layers, in blocks of tokens that requests allocate and free. The block table on the device
    has a row for each request: the numbers of its blocks. Block 0 and row 0 are for requests that only fill a batch."""

    BLOCK_TOKENS = 16

    def __init__(self, shape: Shape, blocks: int, requests: int, device: str, dtype: torch.dtype) -> None:
        size = (shape.layers, shape.kv_heads, (1 + blocks) * self.BLOCK_TOKENS, shape.head_size)
        self.keys = torch.zeros(size, device=device, dtype=dtype)
        self.values = torch.zeros(size, device=device, dtype=dtype)
        self.free = list(range(1, 1 + blocks))
        self.table = torch.zeros((1 + requests, blocks), device=device, dtype=torch.int64)
        self.free_rows = list(range(1, 1 + requests))
        self.pending_table_entries: dict[
            tuple[int, int], int
        ] = {}  # blocks that are not in the table yet, by row and column

    def reserve_blocks(self, request: Request, tokens: int) -> bool:
        """Allocates blocks for so many tokens; False if there are too few."""
        missing_block_count = math.ceil(tokens / self.BLOCK_TOKENS) - len(request.blocks)
        if missing_block_count > len(self.free):
            return False
        if request.row is None:
            request.row = self.free_rows.pop()
        for _ in range(missing_block_count):
            self.pending_table_entries[request.row, len(request.blocks)] = self.free[-1]
            request.blocks.append(self.free.pop())
        return True

    def release(self, request: Request) -> None:
        self.free += request.blocks
        if request.row is not None:
            self.free_rows.append(request.row)
        request.blocks, request.computed, request.row = [], 0, None

    def update_block_table(self) -> None:
        if self.pending_table_entries:
            places = torch.tensor([*self.pending_table_entries], device=self.table.device)
            self.table[places[:, 0], places[:, 1]] = torch.tensor(
                [*self.pending_table_entries.values()], device=self.table.device
            )
            self.pending_table_entries = {}

    def slots(self, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Indices into keys and values."""
        return self.table[rows, positions // self.BLOCK_TOKENS] * self.BLOCK_TOKENS + positions % self.BLOCK_TOKENS


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
        self.qkv_projections = torch.nn.ParameterList(weight(width, shape.hidden) for _ in range(shape.layers))
        self.output_projections = torch.nn.ParameterList(
            weight(shape.hidden, shape.hidden) for _ in range(shape.layers)
        )
        self.gate_up_projections = torch.nn.ParameterList(
            weight(2 * shape.intermediate, shape.hidden) for _ in range(shape.layers)
        )
        self.down_projections = torch.nn.ParameterList(
            weight(shape.hidden, shape.intermediate) for _ in range(shape.layers)
        )
        self.unembedding = weight(shape.vocabulary, shape.hidden)
        exponents = torch.arange(0, shape.head_size, 2, device=device) / shape.head_size
        self.frequencies = 500_000.0**-exponents

    def angles(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosine and sine of the rotary embedding."""
        angles = positions[:, None, None] * self.frequencies
        return angles.cos().to(self.embedding.dtype), angles.sin().to(self.embedding.dtype)

    def forward(self, batch: PromptBatch | DecodeBatch, cache: PagedCache) -> torch.Tensor:
        """Returns the next token of each request of the batch."""
        shape = self.shape
        norm = (shape.hidden,)
        x = functional.embedding(batch.tokens, self.embedding)
        cos, sin = self.angles(batch.positions)
        for layer in range(shape.layers):
            qkv_activations = functional.linear(functional.rms_norm(x, norm), self.qkv_projections[layer])
            qkv_activations = qkv_activations.view(len(x), -1, shape.head_size)
            rotated, value = qkv_activations.split((shape.heads + shape.kv_heads, shape.kv_heads), dim=1)
            a, b = rotated.chunk(2, dim=-1)
            rotated = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
            query, key = rotated.split((shape.heads, shape.kv_heads), dim=1)
            cache.keys[layer].index_copy_(1, batch.slots, key.transpose(0, 1))
            cache.values[layer].index_copy_(1, batch.slots, value.transpose(0, 1))
            attention_output = batch.compute_attention(query, cache.keys[layer], cache.values[layer])
            x = x + functional.linear(attention_output, self.output_projections[layer])
            gate_projection, up_projection = functional.linear(
                functional.rms_norm(x, norm), self.gate_up_projections[layer]
            ).chunk(2, dim=-1)
            x = x + functional.linear(functional.silu(gate_projection) * up_projection, self.down_projections[layer])
        logits = functional.linear(functional.rms_norm(x[batch.last_token_rows], norm), self.unembedding)
        return logits.argmax(dim=-1)


class PromptBatch:
    """Chunks of prompts: their tokens one after another. Each prompt has its own attention."""

    def __init__(self, chunks: list[tuple[Request, int]], cache: PagedCache, device: str) -> None:
        tokens: list[int] = []
        positions: list[int] = []
        table_rows: list[int] = []
        last_token_rows: list[int] = []
        self.prompts: list[tuple[slice, torch.Tensor, Optional[torch.Tensor]]] = []  # rows, slots of context, mask
        for request, count in chunks:
            begin, end = request.computed, request.computed + count
            rows = slice(len(tokens), len(tokens) + count)
            tokens += request.tokens(begin, end)
            positions += range(begin, end)
            table_rows += [request.row] * count
            last_token_rows.append(len(tokens) - 1)
            context = torch.arange(end, device=device)
            mask = None if begin == 0 else context[begin:, None] >= context
            self.prompts.append((rows, cache.slots(request.row, context), mask))
        self.tokens, self.positions, table_rows = torch.tensor([tokens, positions, table_rows], device=device)
        self.slots = cache.slots(table_rows, self.positions)
        self.last_token_rows = torch.tensor(last_token_rows, device=device)

    def compute_attention(self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        attention_output = []
        for rows, slots, mask in self.prompts:
            prompt_output = functional.scaled_dot_product_attention(
                query[rows].transpose(0, 1)[None],
                keys[:, slots][None],
                values[:, slots][None],
                mask,
                is_causal=mask is None,
                enable_gqa=True,
            )
            attention_output.append(prompt_output[0].transpose(0, 1).flatten(1))
        return attention_output[0] if len(attention_output) == 1 else torch.cat(attention_output)


class DecodeBatch:
    """One token of each request. `inputs`: token, position and row of the block table of each request, on the device."""

    def __init__(self, inputs: torch.Tensor, cache: PagedCache, max_context_length: Optional[int]) -> None:
        """`max_context_length`: longest context of the requests; None: the attention finds it itself."""
        self.tokens, self.positions, self.rows = inputs
        self.cache, self.lengths = cache, self.positions + 1
        self.slots = cache.slots(self.rows, self.positions)
        self.last_token_rows = slice(None)
        self.context = None
        if max_context_length is not None:
            self.context = cache.slots(self.rows[:, None], torch.arange(max_context_length, device=inputs.device))

    def compute_attention(self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        if self.context is not None:
            return attend_with_torch(query, keys, values, self.context, self.lengths)
        return attend_with_triton(
            query, keys, values, self.cache.table, self.rows, self.lengths, PagedCache.BLOCK_TOKENS
        )


class DecodeGraph:
    """The decoding of a batch of one size, captured as a CUDA graph. Smaller batches are filled with row 0."""

    def __init__(self, network: Network, cache: PagedCache, size: int) -> None:
        self.inputs = torch.zeros((3, size), device=cache.table.device, dtype=torch.int64)
        network(DecodeBatch(self.inputs, cache, None), cache)  # compiles and loads the kernels
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.next_tokens = network(DecodeBatch(self.inputs, cache, None), cache)

    def run(self, inputs: torch.Tensor) -> torch.Tensor:
        count = inputs.shape[1]
        self.inputs[:, :count].copy_(inputs, non_blocking=True)
        self.inputs[:, count:].zero_()
        self.graph.replay()
        return self.next_tokens[:count]


class Engine:
    """Serves requests: each step computes the next token of every running request, and chunks of waiting prompts.
    `use_graphs`: decode with CUDA graphs, and with the attention of Triton; where there is a GPU unless said otherwise."""

    GRAPH_BATCH_SIZES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)

    def __init__(
        self,
        shape: Shape,
        device: str = "cpu",
        cache_blocks: int = 512,
        most_requests: int = 64,
        chunk_tokens: int = 2048,
        seed: int = 0,
        dtype: Optional[torch.dtype] = None,
        use_graphs: Optional[bool] = None,
    ) -> None:
        torch.manual_seed(seed)
        dtype = dtype or (torch.bfloat16 if device.startswith("cuda") else torch.float32)
        self.network = Network(shape, device, dtype)
        self.cache = PagedCache(shape, cache_blocks, 4 * most_requests, device, dtype)
        self.device, self.most_requests, self.chunk_tokens = device, most_requests, chunk_tokens
        self.waiting: collections.deque[Request] = collections.deque()
        self.running: list[Request] = []
        self.steps = 0
        is_gpu = device.startswith("cuda")
        self.use_graphs = (is_gpu and triton is not None) if use_graphs is None else use_graphs
        self.graphs: dict[int, DecodeGraph] = {}

    @torch.inference_mode()
    def capture_graphs(self) -> None:
        """Captures the graphs of all batch sizes, so that the first requests do not wait for it."""
        for size in self.GRAPH_BATCH_SIZES if self.use_graphs else ():
            self._find_or_capture_graph(size)
            if size >= self.most_requests:
                break

    def _find_or_capture_graph(self, size: int) -> DecodeGraph:
        if size not in self.graphs:
            self.graphs[size] = DecodeGraph(self.network, self.cache, size)
        return self.graphs[size]

    def submit(self, request: Request) -> None:
        needed = math.ceil((len(request.prompt) + request.max_new_tokens) / PagedCache.BLOCK_TOKENS)
        blocks = len(self.cache.free) + sum(len(running_request.blocks) for running_request in self.running)
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

    def _schedule_chunks(self) -> tuple[list[tuple[Request, int]], list[Request]]:
        """The chunks of the next step, and the requests that lose their cache to make room for them."""
        preempted: list[Request] = []
        chunks: list[tuple[Request, int]] = []
        budget = self.chunk_tokens
        while self.waiting and len(self.running) < self.most_requests:
            if not self.cache.reserve_blocks(self.waiting[0], min(self.waiting[0].length, self.chunk_tokens)):
                break
            self.running.append(self.waiting.popleft())
        for request in list(self.running):
            uncomputed_tokens = request.length - request.computed
            count = min(uncomputed_tokens, budget) if uncomputed_tokens > 1 else uncomputed_tokens
            if count == 0 or request in preempted:
                continue
            while not self.cache.reserve_blocks(request, request.computed + count):
                preempted_request = self.running.pop()
                self.cache.release(preempted_request)
                self.waiting.appendleft(preempted_request)
                preempted.append(preempted_request)
                if preempted_request is request:
                    break
            if request in preempted:
                continue
            chunks.append((request, count))
            budget -= count if uncomputed_tokens > 1 else 0
        return [chunk for chunk in chunks if chunk[0] not in preempted], preempted

    @torch.inference_mode()
    def step(self) -> list[Request]:
        """Runs one forward step. Returns the requests that finished."""
        contexts = {request.id: request.computed for request in self.running}
        chunks, preempted = self._schedule_chunks()
        for request in preempted:
            if jm and contexts.get(request.id):
                jm.engine_event(request.id, "preempted")
        if not chunks:
            return []
        self.steps += 1
        if jm is None:
            return self._run_forward_pass(chunks, None)
        with jm.engine_step() as step:
            return self._run_forward_pass(chunks, step)

    def _run_forward_pass(self, chunks: list[tuple[Request, int]], step) -> list[Request]:
        self.cache.update_block_table()
        chunks = sorted(chunks, key=lambda chunk: chunk[1] > 1)  # first those that decode
        decoding = [request for request, count in chunks if count == 1]
        prompts = chunks[len(decoding) :]
        next_tokens = []
        if decoding:
            next_tokens.append(self._decode_next_tokens(decoding))
        if prompts:
            next_tokens.append(self.network(PromptBatch(prompts, self.cache, self.device), self.cache))
        for (request, count), token in zip(chunks, torch.cat(next_tokens).tolist()):  # waits for the GPU
            is_prefill = request.computed < len(request.prompt) or count > 1
            request.computed += count
            is_last_chunk = request.computed == request.length
            if is_last_chunk:
                request.output.append(token)
                if request.on_token is not None:
                    request.on_token(token, request.is_finished)
            if step is not None:
                step.add(
                    request.id,
                    prompt=count if is_prefill else 0,
                    decoded=1 if is_last_chunk else 0,
                    context=request.computed,
                    finished=request.is_finished,
                    tenant=request.tenant,
                )
        finished_requests = [request for request, _ in chunks if request.is_finished]
        for request in finished_requests:
            self.running.remove(request)
            self.cache.release(request)
        return finished_requests

    def _decode_next_tokens(self, requests: list[Request]) -> torch.Tensor:
        inputs = torch.tensor(
            [
                [request.tokens(request.computed, request.computed + 1)[0] for request in requests],
                [request.computed for request in requests],
                [request.row for request in requests],
            ]
        )
        sizes = [size for size in self.GRAPH_BATCH_SIZES if size >= len(requests)]
        if self.use_graphs and sizes:
            return self._find_or_capture_graph(sizes[0]).run(inputs.pin_memory())
        max_context_length = None if triton is not None and self.device != "cpu" else int(inputs[1].max()) + 1
        batch = DecodeBatch(inputs.to(self.device), self.cache, max_context_length)
        return self.network(batch, self.cache)
