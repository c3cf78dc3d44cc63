"""Golden values of losses on ranks, from their papers' formulas.
Run: python3 make_rank.py PATH/methods.py  (writes rank.safetensors beside this file)"""
import os

import torch

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'rank.safetensors'))


def ranks(s, pos, neg, temperature):
    """Soft ranks of the positives: among positives, and the count of negatives before each."""
    p, n = s[pos], s[neg]
    before = torch.sigmoid((p[None, :] - p[:, None]) / temperature) * (1 - torch.eye(len(p), dtype=golden.DT))
    return 1 + before.sum(1), torch.sigmoid((n[None, :] - p[:, None]) / temperature).sum(1)


def over_anchors(x, y, value):
    S = M.gram(M.l2_normalize(x))
    pos, neg = M.masks(y)
    terms = [1 - value(S[i], pos[i], neg[i]) for i in range(len(y)) if pos[i].any()]
    return torch.stack(terms).mean() if terms else S.sum() * 0


def smooth_ap(x, y, temperature=0.01):
    """Brown et al., ECCV 2020, Eq. 7."""
    def value(s, pos, neg):
        a, n = ranks(s, pos, neg, temperature)
        return (a / (a + n)).mean()
    return over_anchors(x, y, value)


def recall_at_k(x, y, k=16, temperature=0.01, k_temperature=1.0):
    """Patel et al., CVPR 2022, with the bound and the divisor of the authors' code."""
    levels = [2 ** i for i in range(11) if 2 ** i <= k]

    def value(s, pos, neg):
        a, n = ranks(s, pos, neg, temperature)
        out = 0
        for level in levels:
            found = torch.sigmoid((level - a - n) / (k_temperature * level)).sum().clamp_max(level)
            out = out + found / min(level, len(a)) / len(levels)
        return out
    return over_anchors(x, y, value)


def own(name, options, fn):
    g.add(name, 'loss: {name: %s}' % options, fn)


own('smooth_ap', 'smooth_ap', smooth_ap)
own('smooth_ap_wide', 'smooth_ap, temperature: 0.2', lambda x, y: smooth_ap(x, y, 0.2))
own('recall_at_k', 'recall_at_k', recall_at_k)
own('recall_at_k_wide', 'recall_at_k, k: 5, temperature: 0.2, k_temperature: 0.5',
    lambda x, y: recall_at_k(x, y, 5, 0.2, 0.5))
own('recall_at_k_bound', 'recall_at_k, k: 2, temperature: 0.1, k_temperature: 20',
    lambda x, y: recall_at_k(x, y, 2, 0.1, 20.0))
g.save()
