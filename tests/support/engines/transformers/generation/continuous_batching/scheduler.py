from types import SimpleNamespace


class Scheduler:
    def __init__(self):
        self.active_requests = {}
        self._requests_to_cancel = set()

    def clear_cancelled_requests(self):
        cancelled = [self.active_requests.pop(id) for id in self._requests_to_cancel if id in self.active_requests]
        self._requests_to_cancel = set()
        return cancelled

    def schedule_batch(self):
        return [
            SimpleNamespace(state=state, query_length=max(len(state.initial_tokens) - state.position_offset, 1))
            for state in self.active_requests.values()
        ]
