"""Golden values of nested widths: the loss on the first numbers of the embedding, for several widths.
Run: python3 make_nested.py PATH/methods.py  (writes nested.safetensors beside this file)"""
import os

import numpy as np
import torch

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'nested.safetensors'))
unit = M.l2_normalize


def nested(loss, widths, weights=None):
    """Kusupati et al., NeurIPS 2022, Eq. 1; proxies are cut like the embedding (its weight-tied form)."""
    weights = weights or [1.0] * len(widths)

    def fn(x, y, **state):
        cut = {k: (lambda d, v=v: v[:, :d] if k == 'proxies' else v) for k, v in state.items()}
        terms = [w * loss(x[:, :d], y, **{k: v(d) for k, v in cut.items()}) for d, w in zip(widths, weights)]
        return sum(terms) / sum(weights)
    return fn


def case(name, recipe, loss, widths, weights=None, state=None):
    text = 'loss: %s\nnested: %s' % (recipe, widths)
    if weights:
        text += '\nnested_weights: %s' % weights
    g.add(name, text, nested(loss, widths, weights), state, only=['64x2', '10x10', '5x8', 'shuffled', 'single'])


W = {'proxies': np.random.default_rng(8).uniform(-1, 1, (golden.N_CLASSES, golden.DIM)).astype(np.float32)}
case('nested_binomial', '{name: binomial}', lambda x, y: M.binomial(M.gram(unit(x)), y), [2, 4, 8])
case('nested_binomial_weights', '{name: binomial}', lambda x, y: M.binomial(M.gram(unit(x)), y), [3, 5], [1, 3])
case('nested_raw', '{name: contrastive, normalize: false, neg_margin: 10}',
     lambda x, y: M.contrastive(M.gram(x), y, neg_margin=10.0), [1, 3, 8])
case('nested_vthm', '{name: raw}\nminer: {name: vthm, margin: 0.1}',
     lambda x, y: M.raw(M.gram(unit(x)), y, keep=M.vthm(M.gram(unit(x)), y)), [4, 8])
case('nested_amsoftmax', '{name: amsoftmax}', lambda x, y, proxies: M.amsoftmax(x, y, proxies), [2, 4, 8], None, W)


def margin(x, y, margin_beta, alpha=0.2):
    """Wu et al., ICCV 2017, Eq. 6; one boundary for all widths."""
    S = M.gram(unit(x))
    pos, neg = M.masks(y)
    d = (M.sqdist(S) + 1e-16).sqrt()
    t = torch.cat([(alpha + d - margin_beta)[pos], (alpha - d + margin_beta)[neg]]).clamp_min(0)
    return M.reduce_terms(t, torch.ones_like(t, dtype=torch.bool), 'nonzero')


case('nested_margin', '{name: margin}', margin, [3, 8], None, {'margin.beta': np.array([1.1], np.float32)})
short = nested(lambda x, y: M.binomial(M.gram(unit(x)), y), [2, 4])
g.add('nested_norm_l2', 'loss: {name: binomial}\nnested: [2, 4]\nregularizers: [{name: norm_l2, weight: 0.1}]',
      lambda x, y: short(x, y) + 0.1 * x.pow(2).sum(1).mean(), only=['10x10', 'shuffled'])
g.save()
