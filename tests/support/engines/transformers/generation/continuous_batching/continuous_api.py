from types import SimpleNamespace

from .input_outputs import ContinuousBatchingAsyncIOs, ContinuousBatchingIOs
from .scheduler import Scheduler


def make_state(request_id, prompt_tokens, max_new_tokens):
    return SimpleNamespace(
        request_id=request_id, initial_tokens=[5] * prompt_tokens, generated_tokens=[], position_offset=0,
        max_new_tokens=max_new_tokens, status=SimpleNamespace(name="PREFILLING"),
    )  # fmt: skip


class ContinuousBatchProcessor:
    def __init__(self, use_async_batching):
        self.input_queue = object()
        self.scheduler = Scheduler()
        self.use_async_batching = use_async_batching
        self.inputs_and_outputs = ContinuousBatchingAsyncIOs() if use_async_batching else ContinuousBatchingIOs()

    def prepare_next_batch(self):
        self.scheduler.clear_cancelled_requests()
        requests_in_batch = self.scheduler.schedule_batch()
        if not requests_in_batch:
            return False
        self.inputs_and_outputs.prepare_batch_tensors(requests_in_batch=requests_in_batch, logits_processors=None)
        return True

    def _generation_step(self, model):
        if self.use_async_batching:
            self.inputs_and_outputs.swap_io_pairs()

    def update_batch(self):
        requests_in_batch, new_tokens, _ = self.inputs_and_outputs.prepare_batch_update()
        for future, token in zip(requests_in_batch, new_tokens):
            state = future.state
            if state.status.name == "FINISHED":
                continue
            state.generated_tokens.append(token)
            if len(state.generated_tokens) == state.max_new_tokens:
                state.status.name = "FINISHED"
                self.scheduler.active_requests.pop(state.request_id, None)

    def _handle_request_error(self, error, state):
        pass

    def fail_all_requests(self, error):
        pass
