# SPDX-License-Identifier: Apache-2.0
"""Programs of user_program_set.py with several models, threads or processes, run once without tuning anything with them:
a translator of two models, distillation, CLIP, recomputed activations, CUDA graphs, a server of threads, and two ranks."""

from __future__ import annotations

import copy
import os
import queue
import threading

from user_program_loop import TimedLoop, checksum_of_module, checksum_of_tensors, set_up_torch


def translator(seconds: float) -> None:
    """An encoder and a decoder that is called once per output word, with two optimizers."""
    torch = set_up_torch()
    nn = torch.nn

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.rnn = nn.Embedding(8000, 256), nn.GRU(256, 512, 2, batch_first=True)

        def forward(self, words):
            return self.rnn(self.embedding(words))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.rnn = nn.Embedding(8000, 256), nn.GRU(256, 512, 2, batch_first=True)
            self.attention, self.out = nn.Linear(512, 512), nn.Linear(1024, 8000)

        def forward(self, word, state, memory):
            rnn_output, state = self.rnn(self.embedding(word), state)
            weights = (self.attention(rnn_output) @ memory.transpose(1, 2)).softmax(-1)
            return self.out(torch.cat([rnn_output, weights @ memory], -1)), state

    encoder, decoder = Encoder().cuda(), Decoder().cuda()
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in (encoder, decoder)]
    loop = TimedLoop(seconds, checksum_of_module(decoder))
    for _ in loop:
        source, target = (torch.randint(0, 8000, (64, 24), device="cuda") for _ in range(2))
        memory, state = encoder(source)
        loss = 0
        for position in range(23):
            logits, state = decoder(target[:, position : position + 1], state, memory)
            loss = loss + nn.functional.cross_entropy(logits[:, 0], target[:, position + 1])
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    loop.print()


def distillation(seconds: float) -> None:
    """A teacher in evaluation mode and a student of the same class, under autocast with a gradient scaler."""
    torch = set_up_torch()
    import torchvision

    teacher = torchvision.models.resnet50(num_classes=100).cuda().eval()
    student = torchvision.models.resnet18(num_classes=100).cuda()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    images = torch.randn(64, 3, 160, 160, device="cuda")
    loop = TimedLoop(seconds, checksum_of_module(student))
    for _ in loop:
        with torch.autocast("cuda", dtype=torch.float16):
            with torch.no_grad():
                teacher_probabilities = teacher(images).softmax(-1)
            loss = torch.nn.functional.kl_div(
                student(images).log_softmax(-1), teacher_probabilities, reduction="batchmean"
            )
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    loop.print()


def clip(seconds: float) -> None:
    """An image and a text encoder in one model, contrastive, with DataLoader workers."""
    torch = set_up_torch()
    import torchvision

    nn = torch.nn

    class Clip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image = torchvision.models.resnet34(num_classes=256)
            layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, norm_first=True)
            self.words, self.text = nn.Embedding(5000, 256), nn.TransformerEncoder(layer, 4)
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, images, words):
            image_embeddings = nn.functional.normalize(self.image(images), dim=-1)
            text_embeddings = nn.functional.normalize(self.text(self.words(words)).mean(1), dim=-1)
            return self.scale.exp() * image_embeddings @ text_embeddings.T

    class Pairs(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 100_000

        def __getitem__(self, index: int):
            generator = torch.Generator().manual_seed(index)
            image = torch.rand(3, 128, 128, generator=generator)
            return (image - image.mean()) / image.std(), torch.randint(0, 5000, (32,), generator=generator)

    model = Clip().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = iter(torch.utils.data.DataLoader(Pairs(), batch_size=64, num_workers=6, pin_memory=True))
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        images, words = (batch_tensor.cuda(non_blocking=True) for batch_tensor in next(batches))
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(images, words)
            target_indices = torch.arange(len(logits), device="cuda")
            loss = (
                nn.functional.cross_entropy(logits, target_indices)
                + nn.functional.cross_entropy(logits.T, target_indices)
            ) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loop.print()


def recomputed(seconds: float) -> None:
    """Low-rank adapters on a frozen decoder whose blocks are computed again in the backward pass."""
    torch = set_up_torch()
    import transformers

    config = transformers.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8,
                                      num_attention_heads=16, vocab_size=16000)  # fmt: skip
    model = transformers.LlamaForCausalLM(config).cuda().bfloat16()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.requires_grad_(False)

    class Adapted(torch.nn.Module):
        def __init__(self, base) -> None:
            super().__init__()
            self.base = base
            self.down = torch.nn.Linear(base.in_features, 16, bias=False)
            self.up = torch.nn.Linear(16, base.out_features, bias=False)
            torch.nn.init.zeros_(self.up.weight)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    for block in model.model.layers:
        for name in ("q_proj", "v_proj"):
            setattr(block.self_attn, name, Adapted(getattr(block.self_attn, name)).cuda().bfloat16())
    model.enable_input_require_grads()
    model.train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    words = torch.randint(0, 16000, (4, 512), device="cuda")
    loop = TimedLoop(seconds, lambda: checksum_of_tensors(trained))
    for _ in loop:
        optimizer.zero_grad()
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
    loop.print()


def graphs(seconds: float) -> None:
    """Training steps captured once as a CUDA graph and replayed."""
    torch = set_up_torch()
    nn = torch.nn
    model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU()) for _ in range(12))).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, capturable=True)
    inputs, target_outputs = torch.randn(256, 512, device="cuda"), torch.randn(256, 512, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), target_outputs)
        loss.backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        inputs.copy_(torch.randn(256, 512, device="cuda"))
        for _ in range(20):
            graph.replay()
        torch.cuda.synchronize()
    loop.print()


def server(seconds: float) -> None:
    """Threads that share a model and answer requests of one queue; the results do not depend on their order."""
    torch = set_up_torch()
    import torchvision

    model = torchvision.models.mobilenet_v3_large(num_classes=100).cuda().eval().half()
    images = torch.randn(16, 3, 224, 224, device="cuda").half()
    requests, answers = queue.Queue(), queue.Queue()

    def serve():
        with torch.inference_mode():
            while (index := requests.get()) is not None:
                answers.put((index, model(images + index * 0.01).argmax(1).cpu()))

    threads = [threading.Thread(target=serve) for _ in range(3)]
    for thread in threads:
        thread.start()
    answered = {}
    loop = TimedLoop(seconds, lambda: checksum_of_tensors(answered[key] for key in sorted(answered)))
    for _ in loop:
        for index in range(12):
            requests.put(index)
        answered.update(answers.get() for _ in range(12))
    for _ in threads:
        requests.put(None)
    for thread in threads:
        thread.join()
    loop.print()


def train_rank(rank: int, seconds: float) -> None:
    torch = set_up_torch()
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    import torchvision

    model = torchvision.models.resnet18(num_classes=100).cuda()
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    torch.manual_seed(rank)
    images, labels = torch.randn(32, 3, 128, 128, device="cuda"), torch.randint(0, 100, (32,), device="cuda")
    loop = TimedLoop(seconds if rank == 0 else float("inf"), checksum_of_module(model))
    going_on = torch.ones(1)  # rank 0 decides when both end
    for _ in loop:
        torch.distributed.broadcast(going_on, 0)
        if not going_on.item():
            break
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(wrapped(images), labels).backward()
        optimizer.step()
    if rank == 0:
        going_on.zero_()
        torch.distributed.broadcast(going_on, 0)
        loop.print()


def two_ranks(seconds: float) -> None:
    """Data-parallel training of two processes that share the GPU, averaged over gloo."""
    import torch

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.multiprocessing.spawn(train_rank, args=(seconds,), nprocs=2)


def mean_teacher(seconds: float) -> None:
    """Two instances of one class, the second an average of the first, and validation after every 20 steps."""
    torch = set_up_torch()
    import torchvision

    student = torchvision.models.regnet_y_400mf(num_classes=10).cuda()
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3, fused=True)
    images, labels = torch.randn(32, 3, 128, 128, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
    loop = TimedLoop(seconds, checksum_of_module(student))
    for step in loop:
        student.train()
        with torch.no_grad():
            teacher_logits = teacher(images)
        logits = student(images + 0.1 * torch.randn_like(images))
        loss = torch.nn.functional.cross_entropy(logits, labels) + torch.nn.functional.mse_loss(logits, teacher_logits)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for mean, student_parameter in zip(teacher.parameters(), student.parameters()):
                mean.lerp_(student_parameter, 0.01)
        if step % 20 == 19:
            student.eval()
            with torch.inference_mode():
                (student(images).argmax(1) == labels).float().mean().item()
    loop.print()
