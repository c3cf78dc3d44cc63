"""Golden values of pair losses and miners, from methods.py.
Run: python3 make_pair.py PATH/methods.py  (writes pair.safetensors beside this file)"""
import math
import os

import numpy as np
import torch

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'pair.safetensors'))
unit = M.l2_normalize


def pair(name, loss, miner=None, **options):
    """A case on normalised embeddings, options as in the recipe."""
    text = ', '.join('%s: %s' % (k, v) for k, v in options.items())
    recipe = 'loss: {name: %s%s}' % (loss, ', ' + text if text else '')
    kw = {k: v for k, v in options.items() if k != 'normalize'}
    prepare = (lambda x: x) if options.get('normalize') == 'false' else unit

    def fn(x, y):
        S = M.gram(prepare(x))
        if miner:
            return getattr(M, loss)(S, y, **kw, **miner[1](S, y))
        return getattr(M, loss)(S, y, **kw)
    if miner:
        recipe += '\nminer: ' + miner[0]
    g.add(name, recipe, fn)


for distance in ('sqeuclidean', 'euclidean', 'cosine'):
    for reduction in ('sum', 'mean', 'nonzero'):
        pair('contrastive_%s_%s' % (distance, reduction), 'contrastive', distance=distance, reduction=reduction,
             neg_margin={'cosine': 0.5}.get(distance, 1.0))
pair('contrastive_cosine_two_margins', 'contrastive', distance='cosine', pos_margin=0.8, neg_margin=0.2)
pair('contrastive_two_margins', 'contrastive', distance='euclidean', pos_margin=0.2, neg_margin=1.2)
pair('contrastive_raw', 'contrastive', normalize='false', neg_margin=10.0)


def horde_form(x, y):
    """HORDE authors' code, as read from it."""
    S = M.gram(unit(x))
    pos, neg = M.masks(y)
    out = S.sum() * 0
    if pos.any():
        out = out + ((S[pos] - 1) ** 2 / 2).mean()
    t = (S[neg] - 0.5).clamp_min(0)
    n = (t > 0).sum()
    return out + (t.sum() / (2 * n) if n > 0 else 0)


g.add('contrastive_horde', 'loss: {name: contrastive, form: horde}', horde_form)

for distance in ('sqeuclidean', 'euclidean', 'cosine'):
    for reduction in ('sum', 'mean', 'nonzero'):
        pair('triplet_%s_%s' % (distance, reduction), 'triplet', distance=distance, reduction=reduction, margin=0.2)
pair('triplet', 'triplet')
pair('npair', 'npair')
pair('npair_scale_sum', 'npair', scale=10.0, reduction='sum')
pair('npair_raw', 'npair', normalize='false')
g.add('npair_l2', 'loss: {name: npair, normalize: false, l2: 0.02}',
      lambda x, y: M.npair(M.gram(x), y) + 0.02 * x.pow(2).sum(1).mean(), only=['64x2', '10x10', '5x8', 'oneclass'])
for reduction in ('anchor', 'sum', 'mean'):
    pair('binomial_' + reduction, 'binomial', reduction=reduction)
pair('lifted', 'lifted')
pair('lifted_margin', 'lifted', margin=-0.5)
pair('raw', 'raw')
pair('raw_soft', 'raw', alpha=1.0, beta=10.0, gamma=0.3)

# ---- miners, where methods.py has them
keep_vthm = ('{name: vthm, margin: 0.1}', lambda S, y: dict(keep=M.vthm(S, y)))
pair('raw_vthm', 'raw', keep_vthm)
pair('binomial_vthm', 'binomial', keep_vthm)
pair('contrastive_vthm', 'contrastive', keep_vthm)


def binomial_of_all(x, y, alpha=2.0, beta=50.0, gamma=0.5):
    """Unified view Eq. 12 with the weights of Eq. 13 on the mined pairs: divided by all pairs of the anchor."""
    S = M.gram(unit(x))
    keep, (pos, neg) = M.vthm(S, y), M.masks(y)
    tp, tn = M.softplus(alpha * (gamma - S)), M.softplus(beta * (S - gamma))
    return ((tp * (pos & keep)).sum(1) / pos.sum(1).clamp_min(1) + (tn * (neg & keep)).sum(1) / neg.sum(1).clamp_min(1)).mean()


g.add('binomial_vthm_all', 'loss: {name: binomial, reduction: anchor_all}\nminer: {name: vthm, margin: 0.1}', binomial_of_all)
g.add('binomial_anchor_all', 'loss: {name: binomial, reduction: anchor_all}', lambda x, y: M.binomial(M.gram(unit(x)), y))
for distance in ('sqeuclidean', 'euclidean', 'cosine'):
    for reduction in ('mean', 'nonzero'):
        pair('triplet_semihard_%s_%s' % (distance, reduction), 'triplet',
             ('{name: semihard, margin: 0.3}', lambda S, y: dict(abc=M.semihard_triplets(S, y, 0.3))),
             distance=distance, reduction=reduction)
pair('triplet_hard', 'triplet', ('{name: hard}', lambda S, y: dict(abc=M.hard_triplets(S, y))), margin=0.2)


def keep_pair_margin(S, y, pos_margin=0.4, neg_margin=1.1):
    pos, neg = M.masks(y)
    d = M.sqdist(S.detach()).sqrt()
    return dict(keep=(pos & (d > pos_margin)) | (neg & (d < neg_margin)))


pair('contrastive_pair_margin', 'contrastive', ('{name: pair_margin, pos_margin: 0.4, neg_margin: 1.1}', keep_pair_margin))

# ---- losses that methods.py does not have, from their papers' formulas


def view(x, y):
    S = M.gram(unit(x))
    pos, neg = M.masks(y)
    return S, pos, neg


def angular(x, y, angle=45.0):
    """Wang et al., ICCV 2017, Eq. 7 and 8, one term for every ordered positive pair."""
    S, pos, neg = view(x, y)
    sq = math.tan(math.radians(angle)) ** 2
    terms = []
    for a, p in pos.nonzero().tolist():
        f = 4 * sq * (S[a, neg[a]] + S[p, neg[a]]) - 2 * (1 + sq) * S[a, p]
        terms.append(torch.logsumexp(torch.cat([f.new_zeros(1), f]), 0))
    return torch.stack(terms).mean() if terms else S.sum() * 0


def soft_histogram(v, nodes):
    """Triangular weights of values v at evenly spaced nodes; values beyond the ends sit at the end."""
    step = nodes[1] - nodes[0]
    v = v.clamp(nodes[0], nodes[-1])
    return (1 - (v[:, None] - nodes[None, :]).abs() / step).clamp_min(0)


def histogram(x, y, bins=151):
    """Ustinova and Lempitsky, NIPS 2016, Eq. 1 to 4."""
    S, pos, neg = view(x, y)
    if not pos.any() or not neg.any():
        return S.sum() * 0
    nodes = torch.linspace(-1, 1, bins, dtype=golden.DT)
    hp, hn = soft_histogram(S[pos], nodes).mean(0), soft_histogram(S[neg], nodes).mean(0)
    return (hn * hp.cumsum(0)).sum()


def margin(x, y, margin_beta, alpha=0.2, nu=0.0, reduction='nonzero', per_class=False):
    """Wu et al., ICCV 2017, Eq. 6 and 7."""
    S, pos, neg = view(x, y)
    d = (M.sqdist(S) + 1e-16).sqrt()
    b = (margin_beta[y] if per_class else margin_beta.expand(len(y)))
    t = torch.cat([(alpha + d - b[:, None])[pos], (alpha - d + b[:, None])[neg]]).clamp_min(0)
    return M.reduce_terms(t, torch.ones_like(t, dtype=torch.bool), reduction) + nu * b.mean()


def circle(x, y, margin=0.4, gamma=80.0, detach=True):
    """Sun et al., CVPR 2020, Eq. 6 to 8; the paces are constants for the gradient as in its Eq. 9."""
    S, pos, neg = view(x, y)
    pace = S.detach() if detach else S
    ap, an = (1 + margin - pace).clamp_min(0), (pace + margin).clamp_min(0)
    ok = pos.any(1) & neg.any(1)
    out = S.sum() * 0
    if ok.any():
        zp = M.masked_logsumexp(-gamma * ap * (S - 1 + margin), pos)[ok]
        zn = M.masked_logsumexp(gamma * an * (S - margin), neg)[ok]
        out = out + M.softplus(zp + zn).sum()
    return out / len(y)


def supcon(x, y, temperature=0.1):
    """Khosla et al., NeurIPS 2020, Eq. 2."""
    S, pos, neg = view(x, y)
    z = S / temperature
    ok = pos.any(1)
    if not ok.any():
        return S.sum() * 0
    lse = M.masked_logsumexp(z, pos | neg)
    per = lse - (z * pos).sum(1) / pos.sum(1).clamp_min(1)
    return per[ok].mean()


def ntxent(x, y, temperature=0.1):
    """Chen et al., ICML 2020, Eq. 1, other positives left out of the denominator."""
    return M.npair(M.gram(unit(x)), y, 1 / temperature)


def ranked_list(x, y, alpha=1.2, margin=0.4, temperature=10.0, lam=0.5):
    """Wang et al., CVPR 2019, Eq. 4 to 10."""
    S, pos, neg = view(x, y)
    d = (M.sqdist(S) + 1e-16).sqrt()
    out = S.sum() * 0
    for i in range(len(y)):
        p, n = d[i, pos[i]], d[i, neg[i]]
        p, n = p[p > alpha - margin], n[n < alpha]
        if len(p):
            out = out + (1 - lam) * (p - alpha + margin).mean()
        if len(n):
            out = out + lam * (torch.softmax(temperature * (alpha - n), 0) * (alpha - n)).sum()
    return out / len(y)


def fastap(x, y, bins=10):
    """Cakir et al., CVPR 2019, Eq. 7 and 8."""
    S, pos, neg = view(x, y)
    D = M.sqdist(S)
    nodes = torch.linspace(0, 4, bins + 1, dtype=golden.DT)
    terms = []
    for i in range(len(y)):
        if not pos[i].any():
            continue
        hp = soft_histogram(D[i, pos[i]], nodes).sum(0)
        h = hp + soft_histogram(D[i, neg[i]], nodes).sum(0)
        Hp, H = hp.cumsum(0), h.cumsum(0)
        ok = H > 0
        terms.append(1 - (hp[ok] * Hp[ok] / H[ok]).sum() / pos[i].sum())
    return torch.stack(terms).mean() if terms else S.sum() * 0


def own(name, options, fn, state=None, note=''):
    g.add(name, 'loss: {name: %s}%s' % (options, note), fn, state)


own('angular', 'angular', angular)
own('angular_36', 'angular, angle: 36', lambda x, y: angular(x, y, 36.0))
own('histogram', 'histogram', histogram)
own('histogram_20', 'histogram, bins: 20', lambda x, y: histogram(x, y, 20))
beta = {'margin.beta': np.array([1.1], np.float32)}
betas = {'margin.beta': np.linspace(0.8, 1.3, golden.N_CLASSES).astype(np.float32)}
own('margin', 'margin', margin, beta)
own('margin_sum', 'margin, reduction: sum, nu: 0.3',
    lambda x, y, margin_beta: margin(x, y, margin_beta, nu=0.3, reduction='sum'), beta)
own('margin_classes', 'margin, reduction: mean, per_class: true, nu: 0.1',
    lambda x, y, margin_beta: margin(x, y, margin_beta, nu=0.1, reduction='mean', per_class=True), betas)
own('circle', 'circle', circle, note=' # the gradient is not the derivative')
own('circle_exact', 'circle, detach: false', lambda x, y: circle(x, y, detach=False))
own('circle_soft', 'circle, detach: false, margin: 0.1, gamma: 16', lambda x, y: circle(x, y, 0.1, 16.0, False))
own('supcon', 'supcon', supcon)
own('supcon_1', 'supcon, temperature: 1', lambda x, y: supcon(x, y, 1.0))
own('ntxent', 'ntxent', ntxent)
own('ranked_list', 'ranked_list', ranked_list)
own('fastap', 'fastap', fastap)
own('fastap_25', 'fastap, bins: 25', lambda x, y: fastap(x, y, 25))
g.save()
