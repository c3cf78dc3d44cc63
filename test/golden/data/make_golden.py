#!/usr/bin/python3
"""Makes test/corpus/image (small images of every kind, good and bad) and, from Pillow, what the good ones must
decode to (decode/*.npy) and what resizing must give (resize/*.npy). Run it in this folder; needs Pillow
and numpy. Files named ok_ must be read, bad_ must be refused.
"""
import io
import os
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "..", "..", "corpus", "image")
W, H = 27, 18
GROUND = (40, 90, 200)  # background under alpha in the tests

y, x = np.mgrid[0:H, 0:W].astype(float)
rgb = np.stack([255 * x / (W - 1), 255 * y / (H - 1), 127 + 120 * np.sin(x / 4 + y / 6)], -1)
rgb[4:9, 5:12] = (230, 30, 60)
rgb = rgb.round().astype(np.uint8)
colour = Image.fromarray(rgb)
grey = colour.convert("L")
alpha = np.clip(300 * x / W - 20, 0, 255).round().astype(np.uint8)


def put(name, data):
    with open(os.path.join(CORPUS, name), "wb") as f:
        f.write(data)
    return data


def encode(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def want(name, pixels):
    pixels = np.asarray(pixels)
    np.save(os.path.join(HERE, "decode", name + ".npy"), pixels.reshape(pixels.shape[0], pixels.shape[1], -1))


def good(name, data, mode=None):
    put(name, data)
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    want(name, image.convert(mode) if mode else image)


def over(pixels, a):
    """Alpha over GROUND, rounded."""
    ground = np.array(GROUND if pixels.ndim == 3 else [round(0.299 * 40 + 0.587 * 90 + 0.114 * 200)], float)
    a = a.astype(float)[..., None] / 255
    p = pixels if pixels.ndim == 3 else pixels[..., None]
    return np.floor(p * a + ground * (1 - a) + 0.5).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rows, bits, colour_type, w=W, h=H, interlace=0, extra=b"", data=None):
    header = struct.pack(">IIBBBBB", w, h, bits, colour_type, 0, 0, interlace)
    data = zlib.compress(rows) if data is None else data
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def rows_of(array):
    return b"".join(b"\0" + row.tobytes() for row in array)


def packed(values, bits):
    out = b""
    for row in values:
        text = "".join(format(v, f"0{bits}b") for v in row)
        text += "0" * (-len(text) % 8)
        out += b"\0" + bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))
    return out


os.makedirs(CORPUS, exist_ok=True)
# JPEG
good("ok_rgb.jpg", encode(colour, "JPEG", quality=90))
good("ok_rgb_444.jpg", encode(colour, "JPEG", quality=95, subsampling=0))
good("ok_progressive.jpg", encode(colour, "JPEG", quality=90, progressive=True))
good("ok_grey.jpg", encode(grey, "JPEG", quality=90))
cmyk = encode(colour.convert("CMYK"), "JPEG", quality=95)
good("ok_cmyk_adobe.jpg", cmyk, "RGB")
at = cmyk.index(b"\xff\xee")
plain = cmyk[:at] + cmyk[at + 2 + struct.unpack(">H", cmyk[at + 2:at + 4])[0]:]
put("ok_cmyk_plain.jpg", plain)
# Without the Adobe marker the numbers are ink: Pillow takes them as inverted all the same.
inverted = 255 - np.asarray(Image.open(io.BytesIO(plain))).astype(int)
want("ok_cmyk_plain.jpg", np.floor((255 - inverted[..., :3]) * (255 - inverted[..., 3:]) / 255 + 0.5).astype(np.uint8))
for orientation in range(1, 9):
    exif = Image.Exif()
    exif[0x112] = orientation
    good(f"ok_exif_{orientation}.jpg", encode(colour, "JPEG", quality=92, exif=exif.tobytes()))
data = encode(colour, "JPEG", quality=90)
put("bad_cut.jpg", data[: len(data) - 100])
put("bad_header_only.jpg", data[:30])
sof = data.index(b"\xff\xc0")
put("bad_bomb.jpg", data[: sof + 5] + struct.pack(">HH", 65000, 65000) + data[sof + 9:])
put("bad_zero_size.jpg", data[: sof + 5] + struct.pack(">HH", 0, 20) + data[sof + 9:])
put("bad_table.jpg", data[: sof] + b"\xff\xc4\x00\x13\x00" + b"\xff" * 16 + data[sof:])

# PNG
good("ok_rgb.png", encode(colour, "PNG"))
good("ok_grey.png", encode(grey, "PNG"))
g = np.asarray(grey)
for bits in (1, 2, 4):
    levels = (g >> (8 - bits))
    name = f"ok_grey_{bits}.png"
    put(name, png(packed(levels, bits), bits, 0))
    want(name, (levels.astype(int) * 255 // (2 ** bits - 1)).astype(np.uint8))
wide = rgb.astype(np.uint32) * 257
wide[3, 3] = (0x1234, 0x80ff, 0x7f80)
put("ok_rgb_16.png", png(rows_of(wide.astype(">u2")), 16, 2))
want("ok_rgb_16.png", np.floor(wide * 255 / 65535 + 0.5).astype(np.uint8))
wide = g.astype(np.uint32) * 257
put("ok_grey_16.png", png(rows_of(wide.astype(">u2")), 16, 0))
want("ok_grey_16.png", g)
rgba = np.dstack([rgb, alpha])
put("ok_rgba.png", png(rows_of(rgba), 8, 6))
want("ok_rgba.png", over(rgb, alpha))
put("ok_grey_alpha.png", png(rows_of(np.dstack([g, alpha])), 8, 4))
want("ok_grey_alpha.png", over(g, alpha))
index = (x.astype(int) // 7 + 4 * (y.astype(int) // 5)) % 16
palette = np.array([[(37 * i) % 256, (91 * i) % 256, (200 - 11 * i) % 256] for i in range(16)], np.uint8)
plte = chunk(b"PLTE", palette.tobytes())
put("ok_palette_4.png", png(packed(index, 4), 4, 3, extra=plte))
want("ok_palette_4.png", palette[index])
put("ok_palette_8.png", png(rows_of(index.astype(np.uint8)), 8, 3, extra=plte))
want("ok_palette_8.png", palette[index])
trns = bytes(min(255, 17 * i) for i in range(16))
put("ok_palette_alpha.png", png(rows_of(index.astype(np.uint8)), 8, 3, extra=plte + chunk(b"tRNS", trns)))
want("ok_palette_alpha.png", over(palette[index], np.frombuffer(trns, np.uint8)[index]))
passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
put("ok_interlaced.png", png(b"".join(rows_of(rgb[y0::dy, x0::dx]) for x0, y0, dx, dy in passes if rgb[y0::dy, x0::dx].size),
                             8, 2, interlace=1))
want("ok_interlaced.png", rgb)
put("ok_gamma.png", png(rows_of(rgb), 8, 2, extra=chunk(b"gAMA", struct.pack(">I", 100000))))
want("ok_gamma.png", rgb)
exif = Image.Exif()
exif[0x112] = 6
good("ok_exif_6.png", encode(colour, "PNG", exif=exif))
data = encode(colour, "PNG")
put("bad_cut.png", data[: len(data) * 2 // 3])
at = data.index(b"IDAT") + 40
put("bad_checksum.png", data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
put("bad_bomb.png", png(b"", 1, 0, 60000, 60000, data=zlib.compress(b"\0" * 100000)))
put("bad_too_wide.png", png(b"", 8, 0, 2 ** 31 - 1, 1))
put("bad_zero_size.png", png(b"", 8, 0, 0, 4))
put("bad_no_palette.png", png(rows_of(index.astype(np.uint8)), 8, 3))

# WebP
good("ok_lossy.webp", encode(colour, "WEBP", quality=80))
good("ok_lossless.webp", encode(colour, "WEBP", lossless=True))
put("ok_alpha.webp", encode(Image.fromarray(rgba, "RGBA"), "WEBP", lossless=True, exact=True))
want("ok_alpha.webp", over(rgb, alpha))
exif = Image.Exif()
exif[0x112] = 8
good("ok_exif_8.webp", encode(colour, "WEBP", lossless=True, exif=exif.tobytes()))
data = encode(colour, "WEBP", lossless=True)
put("bad_cut.webp", data[: len(data) // 2])
put("bad_animated.webp", encode(colour, "WEBP", save_all=True, append_images=[colour.rotate(180)], duration=100))
put("bad_header_only.webp", data[:16])

# neither
put("bad_empty.jpg", b"")
put("bad_text.jpg", b"not an image\n")
put("bad_gif.png", encode(grey, "GIF"))

# resizing: one image, several sizes
rng = np.random.default_rng(7)
yy, xx = np.mgrid[0:41, 0:59].astype(float)
source = np.stack([127 + 127 * np.sin(xx * yy / 90), 255 * ((xx // 3 + yy // 4) % 2), rng.integers(0, 256, (41, 59))], -1)
source = source.round().astype(np.uint8)
np.save(os.path.join(HERE, "resize", "source.npy"), source)
for filter_name, how in (("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC), ("lanczos", Image.LANCZOS)):
    for w, h in ((32, 32), (59, 20), (24, 41), (80, 64), (7, 5)):
        for kind, image in (("rgb", Image.fromarray(source)), ("grey", Image.fromarray(source[..., 2]))):
            out = np.asarray(image.resize((w, h), how))
            np.save(os.path.join(HERE, "resize", f"{kind}_{filter_name}_{w}x{h}.npy"), out.reshape(h, w, -1))
