"""A training step of GPT-2's or Llama's shape in PyTorch at its best: torch.compile, scaled_dot_product_attention, fused AdamW,
float32 weights. Arguments: device precision-of-products layers width heads key-heads (0: GPT-2) hidden context vocabulary
sequences steps

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
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x, turns):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.ln_1(x)).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


def turned(x, turns):
    cosines, sines = turns
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), dim=-1) * sines


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, key_heads, hidden):
        super().__init__()
        self.heads, self.key_heads, self.columns = heads, key_heads, width // heads
        self.norm_1 = nn.RMSNorm(width, eps=1e-5)
        self.qkv = nn.Linear(width, (heads + 2 * key_heads) * self.columns, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm_2 = nn.RMSNorm(width, eps=1e-5)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, turns):
        batch, length, width = x.shape
        heads = self.qkv(self.norm_1(x)).view(batch, length, -1, self.columns).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.key_heads, self.key_heads), dim=1)
        mixed = F.scaled_dot_product_attention(turned(q, turns), turned(k, turns), v, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, key_heads, hidden, context, vocabulary):
        super().__init__()
        padded = 64 * math.ceil(vocabulary / 64)  # as PyTorch's users do: the product for the logits is much faster
        self.tokens = nn.Embedding(padded, width)
        if key_heads == 0:
            self.positions = nn.Parameter(0.02 * torch.randn(context, width))
            self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
            self.ln_f = nn.LayerNorm(width)
        else:
            self.positions = None
            self.blocks = nn.ModuleList(LlamaBlock(width, heads, key_heads, hidden) for _ in range(layers))
            self.ln_f = nn.RMSNorm(width, eps=1e-5)
            columns = width // heads
            angles = torch.outer(torch.arange(context), 10_000.0 ** (-torch.arange(0, columns, 2) / columns)).repeat(1, 2)
            self.register_buffer("cosines", angles.cos())
            self.register_buffer("sines", angles.sin())
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        turns = None
        if self.positions is None:
            turns = (self.cosines.to(x.dtype), self.sines.to(x.dtype))
        else:
            x = x + self.positions
        for block in self.blocks:
            x = block(x, turns)
        logits = F.linear(self.ln_f(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of_steps(device, precision, shape, sequences, steps):
    """Without the first ones, which compile."""
    *_, context, vocabulary = shape
    torch.manual_seed(1)
    with torch.device(device):
        model = Gpt(*shape)
        batch = torch.randint(vocabulary, (sequences, context + 1))
    tokens, targets = batch[:, :-1].contiguous(), batch[:, 1:].contiguous()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    compiled = torch.compile(model)
    warm_up = 5
    seconds = []
    for step in range(warm_up + steps):
        finish(device)
        start = time.perf_counter()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
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
    device, precision = sys.argv[1:3]
    *shape, sequences, steps = map(int, sys.argv[3:])
    torch.set_float32_matmul_precision("high")
    while sequences >= 1:
        try:
            seconds = seconds_of_steps(device, precision, shape, sequences, steps)
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
