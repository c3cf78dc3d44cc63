"""What the scripts make_LIBRARY.py share: random parameters, and the files of one network (README.md says what they hold)."""
import json
import os
import sys
import zlib

import numpy as np
import torch

import safetensors as files

HERE = os.path.dirname(os.path.abspath(__file__))
# The libraries import the real package safetensors, which the file of that name here would hide.
sys.modules.pop("safetensors")
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
torch.set_num_threads(1)


def random_of(name, shape, seed):
    """Values that depend on name and seed alone, not on the order of the calls."""
    state = np.random.RandomState((zlib.crc32(name.encode()) + seed) % 2**32)
    return state, state.standard_normal(shape).astype(np.float32)


def parameter(name, shape, seed):
    """No default survives: scales lie in 0.5..1.5, the rest is normal, of a size that keeps activations near 1."""
    state, normal = random_of(name, shape, seed)
    vector = sum(n > 1 for n in shape) <= 1
    last = name.rsplit(".", 1)[-1]
    scales = ("weight", "gamma", "lambda1", "layer_scale", "layer_scale_parameter", "running_var")
    if vector and last in scales:
        return (0.5 + state.uniform(size=shape)).astype(np.float32)
    if vector:
        return 0.3 * normal
    if any(word in name for word in ("pos", "regist", "reg_token")):
        return 0.5 * normal
    fan_in = shape[0] if last == "proj" and len(shape) == 2 else int(np.prod(shape[1:]))
    return (1.2 / np.sqrt(fan_in)).astype(np.float32) * normal


def randomise(model, seed):
    state = model.state_dict()
    for name, value in state.items():
        if value.is_floating_point():
            value.copy_(torch.from_numpy(parameter(name, tuple(value.shape), seed)))
        elif name.endswith("num_batches_tracked"):
            value.fill_(1000)
    return model.eval()


def image(name, shape, seed):
    """Smooth pictures with some noise: plain noise looks the same everywhere after a patch embedding."""
    n, c, h, w = shape
    state, noise = random_of(name, shape, seed)
    y, x = np.arange(h)[:, None] / h, np.arange(w)[None, :] / w
    k = state.uniform(-12, 12, size=(2, n, c, 1, 1))
    return (np.sin(k[0] * y + k[1] * x + state.uniform(0, 6, size=(n, c, 1, 1))) + 0.5 * noise).astype(np.float32)


def numpy_of(state):
    return {k: v.detach().numpy() for k, v in state.items()}


def keep_gradients(out, prefix, model, grads):
    parameters = dict(model.named_parameters())
    for g in grads:
        out[prefix + g] = parameters[g].grad.numpy().copy()
        parameters[g].grad.zero_()


def save(library, name, make, forward, sizes, grads, config, pooled_grads=(), seed=1):
    """make() gives a fresh model; forward(model, x, i) gives (features, pooled or None), i is 0 for the first of the two sizes;
    grads names the parameters whose gradients are kept, pooled_grads those of the pooled vector's; config is a dict, or a text that
    the library wrote."""
    def fresh():
        torch.manual_seed(seed)
        return randomise(make(), seed)

    out = {}
    for i, size in enumerate(sizes):
        suffix = "" if i == 0 else str(i + 1)
        x = image(name + ".input" + suffix, size, seed)
        model = fresh()
        features, pooled = forward(model, torch.from_numpy(x), i)
        out["input" + suffix] = x
        out["features" + suffix] = features.detach().numpy()
        if pooled is not None:
            out["pooled" + suffix] = pooled.detach().numpy()
        if i == 0:
            out["r"] = random_of(name + ".r", tuple(features.shape), seed)[1]
            (features * torch.from_numpy(out["r"])).sum().backward(retain_graph=True)
            keep_gradients(out, "grad:", model, grads)
            if pooled_grads:
                out["r_pooled"] = random_of(name + ".r_pooled", tuple(pooled.shape), seed)[1]
                model.zero_grad()
                (pooled * torch.from_numpy(out["r_pooled"])).sum().backward()
                keep_gradients(out, "pooled_grad:", model, pooled_grads)
    folder = os.path.join(HERE, library)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    files.write(path + ".safetensors", numpy_of(fresh().state_dict()))
    files.write(path + ".golden.safetensors", out)
    text = config if isinstance(config, str) else json.dumps(config, indent=2, sort_keys=True) + "\n"
    with open(path + ".config.json", "w") as f:
        f.write(text)
    spread = {k: "%s %.3g" % (list(v.shape), np.abs(v).max()) for k, v in out.items() if k[:2] not in ("r", "r_", "gr", "po")}
    print(library, name, os.path.getsize(path + ".safetensors"), os.path.getsize(path + ".golden.safetensors"), spread)


def save_names(library, name, state):
    """The names and shapes of a state dict, of a model of the true size."""
    folder = os.path.join(HERE, "names")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "%s.%s.txt" % (library, name)), "w") as f:
        for key, value in state.items():
            f.write("%s %s\n" % (key, "x".join(map(str, value.shape)) or "scalar"))
