class Cache:
    def __init__(self, length):
        self.length = length

    def get_seq_length(self):
        return self.length


class GenerationMixin:
    def prepare_inputs_for_generation(self, input_ids, next_sequence_length=None, **kwargs):
        return {"input_ids": input_ids if next_sequence_length is None else input_ids[:, -next_sequence_length:]}

    def _update_model_kwargs_for_generation(self, outputs, model_kwargs, is_encoder_decoder=False, num_new_tokens=1):
        return model_kwargs

    def generate(self, inputs=None, steps=3, chunk=None, attention_mask=None, past_key_values=None, forward=None):
        """`forward` is called with the index of each forward pass."""
        length = past_key_values.length if past_key_values else 0
        prompt = inputs[:, length:] if attention_mask is None or attention_mask.shape == inputs.shape else inputs
        passes = [*prompt.split(chunk or prompt.shape[1], dim=1), *[inputs[:, -1:]] * (steps - 1)]
        for index, tokens in enumerate(passes):
            self.prepare_inputs_for_generation(tokens)
            if forward:
                forward(index)
            if index >= len(passes) - steps:
                self._update_model_kwargs_for_generation(None, {})
        return "tokens"
