"""A training step of GPT-2's shape in PyTorch at its best: torch.compile, scaled_dot_product_attention, fused AdamW, bf16
products with float32 weights. Arguments: device layers width heads context vocabulary sequences steps

Prints one line: sequences, seconds of the median step, bytes held at most. Halves the sequences until a step fits.
"""

import math
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.ln_1(x)).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        padded = 64 * math.ceil(vocabulary / 64)  # as PyTorch's users do: the product for the logits is much faster
        self.tokens = nn.Embedding(padded, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of_steps(device, shape, sequences, steps):
    """Without the first ones, which compile."""
    layers, width, heads, context, vocabulary = shape
    torch.manual_seed(1)
    with torch.device(device):
        model = Gpt(layers, width, heads, context, vocabulary)
        batch = torch.randint(vocabulary, (sequences, context + 1))
    tokens, targets = batch[:, :-1].contiguous(), batch[:, 1:].contiguous()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    compiled = torch.compile(model)
    warm_up = 5
    seconds = []
    for step in range(warm_up + steps):
        finish(device)
        start = time.perf_counter()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = compiled(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        finish(device)
        if step >= warm_up:
            seconds.append(time.perf_counter() - start)
    if not math.isfinite(loss.item()):
        sys.exit("the loss is not finite")
    return seconds


def main():
    device = sys.argv[1]
    *shape, sequences, steps = map(int, sys.argv[2:])
    torch.set_float32_matmul_precision("high")
    while sequences >= 1:
        try:
            seconds = seconds_of_steps(device, shape, sequences, steps)
            held = torch.cuda.max_memory_allocated() if device == "cuda" else 0
            print(sequences, statistics.median(seconds), held)
            return
        except torch.OutOfMemoryError:
            pass  # freed below, when the exception no longer holds references
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        sequences //= 2
    sys.exit("not even one sequence fits")


main()
