#!/usr/bin/python3
"""How far kith's decoding and resizing is from Pillow's, in grey levels.

    data_quality.py build/libkith.so IMAGE…

Each image goes through kith_image_reader (ctypes) and through Pillow: squash to 256, centre 227, bilinear and
bicubic; shorter side 64 (where kith may decode at half size). Prints mean and largest difference.
"""
import ctypes as c
import sys

import numpy as np
from PIL import Image


class Transform(c.Structure):
    _fields_ = [("size", c.c_size_t), ("resize", c.c_int), ("resize_to", c.c_int), ("crop", c.c_int), ("crop_to", c.c_int),
                ("filter", c.c_int), ("scale", c.c_double * 2), ("ratio", c.c_double * 2), ("mirror", c.c_bool),
                ("use_box", c.c_bool), ("channels", c.c_int), ("bgr", c.c_bool), ("pixel_scale", c.c_double),
                ("mean", c.c_double * 3), ("std", c.c_double * 3), ("background", c.c_uint8 * 3)]


class Batch(c.Structure):
    _fields_ = [("n", c.c_int64), ("data", c.POINTER(c.c_float)), ("path", c.POINTER(c.c_char_p)),
                ("n_tried", c.c_int64)]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 480), ("hint", c.c_char * 256)]


kith = c.CDLL(sys.argv[1])
NONE, SHORTER, SQUASH = 0, 1, 2


def read(paths, transform):
    err, reader, batch = Error(), c.c_void_p(), Batch()
    names = (c.c_char_p * len(paths))(*[p.encode() for p in paths])
    if kith.kith_image_reader_new(names, len(paths), c.byref(transform), None, c.byref(reader), c.byref(err)):
        sys.exit(err.message.decode())
    out, n = [], transform.crop_to
    while True:
        if kith.kith_image_reader_next(reader, c.byref(batch), c.byref(err)):
            sys.exit(err.message.decode())
        if batch.n == 0:
            break
        out.append(np.ctypeslib.as_array(batch.data, (batch.n, 3, n, n)).copy())
    kith.kith_image_reader_free.argtypes = [c.c_void_p]
    kith.kith_image_reader_free(reader)
    return np.concatenate(out)


def pillow(path, resize, to, crop, how):
    image = Image.open(path).convert("RGB")
    w, h = image.size
    size = (to, to) if resize == SQUASH else (to, to * h // w) if w < h else (to * w // h, to)
    if size != image.size:
        image = image.resize(size, how)
    x, y = (size[0] - crop) // 2, (size[1] - crop) // 2
    return np.asarray(image.crop((x, y, x + crop, y + crop))).transpose(2, 0, 1).astype("f4")


for label, resize, to, crop, kind, how in [
        ("squash 256, centre 227, bilinear", SQUASH, 256, 227, 0, Image.BILINEAR),
        ("squash 256, centre 227, bicubic", SQUASH, 256, 227, 1, Image.BICUBIC),
        ("shorter 300, centre 256, bilinear", SHORTER, 300, 256, 0, Image.BILINEAR),
        ("shorter 120, centre 112, bilinear", SHORTER, 120, 112, 0, Image.BILINEAR),
        ("shorter 64, centre 64, bilinear", SHORTER, 64, 64, 0, Image.BILINEAR)]:
    t = Transform()
    kith.kith_transform_init(c.byref(t), c.c_size_t(c.sizeof(t)))
    t.resize, t.resize_to, t.crop_to, t.filter, t.pixel_scale = resize, to, crop, kind, 1.0
    ours = read(sys.argv[2:], t)
    theirs = np.stack([pillow(p, resize, to, crop, how) for p in sys.argv[2:]])
    difference = np.abs(ours - theirs)
    each = difference.mean(axis=(1, 2, 3))
    print(f"{label}: mean {difference.mean():.4f}, worst image {each.max():.4f}, largest {difference.max():.0f}")
