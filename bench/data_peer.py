#!/usr/bin/python3
"""The same work as `kith data ROOT --speed` in PyTorch: DataLoader, Pillow, torchvision.

    data_peer.py CUB_ROOT [--workers 2] [--images 5864] [--effects]

Training images of CUB-200-2011: decode, squash to 256x256 (antialiased bilinear), random crop 227,
mirror, to float [3, 227, 227], normalise; shuffled batches of 64. --effects: also RandAugment, colour jitter,
greyscale, blur and random erasing, with the settings of bench/data.sh. Prints images per second, worker
start not counted. Needs torch, torchvision and Pillow.
"""
import argparse
import os
import time

import torch
from PIL import Image
from torchvision import transforms

parser = argparse.ArgumentParser()
parser.add_argument("root")
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--images", type=int, default=5864)
parser.add_argument("--effects", action="store_true")
args = parser.parse_args()

paths = [line.split()[1] for line in open(os.path.join(args.root, "images.txt"))][: args.images]


effects = [
    transforms.RandAugment(2, 9),
    transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8),
    transforms.RandomGrayscale(0.2),
    transforms.RandomApply([transforms.GaussianBlur(23, (0.1, 2.0))], 0.5),
]


class Images(torch.utils.data.Dataset):
    transform = transforms.Compose([
        transforms.Resize((256, 256)),
        transforms.RandomCrop(227),
        transforms.RandomHorizontalFlip(),
        *(effects if args.effects else []),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        *([transforms.RandomErasing(p=0.5)] if args.effects else []),
    ])

    def __len__(self):
        return len(paths)

    def __getitem__(self, i):
        image = Image.open(os.path.join(args.root, "images", paths[i])).convert("RGB")
        return self.transform(image), i


torch.set_num_threads(1)
loader = torch.utils.data.DataLoader(Images(), batch_size=64, shuffle=True, num_workers=args.workers)
batches = iter(loader)
next(batches)
begin, n = time.perf_counter(), 0
for data, _ in batches:
    n += len(data)
print(f"torch {torch.__version__}, {args.workers} workers: {n / (time.perf_counter() - begin):.0f} images/s ({n} images)")
