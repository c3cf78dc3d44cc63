"""Golden values of regularizers. Run: python3 make_reg.py PATH/methods.py

Where methods.py has no word (joint MMD, entropy, norm L2; batches that give it 0/0) the formula stands here
and is marked CHOICE."""
import os

import numpy as np
import torch

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'reg.safetensors'), with_taps=True)
unit = M.l2_normalize
rng = np.random.default_rng(11)
PROXIES = rng.uniform(-0.1, 0.1, (golden.N_CLASSES, golden.DIM)).astype(np.float32)
SOME = ('64x2', '10x10', '5x8', 'distinct', 'oneclass', 'coincide')
# The bandwidth is a constant for the gradient: a difference quotient of the value has no such constant.
CONSTANT = '\n# the gradient is not the derivative'


def reg(name, options, fn, state=None, only=None, more=''):
    recipe = 'loss: {name: none}\nregularizers:\n  - {name: %s%s}%s' % (name.split('-')[0], options, more)
    g.add(name, recipe, fn, state, only)


def or_zero(v, x):
    """CHOICE: a batch that has nothing to say (0/0) says 0."""
    return v if torch.isfinite(v) else x.sum() * 0


# ------------------------------------------------------------------ energy confusion

def energy(form, reduction):
    def fn(x, y, pooled, fmap):
        v = M.energy_confusion(x, y, form, reduction)
        # CHOICE: the log of nothing (all points coincide) is the log of 1e-30, without a gradient
        return v if torch.isfinite(v) and v > -30 else x.sum() * 0 + torch.tensor(1e-30, dtype=golden.DT).log()
    return fn


for form in ('linear', 'log1p', 'log'):
    for reduction in ('sum', 'mean'):
        if form == 'log' and reduction == 'sum':
            continue
        reg('energy_confusion-%s_%s' % (form, reduction), ', form: %s, reduction: %s' % (form, reduction),
            energy(form, reduction))

# ------------------------------------------------------------------ density

TARGETS = {'density.alpha': rng.uniform(0.2, 0.9, golden.N_CLASSES).astype(np.float32),
           'density.d0': rng.uniform(0.5, 3.0, golden.N_CLASSES).astype(np.float32)}


def density(eta, correlation, prepare=unit):
    def fn(x, y, pooled, fmap, density_alpha, density_d0):
        return M.density(prepare(x), y, density_alpha, density_d0.detach() if correlation else None, eta)
    return fn


reg('density', '', density(0.5, True), TARGETS)
reg('density-eta', ', eta: 1.5', density(1.5, True), TARGETS, SOME)


def density_relative(x, y, pooled, fmap, density_alpha, density_d0):
    r = density_d0.detach() ** 0.5
    cs = y.unique()
    return M.density(unit(x), y, density_alpha, (r / r[cs].mean()) ** 2)


reg('density-relative', ', relative: true', density_relative, TARGETS)
reg('density-alone', ', correlation: false', density(0.5, False), TARGETS)
reg('density-raw', ', normalize: false', density(0.5, True, lambda x: x), TARGETS)

# ------------------------------------------------------------------ pairs: attraction, orthogonality, entropy

reg('intra_class', '', lambda x, y, pooled, fmap: M.intra_class(unit(x), y))
reg('intra_class-raw', ', normalize: false', lambda x, y, pooled, fmap: M.intra_class(x, y), only=SOME)
reg('global_orthogonal', '', lambda x, y, pooled, fmap: or_zero(M.global_orthogonal(unit(x), y), x))
reg('global_orthogonal-raw', ', normalize: false', lambda x, y, pooled, fmap: or_zero(M.global_orthogonal(x, y), x))


def entropy(eta):
    """CHOICE: minus the mean binary entropy of p_ij = 1 / (1 + exp(D_ij - eta)) (Niu et al., ICML 2012, Eq. 4)."""
    def fn(x, y, pooled, fmap):
        u = unit(x)
        z = eta - M.sqdist(M.gram(u))[~torch.eye(len(y), dtype=torch.bool)]
        if len(y) < 2:
            return x.sum() * 0
        p = torch.sigmoid(z)
        return (p * torch.nn.functional.logsigmoid(z) + (1 - p) * torch.nn.functional.logsigmoid(-z)).mean()
    return fn


reg('entropy', '', entropy(1.0))
reg('entropy-eta', ', eta: 2.5', entropy(2.5), only=SOME)
reg('norm_l2', '', lambda x, y, pooled, fmap: x.pow(2).sum(1).mean())

# ------------------------------------------------------------------ the embedding layer's weights

WEIGHT = {'embedding.weight': rng.standard_normal((golden.DIM, golden.CHANNELS)).astype(np.float32) * 0.5}
reg('row_norm_penalty', '', lambda x, y, pooled, fmap, embedding_weight: M.row_norm_penalty(embedding_weight), WEIGHT,
    ('5x8', 'single'))
reg('row_norm_penalty-lam', ', lam: 3', lambda x, y, pooled, fmap, embedding_weight:
    M.row_norm_penalty(embedding_weight, 3.0), WEIGHT, ('5x8',))

# ------------------------------------------------------------------ joint similarity and joint MMD

plain_kernel = M.kernel


def kernel(x, **options):
    K = plain_kernel(x, **options)
    # CHOICE: where all points coincide there is no bandwidth; the kernel is 1, without a gradient
    return K if torch.isfinite(K).all() else torch.ones_like(K.detach())


M.kernel = kernel


def joint_mmd(layers, y, kinds):
    """JRD Eq. 7: -1/N sum over ordered class pairs I != J of n_I n_J MMD^2(I, J) of the joint kernel.
    CHOICE: class pairs weighed as in Eq. 3; a class's own mean includes i = j."""
    K = 1.0
    for f, k in zip(layers, kinds):
        K = K * M.kernel(f, **k)
    cs, n, out = y.unique().tolist(), 0, K.sum() * 0
    for a in cs:
        for b in cs:
            if a == b:
                continue
            i, j = (y == a).nonzero().flatten(), (y == b).nonzero().flatten()
            w = len(i) * len(j)
            n += w
            out = out - w * (K[i][:, i].mean() + K[j][:, j].mean() - 2 * K[i][:, j].mean())
    return out / n if n else out


def text_of(kind):
    return '{%s}' % ', '.join('%s: %s' % o for o in kind.items())


def joint(name, layers, kinds, only=None, options='', prepare=unit, whole=M.joint_similarity):
    def fn(x, y, pooled, fmap, proxies=None):
        u = prepare(x)
        logits = unit(x) @ unit(proxies).t() if proxies is not None else None
        taps = {'pooled': pooled, 'embedding': u, 'logits': logits}
        chosen = kinds or [dict(n=3), dict(n=3), dict(n=1)][:len(layers)]
        return or_zero(whole([taps[n] for n in layers], y, chosen), x)
    text = ', layers: [%s]' % ', '.join(layers)
    if kinds:
        text += ', kernels: [%s]' % ', '.join(map(text_of, kinds))
    from_batch = any('bandwidth' not in k and k.get('kind', 'gaussian') in ('gaussian', 'laplace')
                     for k in kinds or [{}])
    reg(name, text + options, fn, {'proxies': PROXIES} if 'logits' in layers else None, only,
        CONSTANT if from_batch else '')


JRD = ('pooled', 'embedding', 'logits')
joint('joint_similarity', JRD, None)
joint('joint_similarity-mrd', ('embedding',), None)
joint('joint_similarity-pooling', ('pooled', 'embedding'), None, SOME)
joint('joint_similarity-c', ('embedding', 'logits'), None, SOME)
joint('joint_similarity-raw', ('pooled', 'embedding'), None, options=', normalize: false', prepare=lambda x: x)
joint('joint_similarity-laplace', JRD, [dict(kind='laplace')] * 3)
joint('joint_similarity-poly', JRD, [dict(kind='poly', degree=5)] * 3, SOME)
joint('joint_similarity-mgf', JRD, [dict(kind='mgf')] * 3, SOME)
joint('joint_similarity-mixed', JRD, [dict(kind='gaussian', n=5, bandwidth=2.0), dict(kind='laplace', n=2, bandwidth=4.0),
                                      dict(kind='poly', degree=2)])
joint('joint_similarity-given', JRD, [dict(kind='gaussian', n=4, bandwidth=1.5), dict(n=1, bandwidth=0.7),
                                      dict(kind='mgf')])


def scaled(taps, y, kinds):
    """Products over a bandwidth: those of vectors over its root."""
    plain = [{k: v for k, v in kind.items() if k != 'bandwidth'} for kind in kinds]
    return M.joint_similarity([t / kind['bandwidth'] ** 0.5 for t, kind in zip(taps, kinds)], y, plain)


joint('joint_similarity-scaled', JRD, [dict(kind='poly', degree=3, bandwidth=4.0), dict(kind='mgf', bandwidth=0.5),
                                       dict(kind='poly', degree=2, bandwidth=2.0)], whole=scaled)
joint('joint_mmd', JRD, None, SOME, whole=joint_mmd)
joint('joint_mmd-given', ('pooled', 'embedding'), [dict(n=3, bandwidth=1.5), dict(n=2, bandwidth=0.7)], whole=joint_mmd)
joint('joint_mmd-mixed', JRD, [dict(kind='laplace', bandwidth=3.0), dict(kind='poly'), dict(kind='mgf')],
      whole=joint_mmd)

# ------------------------------------------------------------------ HORDE, with the loss beside it

C, D, EMB = golden.CHANNELS, 11, 5


def contrastive(u, y):
    return M.contrastive(M.gram(u), y, distance='cosine', pos_margin=0.9, neg_margin=0.2)


def binomial(u, y):
    return M.binomial(M.gram(u), y)


LOSSES = {'contrastive': (', distance: cosine, pos_margin: 0.9, neg_margin: 0.2', contrastive), 'binomial': ('', binomial)}
HORDE_SHAPES = ('10x10', '5x8', 'distinct', 'oneclass', 'duplicates', 'single')


def horde(name, loss, K, options='', cascaded=True, trained=True, emb=EMB, weight=1.0, only=HORDE_SHAPES):
    state = {}
    names = ['w%d' % k for k in range(1, K + 1)] if cascaded else \
        ['w%d_%d' % (k, t) for k in range(2, K + 1) for t in range(1, k + 1)]
    for n in names:
        w = rng.uniform(-0.6, 0.6, (C, D)) if trained else rng.choice([-1.0, 1.0], (C, D))
        state['horde.' + n] = w.astype(np.float32)
    for k in range(2, K + 1):
        if emb:
            state['horde.e%d' % k] = rng.uniform(-0.6, 0.6, (D, emb)).astype(np.float32)

    def fn(x, y, pooled, fmap, **kw):
        E = [kw['horde_e%d' % k] for k in range(2, K + 1)] if emb else None
        W = {n: kw['horde_' + n] if trained else kw['horde_' + n].detach() for n in names}
        if cascaded:
            zs = M.horde_orders(fmap, [W[n] for n in names], E)
        else:
            # CHOICE: methods.py has no word; each order k has k projections of its own (HORDE Sec. 3.1, Eq. 4)
            f, zs = fmap.flatten(2).transpose(1, 2), []
            for k in range(2, K + 1):
                phi = 1.0 / D ** 0.5
                for t in range(1, k + 1):
                    phi = phi * (f @ W['w%d_%d' % (k, t)])
                zs.append(unit(phi.mean(1) @ E[k - 2] if emb else phi.mean(1)))
        value = LOSSES[loss][1]
        return value(unit(x), y) + weight * sum(value(z, y) for z in zs)
    g.add('horde-' + name, 'loss: {name: %s%s}\nregularizers:\n  - {name: horde, orders: %d, dimension: %d, embedding: %d, '
          'weight: %s%s}' % (loss, LOSSES[loss][0], K, D, emb, weight, options), fn, state, only)


horde('five', 'contrastive', 5)
horde('two', 'binomial', 2, only=('10x10', '64x2'))
horde('weighted', 'binomial', 3, weight=0.3)
horde('fixed', 'contrastive', 4, ', trained: false', trained=False)
horde('apart', 'contrastive', 4, ', cascaded: false', cascaded=False)
horde('bare', 'binomial', 3, ', trained: false', trained=False, emb=0)


def horde_proxies(x, y, pooled, fmap, proxies, horde_w1, horde_w2, horde_w3, horde_e2, horde_e3, **own):
    zs = M.horde_orders(fmap, [horde_w1, horde_w2, horde_w3], [horde_e2, horde_e3])
    return M.amsoftmax(x, y, proxies) + M.amsoftmax(zs[0], y, own['horde_2_proxies']) + \
        M.amsoftmax(zs[1], y, own['horde_3_proxies'])


g.add('horde-proxies', 'loss: {name: amsoftmax}\nregularizers:\n  - {name: horde, orders: 3, dimension: %d, embedding: %d}'
      % (D, EMB), horde_proxies,
      {'proxies': PROXIES, **{'horde.w%d' % k: rng.uniform(-0.6, 0.6, (C, D)).astype(np.float32) for k in (1, 2, 3)},
       **{'horde.e%d' % k: rng.uniform(-0.6, 0.6, (D, EMB)).astype(np.float32) for k in (2, 3)},
       **{'horde.%d.proxies' % k: rng.uniform(-0.1, 0.1, (golden.N_CLASSES, EMB)).astype(np.float32)
          for k in (2, 3)}}, ('10x10', 'oneclass'))
g.save()
