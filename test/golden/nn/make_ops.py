#!/usr/bin/env python3
"""Write ops.safetensors: every case of test/cases/small.txt that PyTorch can judge, with drawn
sources and parameters, the output, and all gradients, computed in float64 and stored as float32.

A tensor is named "CASE LINE|NAME". Left out: dropout and drop_path in training (their masks are ours).
Run: python3 make_ops.py   (PyTorch 1.13; the numbers do not depend on its version)"""
import json
import os
import re
import struct

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "../../cases/small.txt")


def parse(line):
    words = line.split()
    number, flag = {}, set()
    for word in words[1:]:
        match = re.fullmatch(r"([A-Za-z_]+)([-+0-9.].*)?", word)
        if match.group(2) is None:
            flag.add(word)
        else:
            number[match.group(1)] = float(match.group(2))
    return words[0], number, flag


class Case:
    def __init__(self, line, rng):
        self.line, self.rng, self.out = line, rng, {}
        self.op, self.number, self.flag = parse(line)
        self.leaves = {}

    def size(self, key, otherwise=None):
        return int(self.number.get(key, otherwise))

    def keep(self, name, tensor):
        self.out[name] = tensor.detach().numpy().astype(np.float32)

    def leaf(self, name, shape, low=None, high=None, trained=True):
        """Values are rounded to float32 first, so that what is stored is what was used."""
        x = self.rng.standard_normal(shape) if low is None else self.rng.uniform(low, high, shape)
        tensor = torch.tensor(x.astype(np.float32).astype(np.float64), requires_grad=trained)
        self.keep(name, tensor)
        if trained:
            self.leaves[name] = tensor
        return tensor

    def source(self, name="src0", ic=None, low=None, high=None):
        ic = self.size("ic") if ic is None else ic
        shape = [self.size("mb"), ic]
        if "nt" in self.number:
            shape.insert(1, self.size("nt"))
        if "ih" in self.number:
            shape += [self.size("ih"), self.size("iw", self.size("ih"))]
        return self.leaf(name, shape, low, high)

    @staticmethod
    def per_channel(p, x):
        """A parameter [c] to be multiplied with x."""
        return p.view(-1, 1, 1) if x.dim() == 4 else p

    def forward(self):
        return getattr(self, "do_" + self.op)()

    def do_conv2d(self):
        x = self.source()
        oc, kh = self.size("oc"), self.size("kh")
        kw, sh, ph = self.size("kw", kh), self.size("sh", 1), self.size("ph", 0)
        groups = self.size("groups", 1)
        w = self.leaf("weight", [oc, x.shape[1] // groups, kh, kw])
        b = self.leaf("bias", [oc]) if "bias" in self.flag else None
        return F.conv2d(x, w, b, stride=(sh, self.size("sw", sh)), padding=(ph, self.size("pw", ph)), groups=groups)

    def do_batch_norm(self):
        x = self.source()
        c = x.shape[1]
        gamma, beta = self.leaf("weight", [c], 0.5, 1.5), self.leaf("bias", [c])
        mean = self.leaf("running_mean", [c], trained=False)
        var = self.leaf("running_var", [c], 0.5, 1.5, trained=False)
        is_training = not ({"frozen", "infer"} & self.flag)
        y = F.batch_norm(x, mean, var, gamma, beta, is_training,
                         self.number.get("momentum", 0.1), self.number.get("eps", 1e-5))
        self.keep("new_running_mean", mean)
        self.keep("new_running_var", var)
        return y

    def do_relu(self):
        return F.relu(self.source())

    def do_pool(self):
        k, s, p = self.size("k"), self.size("s"), self.size("p", 0)
        if "max" in self.flag:
            return F.max_pool2d(self.source(), k, s, p, ceil_mode="ceil" in self.flag)
        return F.avg_pool2d(self.source(), k, s, p, ceil_mode="ceil" in self.flag,
                            count_include_pad="count_pad" in self.flag)

    def do_lrn(self):
        return F.local_response_norm(self.source(), self.size("size", 5), self.number.get("alpha", 1e-4),
                                     self.number.get("beta", 0.75), self.number.get("k", 1))

    def do_concat(self):
        keys = [key for key in ("c" + letter for letter in "abcdefgh") if key in self.number]
        src = [self.source("src%d" % i, self.size(key)) for i, key in enumerate(keys)]
        if "masked" not in self.flag:
            return torch.cat(src, 1)
        # The sources are ReLU outputs, whose masks the concat applies to the gradients it hands down.
        before = src
        src = [F.relu(x) for x in before]
        for i, x in enumerate(src):
            self.keep("src%d" % i, x)
        return torch.cat(src, 1)

    def do_add(self):
        return self.source("src0") + self.source("src1")

    def do_linear(self):
        x = self.source()
        w = self.leaf("weight", [self.size("oc"), x.shape[-1]])
        b = self.leaf("bias", [self.size("oc")]) if "bias" in self.flag else None
        return F.linear(x, w, b)

    def do_dropout(self):
        return F.dropout(self.source(), self.number["p"], training=False)

    def do_global_pool(self):
        x = self.source()
        if "gem" in self.flag:
            p = self.leaf("p", [1], 1.5, 4)
            return x.clamp_min(1e-6).pow(p).mean((2, 3)).pow(1 / p)
        average, maximum = x.mean((2, 3)), x.flatten(2).max(2).values
        return average if "avg" in self.flag else maximum if "max" in self.flag else average + maximum

    def do_l2_norm(self):
        x = self.source()
        return x / x.norm(dim=1, keepdim=True).clamp_min(self.number.get("eps", 1e-12))

    def positions(self, stored, h, w):
        """Of [grid_h * grid_w, c], for a map of h x w."""
        gh = self.size("gh")
        gw, offset = self.size("gw", gh), self.number.get("offset", 0)
        if (gh, gw) == (h, w):
            return stored
        x = stored.view(1, gh, gw, -1).permute(0, 3, 1, 2)
        how = {"scale_factor": ((h + offset) / gh, (w + offset) / gw)} if offset else {"size": (h, w)}
        y = F.interpolate(x, mode="bilinear" if "bilinear" in self.flag else "bicubic", align_corners=False,
                          antialias="antialias" in self.flag, **how)
        return y.flatten(2)[0].t()

    def do_tokens(self):
        x = self.source()
        mb, c, h, w = x.shape
        rows, pixels = [], x.flatten(2).transpose(1, 2)
        own = 1 if "classpos" in self.flag else 0
        first = self.leaf("class", [c])[None] if "class" in self.flag else None
        if "gh" in self.number:
            gh = self.size("gh")
            stored = self.leaf("positions", [own + gh * self.size("gw", gh), c])
            pixels = pixels + self.positions(stored[own:], h, w)
            first = first + stored[:1] if own else first
        if first is not None:
            rows.append(first.expand(mb, 1, c))
        if "registers" in self.number:
            rows.append(self.leaf("registers", [self.size("registers"), c]).expand(mb, -1, -1))
        return torch.cat(rows + [pixels], 1)

    def do_grid(self):
        h, skip = self.size("ih"), self.size("skip", 0)
        w = self.size("iw", h)
        x = self.leaf("src0", [self.size("mb"), skip + h * w, self.size("ic")])
        return x[:, skip:].transpose(1, 2).unflatten(2, (h, w))

    def do_token(self):
        return self.source()[:, self.size("at", 0)]

    def do_probe(self):
        x = self.source()
        return self.leaf("weight", [self.size("n", 1), x.shape[2]]).expand(len(x), -1, -1) + 0 * x.sum()

    def do_layer_norm(self):
        x = self.source()
        c = x.shape[1] if x.dim() == 4 else x.shape[-1]
        rows = x.permute(0, 2, 3, 1) if x.dim() == 4 else x
        gamma, eps = self.leaf("weight", [c], 0.5, 1.5), self.number.get("eps", 1e-5)
        if "rms" in self.flag:
            y = gamma * rows / (rows.square().mean(-1, keepdim=True) + eps).sqrt()
        else:
            y = F.layer_norm(rows, [c], gamma, self.leaf("bias", [c]), eps)
        return y.permute(0, 3, 1, 2) if x.dim() == 4 else y

    def do_act(self):
        how = {"gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
               "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x), "silu": F.silu, "sigmoid": torch.sigmoid,
               "hard_swish": F.hardswish, "hard_sigmoid": F.hardsigmoid}
        return how[(self.flag & set(how)).pop()](self.source(low=-6, high=6))

    def do_glu(self):
        a, b = self.source().chunk(2, -1)
        return F.silu(a) * b

    def do_layer_scale(self):
        x = self.source()
        return x * self.per_channel(self.leaf("gamma", [self.size("ic")]), x)

    def do_drop_path(self):
        return self.source() * 1

    def do_gate(self):
        x = self.source("src0")
        factor = self.leaf("src1", [x.shape[0], x.shape[1]])
        return x * factor[:, :, None, None]

    def do_grn(self):
        x = self.source()
        gamma, beta = self.leaf("weight", [x.shape[1]]), self.leaf("bias", [x.shape[1]])
        norm = x.norm(dim=(2, 3), keepdim=True)
        n = norm / (norm.mean(1, keepdim=True) + self.number.get("eps", 1e-6))
        return self.per_channel(gamma, x) * x * n + self.per_channel(beta, x) + x

    def do_attend(self):
        x, heads = self.source("src0"), self.size("heads")
        z = self.source("src1", heads * x.shape[1])
        return (x[:, None] * z.view(x.shape[0], heads, *x.shape[1:]).sigmoid()).flatten(0, 1)

    def do_unfold(self):
        mb, heads = self.size("mb"), self.size("heads")
        self.number["mb"] = mb * heads
        x = self.source()
        return x.view(mb, heads, *x.shape[1:]).flatten(1, 2)

    def do_attention(self):
        mb, ic, heads = self.size("mb"), self.size("ic"), self.size("heads")
        window, shift, h = self.size("window", 0), self.size("shift", 0), self.size("h", 1)
        w, d = self.size("w", h), ic // heads
        rows, nt = (mb * h * w, window ** 2) if window else (mb, self.size("nt"))
        if "ns" in self.number:
            q = self.leaf("src0", [mb, self.size("ns"), ic])
            k, v = self.leaf("src1", [mb, nt, 2 * ic]).chunk(2, 2)
        else:
            q, k, v = self.leaf("src0", [rows, nt, 3 * ic]).chunk(3, 2)
        q, k, v = (x.unflatten(2, (heads, d)).transpose(1, 2) for x in (q, k, v))
        scores = q @ k.transpose(2, 3) / d ** 0.5
        if window:
            table = self.leaf("bias_table", [(2 * window - 1) ** 2, heads])
            place = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
            apart = place[:, :, None] - place[:, None, :] + window - 1
            scores = scores + table[apart[0] * (2 * window - 1) + apart[1]].permute(2, 0, 1)
        if shift:
            # As Swin's own code does it: number the regions of the rolled grid, cut into windows.
            region, number = torch.zeros(h * window, w * window), 0
            for y in (slice(0, -window), slice(-window, -shift), slice(-shift, None)):
                for x in (slice(0, -window), slice(-window, -shift), slice(-shift, None)):
                    region[y, x] = number
                    number += 1
            region = region.view(h, window, w, window).transpose(1, 2).reshape(h * w, -1)
            apart = (region[:, None, :] != region[:, :, None]).double() * -100
            scores = scores + apart.repeat(mb, 1, 1)[:, None]
        return (scores.softmax(3) @ v).transpose(1, 2).flatten(2)

    def grid(self):
        h = self.size("ih")
        return self.size("mb"), h, self.size("iw", h), self.size("ic")

    def do_windows(self):
        mb, h, w, c = self.grid()
        side, shift = self.size("side"), self.size("shift", 0)
        rows, columns = -(-h // side), -(-w // side)
        if "back" in self.flag:
            x = self.leaf("src0", [mb * rows * columns, side ** 2, c])
            x = x.view(mb, rows, columns, side, side, c).transpose(2, 3).reshape(mb, rows * side, columns * side, c)
            return x.roll((shift, shift), (1, 2))[:, :h, :w].flatten(1, 2)
        x = self.leaf("src0", [mb, h * w, c]).view(mb, h, w, c)
        x = F.pad(x, (0, 0, 0, columns * side - w, 0, rows * side - h)).roll((-shift, -shift), (1, 2))
        x = x.view(mb, rows, side, columns, side, c).transpose(2, 3)
        return x.reshape(mb * rows * columns, side ** 2, c)

    def do_merge(self):
        mb, h, w, c = self.grid()
        x = F.pad(self.leaf("src0", [mb, h * w, c]).view(mb, h, w, c), (0, 0, 0, w % 2, 0, h % 2))
        four = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
        return torch.cat(four, 3).flatten(1, 2)

    def run(self):
        y = self.forward()
        if "relu" in self.flag:
            y = F.relu(y)
        self.keep("dst", y)
        if "infer" in self.flag:
            return self.out
        diff = self.rng.standard_normal(tuple(y.shape)).astype(np.float32).astype(np.float64)
        self.keep("diff_dst", torch.tensor(diff))
        y.backward(torch.tensor(diff))
        for name, leaf in self.leaves.items():
            self.keep("diff_" + name, leaf.grad)
        return self.out


def adam(rng):
    """Five steps of Adam with L2 decay and of AdamW, in float64 from float32 values."""
    out = {}
    for name, make in (("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)):
        value = rng.standard_normal(40).astype(np.float32)
        diffs = rng.standard_normal((5, 40)).astype(np.float32)
        x = torch.tensor(value.astype(np.float64), requires_grad=True)
        optimizer = make([x], lr=0.01, betas=(0.9, 0.99), eps=1e-3, weight_decay=0.1)
        for diff in diffs:
            x.grad = torch.tensor(diff.astype(np.float64))
            optimizer.step()
        out.update({name + "|value": value, name + "|diffs": diffs, name + "|new_value": x.detach().numpy().astype(np.float32)})
    return out


def write_safetensors(path, tensors):
    kinds = {"float32": "F32", "int32": "I32"}
    header, blobs, at = {}, [], 0
    for name, array in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    return 8 + len(text) + at


def main():
    tensors = {}
    for line in open(CASES):
        line = line.split("#")[0].strip()
        if not line:
            continue
        op, _, flag = parse(line)
        if op in ("dropout", "drop_path") and "infer" not in flag:
            continue
        rng = np.random.default_rng([1] + list(line.encode()))
        for name, array in Case(line, rng).run().items():
            tensors["%s|%s" % (line, name)] = array
    tensors.update(adam(np.random.default_rng(2)))
    n = write_safetensors(os.path.join(HERE, "ops.safetensors"), tensors)
    print("%d tensors, %d bytes" % (len(tensors), n))


main()
