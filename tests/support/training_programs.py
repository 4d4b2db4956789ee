"""Source text of small networks that train on the CPU: an MLP, a convnet with in-place ReLUs, a transformer with
checkpointing."""

PROGRAM_PRELUDE = """
import hashlib, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
"""

NETWORKS = {
    "mlp": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 1024), nn.ReLU())
        self.head = nn.Linear(1024, 10)
    def forward(self, x):
        return self.head(self.body(x))
inputs = torch.randn(128, 64)
make_optimizer = lambda p: torch.optim.Adam(p, lr=1e-3)
""",
    "convnet": """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
    def forward(self, x):
        y = self.conv2(self.relu(self.norm(self.conv1(x))))
        y += x
        return self.relu(y)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.Sequential(Block(8), Block(8))
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(8, 10)
    def forward(self, x):
        return self.fc(self.drop(self.layers(self.stem(x)).mean((2, 3))))
inputs = torch.randn(128, 3, 16, 16)
make_optimizer = lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)
""",
    "transformer": """
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(16, 32)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) for _ in range(3))
        self.head = nn.Linear(32, 10)
    def forward(self, x):
        x = self.embed(x)
        x = checkpoint(self.layers[0], x, use_reentrant=False)
        x = checkpoint(self.layers[1], x, use_reentrant=True)
        return self.head(self.layers[2](x).mean(1))
inputs = torch.randn(128, 12, 16)
make_optimizer = lambda p: torch.optim.AdamW(p, lr=1e-3)
""",
}

TRAINING_PROGRAM = """
net = Net()
optimizer = make_optimizer(net.parameters())
criterion = nn.CrossEntropyLoss()
targets = torch.randint(0, 10, (len(inputs),))
data = torch.utils.data.TensorDataset(inputs, targets)
epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
call_begin_ns = time.thread_time_ns()  # without threads of the recorder, which run for as long as the program does
for epoch in range(epochs):
    for batch, target in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(net(batch), target)
        loss.backward()
        optimizer.step()
        if epochs < 5:
            print(loss.item().hex())
if epochs >= 5:
    print(time.thread_time_ns() - call_begin_ns)
weights = b"".join(p.detach().numpy().tobytes() for p in net.state_dict().values())
print(hashlib.sha256(weights).hexdigest())
"""


def make_training_program(network: str) -> str:
    return PROGRAM_PRELUDE + NETWORKS[network] + TRAINING_PROGRAM
