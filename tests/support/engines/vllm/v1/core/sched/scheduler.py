"""A scheduler with the calls of vLLM's: schedule(), update_from_output(), finish_requests()."""

from __future__ import annotations

from types import SimpleNamespace

from vllm.v1.core.sched.output import CachedRequestData, NewRequestData, SchedulerOutput
from vllm.v1.request import Request, RequestStatus


class Scheduler:
    def __init__(
        self, budget: int = 16, cache_tokens: int = 1000, draft_tokens: int = 0, is_async: bool = False
    ) -> None:
        self.budget, self.cache_tokens, self.draft_tokens, self.is_async = budget, cache_tokens, draft_tokens, is_async
        self.requests: dict[str, Request] = {}
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.prefix_hits: dict[str, int] = {}  # tokens of a prompt that are in the prefix cache
        self.finished_req_ids: set[str] = set()
        config = SimpleNamespace(model="/models/tiny", served_model_name=["tiny"])
        self.vllm_config = SimpleNamespace(model_config=config)

    def add_request(self, request: Request) -> None:
        assert request.request_id not in self.requests, "duplicate request id"
        self.requests[request.request_id] = request
        self.waiting.append(request)

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        counts: dict[str, int] = {}
        speculative: dict[str, list[int]] = {}
        preempted: set[str] = set()
        new, cached, budget = [], CachedRequestData(), self.budget
        for request in list(self.running):
            if request not in self.running:
                continue
            uncomputed_tokens = request.num_tokens + request.num_output_placeholders + len(request.spec_token_ids)
            uncomputed_tokens -= request.num_computed_tokens
            tokens = min(uncomputed_tokens, budget)
            while tokens > 0 and self._cached_tokens() + tokens > self.cache_tokens:
                preempted_request = self.running.pop()
                preempted_request.status, preempted_request.num_computed_tokens, preempted_request.spec_token_ids = (
                    RequestStatus.PREEMPTED,
                    0,
                    [],
                )
                preempted_request.num_output_placeholders = 0
                self.waiting.insert(0, preempted_request)
                preempted.add(preempted_request.request_id)
                if preempted_request is request:
                    tokens = 0
            if tokens > 0:
                drafts = len(request.spec_token_ids)
                if drafts and tokens > drafts:
                    speculative[request.request_id] = request.spec_token_ids[:]
                counts[request.request_id] = tokens
                budget -= tokens
                cached.req_ids.append(request.request_id)
                cached.num_computed_tokens.append(request.num_computed_tokens)
        while self.waiting and budget > 0 and not preempted:
            request = self.waiting[0]
            start = min(self.prefix_hits.get(request.request_id, 0), request.num_tokens - 1)
            tokens = min(request.num_tokens - start, budget)
            if self._cached_tokens() + sum(counts.values()) + start + tokens > self.cache_tokens:
                break
            self.waiting.pop(0)
            request.num_computed_tokens = start
            if request.status == RequestStatus.PREEMPTED:
                cached.req_ids.append(request.request_id)
                cached.num_computed_tokens.append(start)
            else:
                new.append(NewRequestData(request.request_id, start))
            request.status = RequestStatus.RUNNING
            self.running.append(request)
            counts[request.request_id] = tokens
            budget -= tokens
        total = sum(counts.values())
        output = SchedulerOutput(new, cached, counts, total, speculative, self.finished_req_ids, preempted)
        self._update_after_schedule(output)
        return output

    def _cached_tokens(self) -> int:
        return sum(request.num_computed_tokens for request in self.running)

    def _update_after_schedule(self, output: SchedulerOutput) -> None:
        for id, tokens in output.num_scheduled_tokens.items():
            request = self.requests[id]
            request.num_computed_tokens += tokens
            if self.is_async and request.num_computed_tokens >= request.num_tokens + request.num_output_placeholders:
                request.num_output_placeholders += 1
        self.finished_req_ids = set()

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output) -> dict:
        for id, tokens in scheduler_output.num_scheduled_tokens.items():
            request = self.requests.get(id)
            if request is None or request.is_finished():
                continue
            generated_token_ids = model_runner_output.sampled_token_ids[model_runner_output.req_id_to_index[id]]
            drafts = len(scheduler_output.scheduled_spec_decode_tokens.get(id, ()))
            if drafts and generated_token_ids:
                request.num_computed_tokens -= drafts - (len(generated_token_ids) - 1)
            if request.status == RequestStatus.PREEMPTED and self.is_async:
                request.num_output_tokens += len(generated_token_ids)  # output in flight is delivered
                continue
            for _ in generated_token_ids:
                request.num_output_tokens += 1
                request.num_output_placeholders = max(request.num_output_placeholders - 1, 0)
                if request.num_output_tokens >= request.sampling_params.max_tokens:
                    request.status = RequestStatus.FINISHED_LENGTH_CAPPED
                    break
            request.spec_token_ids = [-1] * self.draft_tokens if generated_token_ids else []
            if request.is_finished():
                self.running.remove(request)
                self._free(request)
        return {}

    def finish_requests(self, request_ids, finished_status: RequestStatus) -> list[Request]:
        ids_to_finish = (
            [request_ids]
            if isinstance(request_ids, str)
            else list(self.requests if request_ids is None else request_ids)
        )
        unfinished_requests = [
            self.requests[id] for id in ids_to_finish if id in self.requests and not self.requests[id].is_finished()
        ]
        for request in unfinished_requests:
            (self.running if request in self.running else self.waiting).remove(request)
            request.status = finished_status
            self._free(request)
        return unfinished_requests

    def _free(self, request: Request) -> None:
        self.finished_req_ids.add(request.request_id)
        del self.requests[request.request_id]


class AsyncScheduler(Scheduler):
    def __init__(self, **options) -> None:
        super().__init__(is_async=True, **options)
