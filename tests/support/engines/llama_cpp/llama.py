from . import _internals as internals


class Llama:
    def __init__(self, n_batch=16):
        self.n_batch = n_batch
        self.n_tokens = 0
        self.model_path = "tiny.gguf"
        self._ctx = internals.LlamaContext()
        self._batch = internals.LlamaBatch()

    def reset(self):
        self.n_tokens = 0

    def eval(self, tokens):
        for batch_begin in range(0, len(tokens), self.n_batch):
            self._batch.count = len(tokens[batch_begin : batch_begin + self.n_batch])
            self._ctx.decode(self._batch)
            self.n_tokens += self._batch.count

    def sample(self):
        return 7

    def embed(self, input):
        pass

    def generate(self, tokens):
        self.reset()
        while True:
            self.eval(tokens)
            tokens = [self.sample()]
            yield tokens[0]

    def _create_completion(self, prompt, max_tokens, stream=False):
        tokens = self.generate(prompt)
        for _ in range(max_tokens):
            next(tokens)
        yield {"choices": [{"finish_reason": "length"}]}

    def create_completion(self, prompt, **options):
        return next(self._create_completion(prompt, **options))
