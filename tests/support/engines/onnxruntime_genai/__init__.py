class Model:
    type = "llama"


class GeneratorParams:
    def __init__(self, model):
        pass

    def get_search_options(self):
        return {}


class Generator:
    def __init__(self, model, params):
        self.count = 0

    def append_tokens(self, tokens):
        self.count += len(tokens)

    def generate_next_token(self):
        self.count += 1

    def is_done(self):
        return False

    def token_count(self):
        return self.count
