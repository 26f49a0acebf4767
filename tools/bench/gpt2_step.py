"""One training step of GPT-2 in PyTorch, on request: the peer of //tools/bench:train_step.

  gpt2_step.py BATCH TOKENS THREADS LAYERS WIDTH HEADS VOCAB POSITIONS

Prints "ready PyTorch-VERSION", then for each line on stdin does one step (forward, backward,
AdamW) on a fresh random batch and prints "SECONDS LOSS". Plain f32 with one fused projection for
q, k and v, the way PyTorch programs are written; attention is spelled out, because this version
has no fused one on the CPU.
"""
import sys
import time

try:
    import torch
except ImportError:
    print("missing python3-torch", flush=True)
    sys.exit(0)
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, positions):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.ffn_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        future = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).split(d, dim=2)
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5
        scores = scores.masked_fill(self.future[:t, :t], float("-inf"))
        mixed = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, d)
        x = x + self.output(mixed)
        hidden = F.gelu(self.up(self.ffn_norm(x)), approximate="tanh")
        return x + self.down(hidden)


class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, vocab, positions):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.positions = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads, positions) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def main():
    batch, tokens, threads, layers, width, heads, vocab, positions = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Gpt2(layers, width, heads, vocab, positions)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=1e-4, betas=(0.9, 0.95), eps=1e-8)
    print("ready PyTorch-" + torch.__version__, flush=True)
    for _ in sys.stdin:
        ids = torch.randint(vocab, (batch, tokens + 1))
        start = time.perf_counter()
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.view(-1, vocab), ids[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(time.perf_counter() - start, loss.item(), flush=True)


main()
