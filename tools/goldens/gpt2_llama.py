#!/usr/bin/python3
"""Forward and gradient goldens of GPT-2 and Llama from PyTorch, in double.

The models are written here from their papers' formulas, independently of models/.
Weights are a closed form of name and index that models/testing/golden.cc repeats, so
files hold results only. Debian's python3-torch is enough:

  tools/goldens/gpt2_llama.py            # rewrites models/testing/goldens/*.txt
  tools/goldens/gpt2_llama.py --check    # compares with what is there
"""
import argparse
import pathlib
import sys

import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "models/testing/goldens"
MASK64 = (1 << 64) - 1
SEED = 20

GPT2 = dict(architecture="GPT2", vocab_size=19, layers=2, model_dim=12, heads=3,
            ffn_dim=20, max_positions=16, norm_eps=1e-5)
LLAMA = dict(architecture="LLAMA", vocab_size=19, layers=2, model_dim=12, heads=4,
             kv_heads=2, head_dim=6, ffn_dim=10, max_positions=16, norm_eps=1e-5,
             rope_theta=100.0)
STARTS = [0, 7, 12]


def mix(x):
    """splitmix64's finaliser."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def unit(name, index):
    """A multiple of 2^-24 in [0, 1)."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK64
    return (mix((h + (index + 1) * 0x9E3779B97F4A7C15) & MASK64) >> 40) / 2.0**24


def weight(name, *shape):
    count = 1
    for n in shape:
        count *= n
    center = 1.0 if name.endswith("norm.weight") else 0.0
    values = [center + (unit(name, i) - 0.5) / 2 for i in range(count)]
    # Rounded to float, as the models hold them, then exact in double.
    tensor = torch.tensor(values, dtype=torch.float32).double().reshape(shape)
    return tensor.requires_grad_()


def draw_ints(name, count, below):
    return [int(unit(f"{name}/{SEED}", i) * below) for i in range(count)]


class Weights(dict):
    def add(self, name, *shape):
        self[name] = weight(name, *shape)

    def linear(self, name, x, bias=True):
        y = x @ self[name + ".weight"].T
        return y + self[name + ".bias"] if bias else y


def attend(q, k, v, heads, kv_heads):
    """Causal softmax attention of one sequence, each KV head shared by a group."""
    t = q.shape[0]
    q = q.reshape(t, heads, -1).transpose(0, 1)
    k = k.reshape(t, kv_heads, -1).transpose(0, 1).repeat_interleave(heads // kv_heads, 0)
    v = v.reshape(t, kv_heads, -1).transpose(0, 1).repeat_interleave(heads // kv_heads, 0)
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
    return mixed.transpose(0, 1).reshape(t, -1)


def gpt2(c):
    w = Weights()
    d, f = c["model_dim"], c["ffn_dim"]
    w.add("token_embedding.weight", c["vocab_size"], d)
    w.add("position_embedding.weight", c["max_positions"], d)
    for n in range(c["layers"]):
        p = f"layers.{n}."
        for norm in ("attention_norm", "ffn_norm"):
            w.add(p + norm + ".weight", d)
            w.add(p + norm + ".bias", d)
        for name, out, inp in (("attention.q", d, d), ("attention.k", d, d),
                               ("attention.v", d, d), ("attention.output", d, d),
                               ("ffn.up", f, d), ("ffn.down", d, f)):
            w.add(p + name + ".weight", out, inp)
            w.add(p + name + ".bias", out)
    w.add("final_norm.weight", d)
    w.add("final_norm.bias", d)

    def norm(x, name):
        return F.layer_norm(x, (d,), w[name + ".weight"], w[name + ".bias"], c["norm_eps"])

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))

    def forward(ids):
        positions = torch.arange(len(ids))
        x = w["token_embedding.weight"][ids] + w["position_embedding.weight"][positions]
        for n in range(c["layers"]):
            p = f"layers.{n}."
            h = norm(x, p + "attention_norm")
            q, k, v = (w.linear(p + "attention." + s, h) for s in "qkv")
            x = x + w.linear(p + "attention.output", attend(q, k, v, c["heads"], c["heads"]))
            h = norm(x, p + "ffn_norm")
            x = x + w.linear(p + "ffn.down", gelu(w.linear(p + "ffn.up", h)))
        return norm(x, "final_norm") @ w["token_embedding.weight"].T

    return w, forward


def llama(c):
    w = Weights()
    d, f, hd = c["model_dim"], c["ffn_dim"], c["head_dim"]
    qd, kd = c["heads"] * hd, c["kv_heads"] * hd
    w.add("token_embedding.weight", c["vocab_size"], d)
    for n in range(c["layers"]):
        p = f"layers.{n}."
        w.add(p + "attention_norm.weight", d)
        w.add(p + "ffn_norm.weight", d)
        for name, out, inp in (("attention.q", qd, d), ("attention.k", kd, d),
                               ("attention.v", kd, d), ("attention.output", d, qd),
                               ("ffn.gate", f, d), ("ffn.up", f, d), ("ffn.down", d, f)):
            w.add(p + name + ".weight", out, inp)
    w.add("final_norm.weight", d)
    w.add("head.weight", c["vocab_size"], d)

    def norm(x, name):
        mean_square = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(mean_square + c["norm_eps"]) * w[name + ".weight"]

    def rotate(x):
        t = x.shape[0]
        x = x.reshape(t, -1, hd)
        frequency = c["rope_theta"] ** (-torch.arange(0, hd, 2).double() / hd)
        angle = (torch.arange(t).double()[:, None] * frequency.float().double())[:, None, :]
        a, b = x[..., : hd // 2], x[..., hd // 2 :]
        cos, sin = angle.cos(), angle.sin()
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).reshape(t, -1)

    def forward(ids):
        x = w["token_embedding.weight"][ids]
        for n in range(c["layers"]):
            p = f"layers.{n}."
            h = norm(x, p + "attention_norm")
            q, k, v = (w.linear(p + "attention." + s, h, bias=False) for s in "qkv")
            mixed = attend(rotate(q), rotate(k), v, c["heads"], c["kv_heads"])
            x = x + w.linear(p + "attention.output", mixed, bias=False)
            h = norm(x, p + "ffn_norm")
            gate = F.silu(w.linear(p + "ffn.gate", h, bias=False))
            x = x + w.linear(p + "ffn.down", gate * w.linear(p + "ffn.up", h, bias=False),
                             bias=False)
        return norm(x, "final_norm") @ w["head.weight"].T

    return w, forward


def numbers(values):
    return " ".join(f"{v:.12g}" for v in values)


def golden(config, build):
    weights, forward = build(config)
    ids = draw_ints("ids", STARTS[-1], config["vocab_size"])
    targets = draw_ints("targets", STARTS[-1], config["vocab_size"])
    targets[3] = -1  # masked: neither loss nor gradient
    pieces = [forward(torch.tensor(ids[a:b])) for a, b in zip(STARTS, STARTS[1:])]
    logits = torch.cat(pieces)
    loss = F.cross_entropy(logits, torch.tensor(targets), ignore_index=-1)
    loss.backward()
    text = " ".join(f"{key}: {value}" for key, value in config.items())
    lines = [f"# tools/goldens/gpt2_llama.py, torch {torch.__version__}, double, seed {SEED}",
             "config " + text, "starts " + " ".join(map(str, STARTS)),
             "ids " + " ".join(map(str, ids)), "targets " + " ".join(map(str, targets)),
             "loss " + numbers([loss.item()]), "logits " + numbers(logits.flatten().tolist())]
    for name, value in weights.items():
        lines.append(f"gradient/{name} " + numbers(value.grad.flatten().tolist()))
    return "\n".join(lines) + "\n"


def same(a, b):
    """Equal but for the version in the first line and the last digits of numbers."""
    def close(x, y):
        try:
            return abs(float(x) - float(y)) <= 1e-9 * max(1, abs(float(x)))
        except ValueError:
            return x == y

    a, b = a.split("\n", 1)[1].split(), b.split("\n", 1)[1].split()
    return len(a) == len(b) and all(map(close, a, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    status = 0
    for name, text in (("gpt2", golden(GPT2, gpt2)), ("llama", golden(LLAMA, llama))):
        path = OUT / f"{name}.txt"
        if not args.check:
            path.write_text(text)
        elif not same(path.read_text(), text):
            print(f"{path} differs", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
