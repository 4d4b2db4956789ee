"""Members of vLLM's Request that the scheduler and Joulemap's adapter use."""

from __future__ import annotations

import enum


class RequestStatus(enum.IntEnum):
    WAITING = 1
    RUNNING = 5
    PREEMPTED = 6
    FINISHED_STOPPED = 7
    FINISHED_LENGTH_CAPPED = 8
    FINISHED_ABORTED = 9


class SamplingParams:
    def __init__(self, max_tokens: int, stop_strings: list[str]) -> None:
        self.max_tokens, self.stop = max_tokens, stop_strings


class Request:
    def __init__(self, request_id: str, prompt_tokens: int, max_tokens: int, stop=()) -> None:
        self.request_id = request_id
        self.num_prompt_tokens = prompt_tokens
        self.sampling_params = SamplingParams(max_tokens, list(stop))
        self.status = RequestStatus.WAITING
        self.num_computed_tokens = 0
        self.num_output_tokens = 0
        self.num_output_placeholders = 0
        self.spec_token_ids: list[int] = []

    @property
    def num_tokens(self) -> int:
        return self.num_prompt_tokens + self.num_output_tokens

    def is_finished(self) -> bool:
        return self.status > RequestStatus.PREEMPTED
