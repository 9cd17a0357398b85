"""Records what transformers computes of two tiny classifiers, in float64 from float32 weights.

  python record.py OUT        (torch 2.13.0, transformers 5.18.0, on a CPU)
"""
import json, pathlib, sys
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForSequenceClassification
from transformers import MegatronBertConfig, MegatronBertForSequenceClassification

LABELS = {0: "contradiction", 1: "entailment", 2: "neutral"}
SIZES = dict(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=24, max_position_embeddings=12, type_vocab_size=2,
             hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
             id2label=LABELS, label2id={v: k for k, v in LABELS.items()})
LENGTHS = [12, 7, 9, 5]      # of the rows of a batch of 4; what follows is padding
SECOND = [6, 4, 9, 2]        # the first token of the second text; row 2 has one text alone


def record(out, config, model):
    torch.manual_seed(7)
    model = model(config)
    for name, weight in model.named_parameters():
        normal = torch.randn_like(weight)
        gain = "LayerNorm.weight" in name or name.endswith("ln.weight")
        weight.data = 1 + 0.1 * normal if gain else 0.25 * normal
    model.train()            # no dropout: both probabilities are 0
    model.save_pretrained(out)
    rows, context = len(LENGTHS), SIZES["max_position_embeddings"]
    tokens = torch.randint(1, SIZES["vocab_size"], (rows, context))  # torch gives token 0 no gradient
    place = torch.arange(context)[None, :]
    mask = (place < torch.tensor(LENGTHS)[:, None]).long()
    types = ((place >= torch.tensor(SECOND)[:, None]) & (mask == 1)).long()
    labels = torch.tensor([2, 0, 1, 2])
    model.double()
    found = model(input_ids=tokens, attention_mask=mask, token_type_ids=types, labels=labels)
    found.loss.backward()
    expected = {"tokens": tokens, "lengths": torch.tensor(LENGTHS), "types": types, "labels": labels,
                "logits": found.logits.detach().contiguous(), "loss": found.loss.detach().reshape(1)}
    for name, weight in model.named_parameters():
        expected["grad." + name] = weight.grad.contiguous()
    save_file(expected, str(out / "expected.safetensors"))
    print(out, found.loss.item(), found.logits.argmax(1).tolist())


root = pathlib.Path(sys.argv[1])
record(root / "bert", BertConfig(**SIZES), BertForSequenceClassification)
record(root / "megatron-bert", MegatronBertConfig(**SIZES), MegatronBertForSequenceClassification)
