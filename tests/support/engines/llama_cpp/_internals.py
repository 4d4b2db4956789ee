class LlamaBatch:
    def __init__(self):
        self.count = 0

    def n_tokens(self):
        return self.count


class LlamaContext:
    def decode(self, batch):
        pass
