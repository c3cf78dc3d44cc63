#!/usr/bin/python3
"""Makes effects/*.npy: what torchvision (with Pillow) makes of a photo with given parameters, for test_effect.c. Run it in this
folder with a photo: make_effects.py PHOTO. Needs torch, torchvision, Pillow and numpy. Without a photo it keeps effects/source.npy.

The source is 48 x 48 pixels of the photo, RGB. Each file is named after the operation; test_effect.c has the same parameters.
"""
import os
import sys

import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as f
from torchvision.transforms.autoaugment import _apply_op

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "effects")
os.makedirs(here, exist_ok=True)
if len(sys.argv) > 1:
    photo = Image.open(sys.argv[1]).convert("RGB")
    side = min(photo.size)
    photo = photo.crop((0, 0, side, side)).resize((48, 48), Image.BILINEAR)
    np.save(os.path.join(here, "source.npy"), np.asarray(photo))
source = Image.fromarray(np.load(os.path.join(here, "source.npy")))


def put(name, image):
    np.save(os.path.join(here, name + ".npy"), np.asarray(image))


def op(name, magnitude):
    return _apply_op(source, name, magnitude, InterpolationMode.NEAREST, None)


for factor in (0.6, 1.4):
    put(f"brightness_{factor}", f.adjust_brightness(source, factor))
    put(f"contrast_{factor}", f.adjust_contrast(source, factor))
    put(f"saturation_{factor}", f.adjust_saturation(source, factor))
    put(f"sharpness_{factor}", f.adjust_sharpness(source, factor))
for turn in (-0.3, 0.1, 0.5):
    put(f"hue_{turn}", f.adjust_hue(source, turn))
put("grey", f.rgb_to_grayscale(source, 3))
for sigma in (0.5, 1.5):
    put(f"blur_{sigma}", f.gaussian_blur(source, [7, 7], [sigma, sigma]))
for slope in (-0.2, 0.09):
    put(f"shear_x_{slope}", op("ShearX", slope))
    put(f"shear_y_{slope}", op("ShearY", slope))
put("shift_x_-9", op("TranslateX", -9.0))
put("shift_y_8", op("TranslateY", 8.0))
put("rotate_9", op("Rotate", 9.0))
put("rotate_-20", op("Rotate", -20.0))
put("posterize_3", op("Posterize", 3))
put("solarize_178.5", op("Solarize", 178.5))
put("autocontrast", op("AutoContrast", 0.0))
put("equalize", op("Equalize", 0.0))
