"""Golden values of pair losses and miners, from methods.py.
Run: python3 make_pair.py PATH/methods.py  (writes pair.safetensors beside this file)"""
import os
import sys

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
g.save()
