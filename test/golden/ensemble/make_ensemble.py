"""Write ensemble.safetensors: a step of the small ensemble of test/objective/ensemble.h, network and objective together, as
PyTorch computes it in float64 from float32 values.
Run: python3 make_ensemble.py PATH/methods.py"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../objective'))
import golden  # noqa: E402

M = golden.load_methods()
HEADS, EACH, MAP, WIDTH, SPLIT = 3, 4, 6, 10, 16
ORDERS, D, EMB = 3, 7, 5
rng = np.random.default_rng(23)
out = {}


def leaf(name, shape, low, high):
    values = rng.uniform(low, high, shape).astype(np.float32)
    out[name] = values
    return torch.tensor(values.astype(np.float64), requires_grad=True)


def weights(name, shape):
    bound = float(np.sqrt(6.0 / np.prod(shape[1:])))
    return leaf(name + '.weight', shape, -bound, bound)


p = {'conv1.weight': weights('conv1', (SPLIT, 3, 3, 3)), 'conv1.bias': leaf('conv1.bias', (SPLIT,), -0.2, 0.2)}
for prefix in ('attention.', ''):
    p[prefix + 'conv2.weight'] = weights(prefix + 'conv2', (WIDTH, SPLIT, 3, 3))
    p[prefix + 'bn2.weight'] = leaf(prefix + 'bn2.weight', (WIDTH,), 0.5, 1.5)
    p[prefix + 'bn2.bias'] = leaf(prefix + 'bn2.bias', (WIDTH,), -0.3, 0.3)
p['attention.heads.weight'] = weights('attention.heads', (HEADS * SPLIT, WIDTH, 1, 1))
p['attention.heads.bias'] = leaf('attention.heads.bias', (HEADS * SPLIT,), -0.5, 0.5)
p['map.weight'] = weights('map', (MAP, HEADS * WIDTH, 1, 1))
p['embedding.weight'] = weights('embedding', (EACH, WIDTH))
for k in range(1, ORDERS + 1):
    p['horde.w%d' % k] = leaf('horde.w%d' % k, (MAP, D), -0.6, 0.6)
for k in range(2, ORDERS + 1):
    p['horde.e%d' % k] = leaf('horde.e%d' % k, (D, EMB), -0.6, 0.6)
x = leaf('input', (9, 3, 13, 12), -1.5, 1.5)
y = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])


def conv_bn(prefix, t):
    t = F.conv2d(t, p[prefix + 'conv2.weight'], padding=1)
    return F.relu(F.batch_norm(t, None, None, p[prefix + 'bn2.weight'], p[prefix + 'bn2.bias'], training=True))


t = F.max_pool2d(F.relu(F.conv2d(x, p['conv1.weight'], p['conv1.bias'], padding=1)), 3, 2, ceil_mode=True)
logits = F.conv2d(conv_bn('attention.', t), p['attention.heads.weight'], p['attention.heads.bias'])
# A network for each head would be run on these; with shared weights the heads are rows, and a batch norm sees them all.
seen = [t * logits[:, k * SPLIT:(k + 1) * SPLIT].sigmoid() for k in range(HEADS)]
maps = F.max_pool2d(conv_bn('', torch.stack(seen, 1).flatten(0, 1)), 2, 2)
heads = F.linear(maps.mean((2, 3)), p['embedding.weight']).view(9, HEADS, EACH)
heads = heads / heads.norm(dim=2, keepdim=True)
side_by_side = torch.cat(list(maps.view(9, HEADS, *maps.shape[1:]).unbind(1)), 1)
fmap = F.conv2d(side_by_side, p['map.weight'])
orders = M.horde_orders(fmap, [p['horde.w%d' % k] for k in range(1, ORDERS + 1)],
                        [p['horde.e%d' % k] for k in range(2, ORDERS + 1)])
value = M.abe(heads, y, div_weight=0.5) + sum(M.abe(z[:, None], y, div_weight=0.0) for z in orders) / 4
value.backward()
out['value'] = np.array([float(value)])
out['tap.embedding'] = heads.detach().flatten(1).numpy().astype(np.float32)
out['tap.map'] = fmap.detach().numpy().astype(np.float32)
for name, tensor in dict(p, input=x).items():
    out['grad.' + name] = tensor.grad.numpy().astype(np.float32)
golden.save(os.path.join(HERE, 'ensemble.safetensors'), out, {})
print('%d tensors, value %.9g' % (len(out), float(value)))
