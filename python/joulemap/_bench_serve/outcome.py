# SPDX-License-Identifier: Apache-2.0
"""What happened to each request: plain data that load.py fills and result.py reads. Times are in s of the event loop's
clock (CLOCK_MONOTONIC)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from .plan import LoadLevel, PlannedRequest

# Kinds of failures, and what they mean.
FAILURE_DESCRIPTIONS = {
    "refused": "no connection to the server",
    "timeout": "not complete within the time limit",
    "closed": "the server closed the connection before the end of the answer",
    "status": "an HTTP status other than 200",
    "error_event": "the server reported an error inside the stream",
    "malformed": "the answer is no stream of completions",
    "empty": "the stream ended without a token",
    "engine": "the in-process engine raised an exception",
    "cut": "the time limit of the benchmark was reached",
}


class RequestFailure(Exception):
    """A request failed. `kind` is a key of FAILURE_DESCRIPTIONS."""

    def __init__(self, kind: str, detail: str, status: Optional[int] = None) -> None:
        super().__init__(f"{FAILURE_DESCRIPTIONS[kind]}: {detail}" if detail else FAILURE_DESCRIPTIONS[kind])
        self.kind = kind
        self.detail = detail
        self.status = status  # of HTTP, for the kind "status"


class BenchError(Exception):
    """The benchmark cannot run; the text is for the user."""

    def __init__(self, message: str, remedy: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.exit_code = exit_code


@dataclass
class RequestOutcome:
    """One request. Targets add the times of chunks, and the lengths that the server reports."""

    request: PlannedRequest
    due_s: float  # when the plan says that it arrives
    sent_s: Optional[float] = None  # when it was sent; None: it was not
    chunk_times_s: list[float] = field(default_factory=list)  # arrivals of chunks with text
    ended_s: Optional[float] = None
    prompt_tokens: Optional[int] = None  # of the server; None: it reports none
    output_tokens: Optional[int] = None
    failure: Optional[RequestFailure] = None

    @property
    def is_success(self) -> bool:
        return self.ended_s is not None and self.failure is None

    @property
    def lateness_s(self) -> float:
        return 0.0 if self.sent_s is None else max(0.0, self.sent_s - self.due_s)

    @property
    def prompt_length(self) -> int:
        """Tokens of the prompt: those of the server, otherwise those of the plan."""
        return self.request.prompt_tokens if self.prompt_tokens is None else self.prompt_tokens

    @property
    def output_length(self) -> int:
        """Tokens of the answer: those of the server, otherwise one for each chunk."""
        return len(self.chunk_times_s) if self.output_tokens is None else self.output_tokens

    @property
    def ttft_s(self) -> Optional[float]:
        """Time to the first token. It counts from the planned arrival: a late send does not hide waiting."""
        return self.chunk_times_s[0] - self.due_s if self.chunk_times_s else None

    @property
    def tpot_s(self) -> Optional[float]:
        """Mean time per output token after the first one; None if there is only one."""
        if self.output_length < 2 or len(self.chunk_times_s) < 2:
            return None
        return (self.chunk_times_s[-1] - self.chunk_times_s[0]) / (self.output_length - 1)

    @property
    def latency_s(self) -> Optional[float]:
        """Time from the planned arrival to the last token."""
        return self.chunk_times_s[-1] - self.due_s if self.chunk_times_s else None


@dataclass
class LoadLevelRun:
    """What happened at one load."""

    level: LoadLevel
    outcomes: list[RequestOutcome]
    steady_interval_s: Optional[tuple[float, float]]  # when the energy window opened and closed; None: it did not
    was_stopped_by_deadline: bool = False  # the time limit of the benchmark ended it
