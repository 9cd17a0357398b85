"""Records what ggml's own Python package makes of blocks at the edges: python record.py  (gguf 0.19, numpy 2)"""
import os

import numpy as np
from gguf import GGMLQuantizationType, quants

HERE = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(1)
normal = random.standard_normal((40, 32))
negative = random.standard_normal((4, 32))
negative[:, 7] = -9
ties = np.clip(random.integers(-127, 128, (20, 32)) + random.choice([0, 0.5, -0.5], (20, 32)), -127, 127)
ties[:10, 0], ties[10:, 0] = 127, -127
beside = ties.astype(np.float32)
beside[:, 1:] = np.nextafter(beside[:, 1:], random.choice([-1e9, 1e9], (20, 31)).astype(np.float32))
subnormal = random.integers(-3, 4, (4, 32)) * 1.4e-45
blocks = np.concatenate([
    normal, normal * 10.0 ** random.uniform(-42, 6, (40, 1)), negative, np.zeros((1, 32)), -np.zeros((1, 32)), subnormal,
    np.full((1, 32), -5), ties, ties / 4, ties * 2.0**-14, beside, np.full((1, 32), 65504 * 127.0)]).astype("<f4")
blocks.tofile(os.path.join(HERE, "q8_0.floats"))
quants.quantize(blocks, GGMLQuantizationType.Q8_0).tofile(os.path.join(HERE, "q8_0.blocks"))
