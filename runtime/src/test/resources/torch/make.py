"""Makes the files of this folder: python make.py, with torch 2.13.0 (CPU) and safetensors 0.8.0."""
import collections
import json
import os

import torch
from safetensors.torch import save_file

torch.manual_seed(7)
here = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(here, name)


table = torch.randn(4, 6)
tensors = collections.OrderedDict(
    {
        "wte.weight": table,
        "half": torch.randn(3, 5).half(),
        "bf": torch.randn(2, 3).bfloat16(),
        "double": torch.randn(3).double(),
        "lm_head.weight": table,
        "row": table[2],
        "transposed": table.t(),
        "columns": table[:, 1:4],
        "turned": torch.randn(2, 3, 4).permute(2, 0, 1),
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 4),
        "ints": torch.arange(5),
        "mask": torch.tril(torch.ones(4, 4, dtype=torch.uint8)).view(1, 1, 4, 4),
        "flags": torch.tensor([True, False]),
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
    }
)
torch.save(tensors, path("tensors.bin"))
torch.save(tensors, path("legacy.bin"), _use_new_zipfile_serialization=False)
save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, path("tensors.safetensors"))
torch.save(torch.nn.Linear(3, 2).state_dict(), path("module.bin"))
torch.save({"epoch": 3, "model": {"w": table}}, path("nested.bin"))
torch.save({"w": table.expand(5, 4, 6)}, path("expanded.bin"))


class Harm:
    def __reduce__(self):
        return os.system, ("touch harmed",)


torch.save({"w": Harm()}, path("harm.bin"))

names = list(tensors)
shards = {"one.bin": names[:7], "two.bin": names[7:]}
for file, part in shards.items():
    torch.save({n: tensors[n] for n in part}, path(file))
with open(path("pytorch_model.bin.index.json"), "w") as out:
    json.dump(
        {"metadata": {"total_size": 1}, "weight_map": {n: f for f, p in shards.items() for n in p}},
        out,
        indent=1,
    )
