"""A scheduler with the calls of SGLang's: run_batch(), process_batch_result(), abort_request()."""

from __future__ import annotations

from types import SimpleNamespace

from sglang.srt.managers.schedule_batch import (
    FINISH_ABORT,
    FINISH_LENGTH,
    ForwardMode,
    GenerationBatchResult,
    Req,
    ScheduleBatch,
    SpeculativeAlgorithm,
)


class Scheduler:
    def __init__(self, rank: int = 0, accepted: int = 0, draft_tokens: int = 0) -> None:
        self.attn_tp_rank, self.attn_cp_rank, self.pp_rank = rank, 0, 0
        self.server_args = SimpleNamespace(served_model_name="tiny", speculative_num_draft_tokens=draft_tokens or None)
        self.spec_algorithm = SpeculativeAlgorithm.EAGLE if draft_tokens else SpeculativeAlgorithm.NONE
        self.accepted = accepted  # draft tokens that are accepted in each step
        self.waiting_queue: list[Req] = []
        self.forwards = 0

    def extend(self, *chunks: tuple[Req, int], mixed: tuple[Req, ...] = ()) -> ScheduleBatch:
        """A batch that computes the given tokens of each prompt, and decodes a token of each request in `mixed`."""
        for req, _ in chunks:
            if req.computed == 0:
                req.computed = req.prefix_hit
        reqs = [req for req, _ in chunks] + list(mixed)
        lengths = [tokens for _, tokens in chunks] + [1] * len(mixed)
        batch = ScheduleBatch(
            reqs, ForwardMode.MIXED if mixed else ForwardMode.EXTEND, [req.computed for req in reqs], lengths,
            self.spec_algorithm,
        )  # fmt: skip
        for req, tokens in zip(reqs, lengths):
            req.computed += tokens
        return batch

    def decode(self, *reqs: Req) -> ScheduleBatch:
        for req in reqs:
            req.computed += 1 + self.accepted
        return ScheduleBatch(list(reqs), ForwardMode.DECODE, spec_algorithm=self.spec_algorithm)

    def run_batch(self, batch: ScheduleBatch) -> GenerationBatchResult:
        self.forwards += 1
        return GenerationBatchResult()

    def process_batch_result(self, batch: ScheduleBatch, result: GenerationBatchResult) -> None:
        for index, req in enumerate(batch.reqs):
            is_chunk = batch.extend_lens and batch.prefix_lens[index] + batch.extend_lens[index] < len(
                req.origin_input_ids
            )
            if req.finished() or is_chunk:
                continue
            new = 1 + (self.accepted if batch.forward_mode.is_decode() else 0)
            req.output_ids += [7] * min(new, req.max_new_tokens - len(req.output_ids))
            if req.to_finish is not None:
                req.finished_reason = req.to_finish
            elif len(req.output_ids) >= req.max_new_tokens:
                req.finished_reason = FINISH_LENGTH()

    def retract(self, req: Req) -> None:
        req.reset_for_retract()
        self.waiting_queue.append(req)

    def abort_request(self, recv_req) -> None:
        self.waiting_queue[:] = [req for req in self.waiting_queue if not req.rid.startswith(recv_req.rid)]
        for req in recv_req.running:
            req.to_finish = FINISH_ABORT()
