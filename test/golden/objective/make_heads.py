"""Golden values of objectives over the heads of an ensemble. Run: python3 make_heads.py PATH/methods.py

The embedding [m, DIM] is `heads` vectors side by side; a recipe's last line says how many."""
import os

import numpy as np

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'heads.safetensors'), with_taps=True)
rng = np.random.default_rng(17)
SOME = ('10x10', '5x8', 'distinct', 'oneclass', 'duplicates', 'single')


def split(x, heads):
    """[m, heads, d], every head L2-normalised on its own."""
    v = x.view(len(x), heads, -1)
    return v / v.norm(dim=2, keepdim=True).clamp_min(1e-12)


def add(name, heads, recipe, fn, state=None, only=None):
    g.add(name, '%s\n# heads %d' % (recipe, heads), fn, state, only)


# ------------------------------------------------------------------ abe, as methods.py has it

HORDE_LOSS = 'loss: {name: contrastive, form: horde}\n'
for heads in (2, 4):
    for pairs in ('all', 'self'):
        add('abe-%d_%s' % (heads, pairs), heads,
            HORDE_LOSS + 'regularizers:\n  - {name: head_divergence, weight: 0.5, pairs: %s}' % pairs,
            lambda x, y, pooled, fmap, heads=heads, pairs=pairs: M.abe(split(x, heads), y, pairs=pairs))


def divergence(heads, margin, pairs):
    def fn(x, y, pooled, fmap):
        h = split(x, heads)
        return M.abe(h, y, div_margin=margin, div_weight=1.0, pairs=pairs) - M.abe(h, y, div_weight=0.0)
    return fn


for pairs in ('all', 'self'):
    add('head_divergence-%s' % pairs, 4,
        'loss: {name: none}\nregularizers:\n  - {name: head_divergence, margin: 0.2, pairs: %s}' % pairs,
        divergence(4, 0.2, pairs))

# ------------------------------------------------------------------ other losses: the mean of the heads


def mean_of_heads(heads, loss):
    def fn(x, y, pooled, fmap):
        h = split(x, heads)
        return sum(loss(M.gram(h[:, k]), y) for k in range(heads)) / heads
    return fn


def both(name, heads, recipe, loss):
    add(name, heads, recipe, mean_of_heads(heads, loss), only=SOME)


both('heads_binomial', 2, 'loss: {name: binomial}', M.binomial)
both('heads_binomial_mean', 4, 'loss: {name: binomial, reduction: mean}', lambda S, y: M.binomial(S, y, reduction='mean'))
both('heads_raw_vthm', 2, 'loss: {name: raw}\nminer: {name: vthm, margin: 0.1}',
     lambda S, y: M.raw(S, y, keep=M.vthm(S, y)))


def binomial_of_all(S, y, alpha=2.0, beta=50.0, gamma=0.5):
    """Per anchor the kept terms over the pairs there were (CHOICE: as make_pair.py has it)."""
    keep, (pos, neg) = M.vthm(S, y), M.masks(y)
    softplus = lambda z: z.clamp_min(0) + (-z.abs()).exp().log1p()
    p = (softplus(-alpha * (S - gamma)) * (pos & keep)).sum(1) / pos.sum(1).clamp_min(1)
    n = (softplus(beta * (S - gamma)) * (neg & keep)).sum(1) / neg.sum(1).clamp_min(1)
    return (p + n).mean()


both('heads_binomial_all', 2, 'loss: {name: binomial, reduction: anchor_all}\nminer: {name: vthm, margin: 0.1}',
     binomial_of_all)
both('heads_contrastive', 2, 'loss: {name: contrastive}', lambda S, y: M.contrastive(S, y))
both('heads_triplet', 4, 'loss: {name: triplet, distance: euclidean, reduction: mean, margin: 0.2}',
     lambda S, y: M.triplet(S, y, distance='euclidean', reduction='mean', margin=0.2))
both('heads_lifted', 2, 'loss: {name: lifted}', M.lifted)

# ------------------------------------------------------------------ proxies are those of one head, shared by all


def proxies(x, y, pooled, fmap, proxies):
    h = split(x, 2)
    return (M.amsoftmax(h[:, 0], y, proxies) + M.amsoftmax(h[:, 1], y, proxies)) / 2


add('heads_amsoftmax', 2, 'loss: {name: amsoftmax}', proxies,
    {'proxies': rng.uniform(-0.1, 0.1, (golden.N_CLASSES, golden.DIM // 2)).astype(np.float32)}, SOME)

# ------------------------------------------------------------------ abe with HORDE: order 1 is the ensemble's embedding

C, D, EMB, K = golden.CHANNELS, 11, 5, 4
state = {'horde.w%d' % k: rng.uniform(-0.6, 0.6, (C, D)).astype(np.float32) for k in range(1, K + 1)}
state.update({'horde.e%d' % k: rng.uniform(-0.6, 0.6, (D, EMB)).astype(np.float32) for k in range(2, K + 1)})


def abe_horde(x, y, pooled, fmap, **kw):
    zs = M.horde_orders(fmap, [kw['horde_w%d' % k] for k in range(1, K + 1)], [kw['horde_e%d' % k] for k in range(2, K + 1)])
    # One head and no divergence: HORDE's own form of the contrastive loss.
    orders = sum(M.abe(z[:, None], y, div_weight=0.0) for z in zs)
    return M.abe(split(x, 4), y) + orders / 4


add('abe-horde', 4, HORDE_LOSS + 'regularizers:\n  - {name: head_divergence, weight: 0.5}\n'
    '  - {name: horde, orders: %d, dimension: %d, embedding: %d, weight: 0.25}' % (K, D, EMB), abe_horde, state, SOME)
g.save()
