"""Value + gradient of the losses in PyTorch autograd, beside `kith bench objective`. The code is written as
the executable definition of the methods writes it (masks, masked logsumexp, logaddexp), without its loops.

    python3 bench/objective_peer.py [--kith build/kith] [--batch 128,512,2048] [--dim 512] [--loss raw+vthm …]

Both run in turn on the same machine, with the same number of threads, on batches of the same shape (two
items per class). Times are medians of one evaluation in milliseconds. Needs Debian's python3-torch."""
import argparse
import json
import os
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F


def masks(y):
    same = y[:, None] == y[None, :]
    eye = torch.eye(len(y), dtype=torch.bool, device=y.device)
    return same & ~eye, ~same


def sqdist(S):
    g = S.diagonal()
    return (g[:, None] + g[None, :] - 2 * S).clamp_min(0)


def lse(z, mask):
    return z.masked_fill(~mask, -torch.inf).logsumexp(1)


def vthm(S, pos, neg, margin=0.1):
    s = S.detach()
    big = torch.finfo(S.dtype).max
    least = s.masked_fill(~pos, big).min(1, keepdim=True).values
    most = s.masked_fill(~neg, -big).max(1, keepdim=True).values
    return pos & (s < most + margin), neg & (s > least - margin)


def raw(S, pos, neg, a=2.0, b=50.0, g=0.5):
    zero, one = S.new_zeros(len(S), 1), torch.ones(len(S), 1, dtype=torch.bool, device=S.device)
    p = lse(torch.cat([zero, -a * (S - g)], 1), torch.cat([one, pos], 1)) / a
    n = lse(torch.cat([zero, b * (S - g)], 1), torch.cat([one, neg], 1)) / b
    return (p + n).mean()


def raw_vthm(S, pos, neg):
    return raw(S, *vthm(S, pos, neg))


def softplus(z):
    """As methods.py has it: F.softplus turns linear beyond 20 and loses digits."""
    return torch.logaddexp(z, torch.zeros_like(z))


def reduce_mean(t, mask):
    v = t[mask]
    return v.mean() if v.numel() else t.sum() * 0


def binomial(S, pos, neg, a=2.0, b=50.0, g=0.5):
    tp, tn = softplus(a * (g - S)), softplus(b * (S - g))
    return ((tp * pos).sum(1) / pos.sum(1).clamp_min(1) + (tn * neg).sum(1) / neg.sum(1).clamp_min(1)).mean()


def contrastive(S, pos, neg):
    D = sqdist(S)
    return reduce_mean(D.clamp_min(0), pos) + reduce_mean((1 - D).clamp_min(0), neg)


def triplet(S, pos, neg, margin=0.1):
    """One positive at a time would be a loop; the vectorised form is all triplets of a positive column."""
    D = sqdist(S)
    a, p = pos.nonzero(as_tuple=True)
    t = (D[a, p][:, None] - D[a] + margin).clamp_min(0) * neg[a]
    return t.sum() / (t > 0).sum().clamp_min(1)


def npair(S, pos, neg):
    a, p = pos.nonzero(as_tuple=True)
    return F.softplus(lse(S, neg)[a] - S[a, p]).mean()


def lifted(S, pos, neg):
    return (lse(-S, pos) + lse(1 + S, neg)).clamp_min(0).mean()


def supcon(S, pos, neg, t=0.1):
    z = S / t
    return (lse(z, pos | neg) - (z * pos).sum(1) / pos.sum(1)).mean()


def circle(S, pos, neg, m=0.4, g=80.0):
    ap, an = (1 + m - S.detach()).clamp_min(0), (S.detach() + m).clamp_min(0)
    return F.softplus(lse(-g * ap * (S - 1 + m), pos) + lse(g * an * (S - m), neg)).mean()


def ranked_list(S, pos, neg, alpha=1.2, m=0.4, t=10.0):
    d = (sqdist(S) + 1e-16).sqrt()
    p, n = pos & (d > alpha - m), neg & (d < alpha)
    lp = ((d - alpha + m) * p).sum(1) / p.sum(1).clamp_min(1)
    w = torch.softmax((t * (alpha - d)).masked_fill(~n, -1e30), 1) * n
    return (0.5 * lp + 0.5 * (w * (alpha - d)).sum(1)).mean()


def margin(S, pos, neg, alpha=0.2, beta=1.2):
    d = (sqdist(S) + 1e-16).sqrt()
    t = (alpha + d - beta).clamp_min(0) * pos + (alpha - d + beta).clamp_min(0) * neg
    return t.sum() / (t > 0).sum().clamp_min(1)


def angular(S, pos, neg):
    a, p = pos.nonzero(as_tuple=True)
    f = 4 * (S[a] + S[p]) - 4 * S[a, p][:, None]
    return lse(torch.cat([f.new_zeros(len(a), 1), f], 1), torch.cat([torch.ones(len(a), 1, dtype=torch.bool, device=S.device), neg[a]], 1)).mean()


def histogram(S, pos, neg, bins=151):
    def soft(v):
        at = (v.clamp(-1, 1) + 1) * 0.5 * (bins - 1)
        low = at.detach().floor().clamp_max(bins - 2)
        past = at - low
        low = low.long()
        h = S.new_zeros(bins).index_add(0, low, 1 - past)
        return h.index_add(0, low + 1, past) / len(v)
    return (soft(S[neg]) * soft(S[pos]).cumsum(0)).sum()


def fastap(S, pos, neg, bins=10):
    D = sqdist(S)
    nodes = torch.linspace(0, 4, bins + 1)
    hp, h = [], []
    for z in nodes:
        w = (1 - (D - z).abs() * bins / 4).clamp_min(0)
        hp.append((w * pos).sum(1))
        h.append((w * (pos | neg)).sum(1))
    hp, h = torch.stack(hp, 1), torch.stack(h, 1)
    Hp, H = hp.cumsum(1), h.cumsum(1)
    return 1 - ((hp * Hp / H.clamp_min(1e-6)).sum(1) / pos.sum(1)).mean()


def soft_ranks(S, pos, neg, temperature=0.01):
    """Ranks of every anchor's positives, of which all anchors have equally many: [m, p]."""
    m, n_pos = len(S), int(pos[0].sum())
    at = S[pos].view(m, n_pos)
    higher = torch.sigmoid((S[:, None, :] - at[:, :, None]) / temperature)
    among = (higher * pos[:, None, :]).sum(2) + 0.5  # the positive itself counts as 0.5 in the sum, as 1 in the rank
    return among, among + (higher * neg[:, None, :]).sum(2)


def smooth_ap(S, pos, neg):
    among, rank = soft_ranks(S, pos, neg)
    return 1 - (among / rank).mean()


def recall_at_k(S, pos, neg, levels=(1, 2, 4, 8, 16)):
    _, rank = soft_ranks(S, pos, neg)
    found = [torch.sigmoid((k - rank) / k).sum(1).clamp_max(k) / min(k, rank.shape[1]) for k in levels]
    return 1 - torch.stack(found).mean()


LOSSES = {'raw+vthm': raw_vthm, 'binomial': binomial, 'contrastive': contrastive, 'triplet': triplet, 'npair': npair,
          'lifted': lifted, 'raw': raw, 'angular': angular, 'histogram': histogram, 'margin': margin, 'circle': circle,
          'supcon': supcon, 'ntxent': lambda S, p, n: npair(10 * S, p, n), 'ranked_list': ranked_list, 'fastap': fastap,
          'smooth_ap': smooth_ap, 'recall_at_k': recall_at_k}


def peer(name, batch, dim, n_steps):
    gen = torch.Generator().manual_seed(1)
    y = torch.arange(batch) // 2
    centre = torch.randn((batch + 1) // 2, dim, generator=gen)
    x = (centre[y] + 3 * torch.randn(batch, dim, generator=gen)).requires_grad_()
    times, value = [], 0.0
    for step in range(n_steps + 2):
        x.grad = None
        begin = time.perf_counter()
        u = F.normalize(x)
        pos, neg = masks(y)
        loss = LOSSES[name](u @ u.t(), pos, neg)
        loss.backward()
        if step >= 2:
            times.append(1e3 * (time.perf_counter() - begin))
        value = loss.item()
    return times, value


def ours(kith, name, batch, dim):
    out = subprocess.run([kith, 'bench', 'objective', '--loss', name, '--batch', str(batch), '--dim', str(dim), '--json'],
                         capture_output=True, check=True, text=True).stdout
    return json.loads(out)[0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--kith', default='build/kith')
    p.add_argument('--batch', default='128,512,2048')
    p.add_argument('--dim', type=int, default=512)
    p.add_argument('--loss', nargs='*', default=list(LOSSES))
    p.add_argument('--rounds', type=int, default=3)
    a = p.parse_args()
    torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', os.cpu_count())))
    print('torch %s, %d threads' % (torch.__version__, torch.get_num_threads()))
    print('%-14s %6s %10s %10s %8s %14s %12s %12s' % ('loss', 'batch', 'kith ms', 'torch ms', 'faster',
                                                      'over products', 'kith value', 'torch value'))
    for name in a.loss:
        for batch in map(int, a.batch.split(',')):
            n = 40 if batch <= 128 else 15 if batch <= 512 else 5
            mine, product, theirs = [], [], []
            for _ in range(a.rounds):
                row = ours(a.kith, name, batch, a.dim)
                mine.append(row['milliseconds'])
                product.append(row['product_milliseconds'])
                times, value = peer(name, batch, a.dim, n)
                theirs += times
            m, t, q = map(statistics.median, (mine, theirs, product))
            print('%-14s %6d %10.3f %10.3f %7.1fx %13.2fx %12.6g %12.6g' % (name, batch, m, t, t / m, m / q, row['value'], value),
                  flush=True)


if __name__ == '__main__':
    main()
