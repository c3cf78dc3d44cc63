"""Golden values of the terms that learn from a teacher. Run: python3 make_teach.py PATH/methods.py

The formulas stand here: methods.py has no word for them."""
import os

import numpy as np
import torch

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'teach.safetensors'), with_teacher=True)
unit = M.l2_normalize
rng = np.random.default_rng(23)
SOME = ('10x10', '5x8', 'distinct', 'duplicates', 'coincide', 'pair', 'single')


def reg(name, options, fn, state=None, more='', loss='none', weight='', only=SOME):
    recipe = 'loss: {name: %s}\nregularizers:\n  - {name: %s%s%s}%s' % (loss, name.split('-')[0], options, weight, more)
    g.add(name, recipe, fn, state, only)


def split(x, heads):
    """[m, heads, d], every head L2-normalised on its own."""
    v = x.view(len(x), heads, -1)
    return v / v.norm(dim=2, keepdim=True).clamp_min(1e-12)


# ------------------------------------------------------------------ relational

def others(s):
    """[m, m - 1]: the row of each item without itself."""
    m = len(s)
    return s[~torch.eye(m, dtype=torch.bool)].view(m, m - 1)


def similarities(x, heads):
    v = split(x, heads).flatten(1)
    return v @ v.T / heads


def square(s, t):
    return ((others(s) - others(t)) ** 2).mean() if len(s) > 1 else s.sum() * 0


def softmax(temperature, teacher_temperature):
    def fn(s, t):
        if len(s) < 2:
            return s.sum() * 0
        log_q = torch.log_softmax(others(s) / temperature, dim=1)
        log_p = torch.log_softmax(others(t) / teacher_temperature, dim=1)
        return (log_p.exp() * (log_p - log_q)).sum(1).mean()
    return fn


def relational(compare, heads=1, raw=False):
    def fn(x, y, teacher):
        t = unit(teacher)
        return compare(x @ x.T if raw else similarities(x, heads), t @ t.T)
    return fn


reg('relational', '', relational(square))
reg('relational-heads', '', relational(square, 4), more='\n# heads 4')
reg('relational-raw', ', normalize: false', relational(square, raw=True), only=('5x8', 'distinct', 'coincide'))
reg('relational-softmax', ', form: softmax', relational(softmax(0.04, 0.04)))
reg('relational-apart', ', form: softmax, temperature: 0.2, teacher_temperature: 0.01', relational(softmax(0.2, 0.01)))
reg('relational-softmax_heads', ', form: softmax, temperature: 0.1', relational(softmax(0.1, 0.04), 2), more='\n# heads 2')


def beside(x, y, teacher):
    return M.binomial(M.gram(unit(x)), y) + 0.3 * relational(softmax(0.1, 0.1))(x, y, teacher)


reg('relational-beside', ', form: softmax, temperature: 0.1, teacher_temperature: 0.1', beside, loss='binomial',
    weight=', weight: 0.3', only=('10x10', 'distinct'))

# ------------------------------------------------------------------ match

MAP = {'match.0.weight': rng.uniform(-0.6, 0.6, (golden.TEACHER, golden.DIM)).astype(np.float32),
       'match.0.bias': rng.uniform(-0.3, 0.3, golden.TEACHER).astype(np.float32)}


def match(form, prepare=unit, weight=1.0):
    def fn(x, y, teacher, match_0_weight, match_0_bias):
        mapped = prepare(x) @ match_0_weight.T + match_0_bias
        if form == 'squared':
            return weight * ((mapped - teacher) ** 2).mean()
        return weight * (1 - (unit(mapped) * unit(teacher)).sum(1)).mean()
    return fn


reg('match', '', match('cosine'), MAP)
reg('match-heads', '', match('cosine', lambda x: split(x, 2).flatten(1)), MAP, more='\n# heads 2')
reg('match-squared', ', form: squared', match('squared'), MAP)
reg('match-raw', ', normalize: false', match('cosine', lambda x: x), MAP, only=('5x8', 'distinct', 'coincide'))
reg('match-weighted', ', form: squared', match('squared', weight=0.3), MAP, weight=', weight: 0.3', only=('5x8', 'single'))
reg('match-fixed', ', lr_multiplier: 0', lambda x, y, teacher, match_0_weight, match_0_bias: match('cosine')(
    x, y, teacher, match_0_weight.detach(), match_0_bias.detach()), MAP, only=('5x8',))
g.save()
