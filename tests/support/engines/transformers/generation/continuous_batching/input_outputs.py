class ContinuousBatchingIOs:
    def __init__(self):
        self.requests_in_batch = []

    def prepare_batch_tensors(self, requests_in_batch, logits_processors=None):
        self.requests_in_batch = []
        for future in requests_in_batch:
            future.state.position_offset += future.query_length
            self.requests_in_batch.append(future)

    def prepare_batch_update(self):
        return self.requests_in_batch, [7] * len(self.requests_in_batch), None


class ContinuousBatchingAsyncIOs:
    def __init__(self):
        self.io_pairs = [ContinuousBatchingIOs(), ContinuousBatchingIOs()]
        self.current_pair = 0

    def prepare_batch_tensors(self, requests_in_batch, logits_processors=None):
        self.io_pairs[self.current_pair].prepare_batch_tensors(requests_in_batch, logits_processors)

    def prepare_batch_update(self):
        return self.io_pairs[self.current_pair].prepare_batch_update()

    def swap_io_pairs(self):
        self.current_pair = 1 - self.current_pair
