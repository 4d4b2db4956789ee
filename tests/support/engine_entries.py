"""Reads the steps of serving engines from the recording of a process."""

from __future__ import annotations

from typing import NamedTuple

FINISHED, PREEMPTED, ABORTED = 1, 2, 4


class Entry(NamedTuple):
    """A request in a step."""

    prompt: int
    cached: int
    decoded: int
    rejected: int
    context: int
    events: int


def read_request_entries(part) -> dict[str, list[Entry]]:
    """By the request's id, in the order of the steps. Requests with the same id follow each other."""
    names = {}
    for line in part.of("request"):
        _, number, name, _ = line.split(" ", 3)
        names[int(number)] = name
    entries_by_request: dict[str, list[Entry]] = {name: [] for name in names.values()}
    for line in part.of("in-step"):
        _, request, *entry_fields = map(int, line.split())
        entries_by_request[names[request]].append(Entry(*entry_fields))
    return entries_by_request


def read_request_models(part) -> dict[str, str]:
    return {line.split(" ")[2]: line.split(" ")[4] for line in part.of("request")}
