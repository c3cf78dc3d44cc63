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
joint('joint_mmd', JRD, None, SOME, whole=joint_mmd)
joint('joint_mmd-given', ('pooled', 'embedding'), [dict(n=3, bandwidth=1.5), dict(n=2, bandwidth=0.7)], whole=joint_mmd)
joint('joint_mmd-mixed', JRD, [dict(kind='laplace', bandwidth=3.0), dict(kind='poly'), dict(kind='mgf')],
      whole=joint_mmd)
g.save()
