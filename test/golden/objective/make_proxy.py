"""Golden values of proxy losses. Run: python3 make_proxy.py PATH/methods.py"""
import os

import numpy as np

import golden

M = golden.load_methods()
g = golden.Golden(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'proxy.safetensors'))
W = np.random.default_rng(5).uniform(-0.1, 0.1, (golden.N_CLASSES, golden.DIM)).astype(np.float32)

g.add('amsoftmax', 'loss: {name: amsoftmax}', lambda x, y, proxies: M.amsoftmax(x, y, proxies), {'proxies': W})
g.add('amsoftmax_hard', 'loss: {name: amsoftmax, scale: 64, margin: 0.35}',
      lambda x, y, proxies: M.amsoftmax(x, y, proxies, scale=64.0, margin=0.35), {'proxies': W})
g.save()
