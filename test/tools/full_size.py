#!/usr/bin/env python3
"""Networks of transformers and torchvision at their true sizes, with random weights: saved by the library, read by kith as they are.

    python3 test/tools/full_size.py KITH [NAME …] [--device cpu]

For each network and each of two sizes of images, prints how far kith's features are from the library's (float32, relative to the largest)
and whether that is within 1e-5. Needs torch, torchvision, transformers, safetensors and Pillow. Exit status 1 if one is farther."""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SMALL = dict(hidden_size=384, num_attention_heads=6)


def networks():
    """name: (makes the model, what its features are, kith's options, sizes of images)"""
    import torchvision.models as v
    import transformers as t

    def token(model, x):
        return model(x, interpolate_pos_encoding=True).last_hidden_state[:, 0]

    def pooler(model, x):
        return model(x).pooler_output

    def resized(model, x):
        return model(x, interpolate_pos_encoding=True).pooler_output

    def without(part):  # torchvision: what is left when its classifier is not there
        def forward(model, x):
            body, head = model, getattr(model, part)
            kept = list(head)[:-2] if part == "classifier" and isinstance(head, torch.nn.Sequential) and len(head) > 2 and \
                not isinstance(head[0], torch.nn.Linear) else []
            if part == "classifier" and isinstance(head[0], torch.nn.Linear):  # MobileNetV3: linear, hard-swish, dropout, linear
                kept = list(head)[:2]
            elif part == "classifier" and len(head) == 3:  # ConvNeXt: norm, flatten, linear
                kept = list(head)[:2]
            setattr(body, part, torch.nn.Sequential(*kept) if kept else torch.nn.Identity())
            out = body(x)
            setattr(body, part, head)
            return out.flatten(1)
        return forward

    def of(kind, config):
        return lambda: kind(config)

    dino = dict(image_size=518, patch_size=14, **SMALL)
    return {
        "dinov2_s": (of(t.Dinov2Model, t.Dinov2Config(**dino)), pooler, [], (224, 308)),
        "dinov2_reg_s": (of(t.Dinov2WithRegistersModel, t.Dinov2WithRegistersConfig(**dino)), pooler, [], (224, 308)),
        "vit_b": (of(t.ViTModel, t.ViTConfig()), token, [], (224, 288)),
        "clip_b": (of(t.CLIPVisionModel, t.CLIPVisionConfig(patch_size=16)), resized, [], (224, 288)),
        "siglip_b": (of(t.SiglipVisionModel, t.SiglipVisionConfig()), resized, [], (224, 288)),
        "convnext_t": (of(t.ConvNextModel, t.ConvNextConfig()), pooler, ["--pool", "avg"], (224, 288)),
        "convnext_v2_t": (of(t.ConvNextV2Model, t.ConvNextV2Config()), pooler, ["--pool", "avg"], (224, 288)),
        "swin_t": (of(t.SwinModel, t.SwinConfig()), pooler, ["--pool", "avg"], (224, 280)),
        "tv_vit_b": (v.vit_b_16, without("heads"), [], (224,)),
        "tv_convnext_t": (v.convnext_tiny, without("classifier"), ["--pool", "avg"], (224, 288)),
        "tv_swin_t": (v.swin_t, without("head"), ["--pool", "avg"], (224, 280)),
        "tv_mobilenet": (v.mobilenet_v3_large, without("classifier"), ["--pool", "avg"], (224, 288)),
        "tv_efficientnet": (v.efficientnet_b0, without("classifier"), ["--pool", "avg"], (224, 288)),
        "tv_resnet18": (v.resnet18, without("fc"), ["--pool", "avg"], (224, 288)),
        "tv_resnet34": (v.resnet34, without("fc"), ["--pool", "avg"], (224, 288)),
        "tv_resnet101": (v.resnet101, without("fc"), ["--pool", "avg"], (224, 288)),
    }


def shaken(model):
    """Every vector a little off its start, so that a forgotten bias or scale shows; batch norms with statistics."""
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() < 2:
                p.add_(0.05 * torch.randn_like(p))
        for name, b in model.named_buffers():
            if name.endswith("running_mean"):
                b.normal_(0, 0.05)
            elif name.endswith("running_var"):
                b.uniform_(0.8, 1.2)
    return model.eval()


def save(model, folder):
    """The file and its folder's configs; preprocessing that is the same for all."""
    if hasattr(model, "save_pretrained"):
        model.save_pretrained(folder)
        with open(folder + "/preprocessor_config.json", "w") as f:
            json.dump({"image_mean": MEAN, "image_std": STD, "size": {"height": 224, "width": 224}, "resample": 2, "do_resize": True}, f)
    else:
        save_file({k: x.contiguous() for k, x in model.state_dict().items()}, folder + "/model.safetensors")
    return folder + "/model.safetensors"


def compare(kith, device, name, make, features, options, sizes):
    torch.manual_seed(5)
    np.random.seed(5)
    first, worst = shaken(make()), 0.0
    with tempfile.TemporaryDirectory() as folder:
        weights = save(first, folder)
        for side in sizes:
            model = copy.deepcopy(first)  # transformers' Swin remembers the window of an earlier image
            pixels = np.random.randint(0, 256, (2, side // 8, side // 8, 3), np.uint8).repeat(8, 1).repeat(8, 2)
            pixels = np.pad(pixels, ((0, 0), (0, side - pixels.shape[1]), (0, side - pixels.shape[2]), (0, 0)), mode="edge")
            paths = [folder + "/%d.png" % i for i in range(2)]
            for path, image in zip(paths, pixels):
                Image.fromarray(image).save(path)
            x = (torch.from_numpy(pixels).float() / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
            with torch.no_grad():
                wanted = features(model, x.permute(0, 3, 1, 2).contiguous()).double().numpy()
            done = subprocess.run([*kith, "embed", weights, *paths, "--resize", "none", "--crop", str(side), "--device", device, *options,
                                   "-o", folder + "/e.npy"], capture_output=True, text=True)
            if done.returncode:
                print("%-16s %3d  %s" % (name, side, done.stderr.strip().split("\n")[-1]), flush=True)
                return False
            found = np.load(folder + "/e.npy").astype(np.float64)
            if found.shape != wanted.shape:
                print("%-16s %3d  %s numbers, wanted %s" % (name, side, found.shape, wanted.shape), flush=True)
                return False
            off = np.abs(found - wanted).max() / np.abs(wanted).max()
            worst = max(worst, off)
            print("%-16s %3d  %.2e %s" % (name, side, off, "ok" if off <= 1e-5 else "TOO FAR"), flush=True)
    return worst <= 1e-5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kith")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    all_of = networks()
    results = [compare(args.kith.split(), args.device, name, *all_of[name]) for name in args.names or all_of]
    print("%d of %d networks within 1e-5" % (sum(results), len(results)))
    sys.exit(0 if all(results) else 1)


main()
