"""Golden values of regularizers. Run: python3 make_reg.py PATH/methods.py"""
import os

import torch

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'reg.safetensors'), with_taps=True)


def reg(name, options, fn, state=None, only=None):
    recipe = 'loss: {name: none}\nregularizers:\n  - {name: %s%s}' % (name.split('-')[0], options)
    g.add(name, recipe, fn, state, only)


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
g.save()
