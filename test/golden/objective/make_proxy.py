"""Golden values of proxy losses. Run: python3 make_proxy.py PATH/methods.py

amsoftmax is from methods.py; the others are written here from their papers' formulas, plainly."""
import math
import os

import numpy as np
import torch

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'proxy.safetensors'))
unit = M.l2_normalize


def uniform(rows, seed=5):
    return np.random.default_rng(seed).uniform(-0.1, 0.1, (rows, golden.DIM)).astype(np.float32)


W = {'proxies': uniform(golden.N_CLASSES)}


def cosines(x, proxies):
    return unit(x) @ unit(proxies).t()


def arcface(x, y, proxies, scale=64.0, margin=0.5):
    """Deng et al., CVPR 2019, Eq. 3. CHOICE (authors' code): past theta = pi - margin, cos - margin sin(margin)."""
    z = cosines(x, proxies)
    s = z.gather(1, y[:, None])
    own = torch.where(s > -math.cos(margin), torch.cos(torch.acos(s) + margin), s - margin * math.sin(margin))
    return torch.nn.functional.cross_entropy(scale * z.scatter(1, y[:, None], own), y)


def normsoftmax(x, y, proxies, temperature=0.05):
    """Zhai and Wu, BMVC 2019, Eq. 4."""
    return torch.nn.functional.cross_entropy(cosines(x, proxies) / temperature, y)


def proxy_nca(x, y, proxies, scale=3.0):
    """Movshovitz-Attias et al., ICCV 2017, Eq. 4, embeddings and proxies of length `scale`."""
    d = ((scale * unit(x)[:, None] - scale * unit(proxies)[None]) ** 2).sum(2)
    own = torch.nn.functional.one_hot(y, len(proxies)).bool()
    return (d[own] + torch.logsumexp((-d).masked_fill(own, -torch.inf), 1)).mean()


def proxy_anchor(x, y, proxies, alpha=32.0, delta=0.1):
    """Kim et al., CVPR 2020, Eq. 4."""
    s = cosines(x, proxies)
    own = torch.nn.functional.one_hot(y, len(proxies)).bool()
    has = own.any(0)
    zero = s.new_zeros(1, s.shape[1])

    def ln_one_plus(z, keep):
        return torch.logsumexp(torch.cat([zero, z.masked_fill(~keep, -torch.inf)]), 0)
    return (ln_one_plus(-alpha * (s - delta), own)[has].sum() / has.sum() +
            ln_one_plus(alpha * (s + delta), ~own).sum() / len(proxies))


def softtriple(x, y, proxies, centers, la=20.0, gamma=0.1, tau=0.2, margin=0.01):
    """Qian et al., ICCV 2019, Eq. 6 to 9; 1e-5 under the root as in the authors' code."""
    w = unit(proxies).reshape(-1, centers, proxies.shape[1])
    s = torch.einsum('md,ckd->mck', unit(x), w)
    z = (torch.softmax(s / gamma, 2) * s).sum(2)
    out = torch.nn.functional.cross_entropy(
        la * (z - margin * torch.nn.functional.one_hot(y, len(w)).to(x.dtype)), y)
    if centers > 1 and tau:
        k, l = torch.triu_indices(centers, centers, 1)
        d = (2 + 1e-5 - 2 * (w[:, k] * w[:, l]).sum(2)).sqrt()
        out = out + tau * d.sum() / (len(w) * centers * (centers - 1))
    return out


def case(name, loss, fn, state=None, **options):
    text = ''.join(', %s: %s' % o for o in options.items())
    g.add(name, 'loss: {name: %s%s}' % (loss, text), lambda x, y, proxies: fn(x, y, proxies, **options),
          state or W)


case('amsoftmax', 'amsoftmax', M.amsoftmax)
case('amsoftmax_hard', 'amsoftmax', M.amsoftmax, scale=64.0, margin=0.35)
case('arcface', 'arcface', arcface)
case('arcface_soft', 'arcface', arcface, scale=10.0, margin=1.2)
case('normsoftmax', 'normsoftmax', normsoftmax)
case('proxy_nca', 'proxy_nca', proxy_nca)
case('proxy_nca_short', 'proxy_nca', proxy_nca, scale=1.0)
case('proxy_anchor', 'proxy_anchor', proxy_anchor)
case('proxy_anchor_soft', 'proxy_anchor', proxy_anchor, alpha=4.0, delta=-0.2)
case('softtriple', 'softtriple', softtriple, {'proxies': uniform(3 * golden.N_CLASSES)}, centers=3)
case('softtriple_soft', 'softtriple', softtriple, {'proxies': uniform(2 * golden.N_CLASSES)}, centers=2, la=5.0,
     gamma=0.5, tau=3.0, margin=0.3)
case('softtriple_one', 'softtriple', softtriple, centers=1)
g.save()
