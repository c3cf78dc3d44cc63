#!/usr/bin/env python3
"""The peer of research/recipes/cub/resnet50-multisimilarity.yaml: the same files, weights, views, batches, loss and rates in a plain
PyTorch loop.

    python3 research/peers/resnet50_torch.py CUB_200_2011 resnet50.safetensors --steps 3000 --seed 0

trains on classes 1 to 100, scores classes 101 to 200 after every --every steps and after the last, and prints one JSON line each
time: R@1, seconds. The weights are those of Keras with torchvision's names (stride on the 1x1 convolutions, BGR, 0 to 255
without the mean). Nothing of kith is used. Needs PyTorch with CUDA, torchvision and Pillow."""
import argparse
import json
import math
import os
import random
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from PIL import Image

MEAN = (103.939, 116.779, 123.68)  # blue, green, red


def read_list(root):
    """Paths and classes, both in the order of images.txt."""
    classes = dict(line.split() for line in open(os.path.join(root, "image_class_labels.txt")))
    rows = [line.split() for line in open(os.path.join(root, "images.txt"))]
    return [os.path.join(root, "images", path) for _, path in rows], [int(classes[number]) for number, _ in rows]


def read_images(paths):
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda path: np.asarray(Image.open(path).convert("RGB")), paths))


def as_tensor(image):
    """BGR planes of 0 to 255; the mean is taken away on the device."""
    return torch.from_numpy(np.ascontiguousarray(np.asarray(image)[:, :, ::-1].transpose(2, 0, 1)))


def training_view(pixels, rng):
    """A part of 8 to 100 % of the area, of aspect 3/4 to 4/3, at 224 x 224, mirrored or not."""
    height, width = pixels.shape[:2]
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1)
        ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = rng.randint(0, width - w), rng.randint(0, height - h)
            break
    else:
        w, h = width, height
        if width / height < 3 / 4:
            h = round(width * 4 / 3)
        elif width / height > 4 / 3:
            w = round(height * 4 / 3)
        x, y = (width - w) // 2, (height - h) // 2
    view = Image.fromarray(pixels).resize((224, 224), Image.BILINEAR, box=(x, y, x + w, y + h))
    return as_tensor(view.transpose(Image.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else view)


def test_view(pixels, shorter, crop):
    height, width = pixels.shape[:2]
    scale = shorter / min(height, width)
    image = Image.fromarray(pixels).resize((round(width * scale), round(height * scale)), Image.BILINEAR)
    x, y = (image.width - crop) // 2, (image.height - crop) // 2
    return as_tensor(image.crop((x, y, x + crop, y + crop)))


class Batches(torch.utils.data.Dataset):
    """Batch b: 56 classes, two images of each; it follows from the seed and b."""

    def __init__(self, images, labels, steps, seed):
        self.images, self.steps, self.seed = images, steps, seed
        self.of_class = {}
        for i, label in enumerate(labels):
            self.of_class.setdefault(label, []).append(i)

    def __len__(self):
        return self.steps

    def __getitem__(self, step):
        rng = random.Random(self.seed * 1000003 + step)
        chosen = rng.sample(sorted(self.of_class), 56)
        rows = [i for label in chosen for i in rng.sample(self.of_class[label], 2)]
        labels = torch.tensor([label for label in chosen for _ in range(2)])
        return torch.stack([training_view(self.images[i], rng) for i in rows]), labels


class Tests(torch.utils.data.Dataset):
    def __init__(self, images, shorter, crop):
        self.images, self.shorter, self.crop = images, shorter, crop

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return test_view(self.images[i], self.shorter, self.crop)


class Network(torch.nn.Module):
    def __init__(self, weights, pool):
        super().__init__()
        self.trunk = torchvision.models.resnet50(weights=None)
        for stage in (self.trunk.layer2, self.trunk.layer3, self.trunk.layer4):
            stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
        self.trunk.load_state_dict(read_safetensors(weights), strict=False)
        self.trunk.fc = torch.nn.Identity()
        self.pool = pool
        self.embedding = torch.nn.Linear(2048, 128)
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))

    def forward(self, x):
        t = self.trunk
        x = t.maxpool(t.relu(t.bn1(t.conv1((x.float() - self.mean).contiguous(memory_format=torch.channels_last)))))
        x = t.layer4(t.layer3(t.layer2(t.layer1(x)))).float()
        pooled = x.mean((2, 3))
        if self.pool == "both":
            pooled = pooled + x.amax((2, 3))
        return F.normalize(self.embedding(pooled))


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        head, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in head.items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = np.frombuffer(data, np.float32, (last - first) // 4, first).reshape(entry["shape"])
            tensors[name] = torch.from_numpy(values.copy())
    return tensors


def multi_similarity(e, labels, alpha=2.0, beta=40.0, base=0.5, margin=0.1):
    """Wang et al., CVPR 2019: hard pairs of each anchor by the margin, then two soft maxima."""
    s = e @ e.t()
    same = labels[:, None] == labels[None, :]
    positive = same & ~torch.eye(len(e), dtype=torch.bool, device=e.device)
    hardest_negative = s.masked_fill(same, -2).amax(1, keepdim=True)
    hardest_positive = s.masked_fill(~positive, 2).amin(1, keepdim=True)
    p = positive & (s - margin < hardest_negative)
    n = ~same & (s + margin > hardest_positive)
    both = p.any(1) & n.any(1)
    pull = torch.log1p((torch.exp(-alpha * (s - base)) * p).sum(1)) / alpha
    push = torch.log1p((torch.exp(beta * (s - base)) * n).sum(1)) / beta
    return ((pull + push) * both).sum() / len(e)


@torch.no_grad()
def recall_at_1(network, loader, labels, device):
    rows = []
    for images in loader:
        with torch.autocast(device, torch.bfloat16):
            rows.append(network(images.to(device, non_blocking=True)).float())
    e = torch.cat(rows)
    s = e @ e.t()
    s.fill_diagonal_(-2)
    return (labels[s.argmax(1).cpu()] == labels).double().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("weights")
    parser.add_argument("--steps", type=int, default=7850)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pool", choices=("avg", "both"), default="both")
    parser.add_argument("--shorter", type=int, default=288, help="of test images")
    parser.add_argument("--crop", type=int, default=256, help="of test images")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    start = time.time()
    paths, labels = read_list(args.root)
    images = read_images(paths)
    seen = [i for i, label in enumerate(labels) if label <= 100]
    unseen = [i for i, label in enumerate(labels) if label > 100]
    network = Network(args.weights, args.pool).to(args.device).to(memory_format=torch.channels_last)
    network.eval()  # batch norms keep their statistics; gamma and beta are learned
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5, weight_decay=4e-4)
    batches = Batches([images[i] for i in seen], [labels[i] for i in seen], args.steps, args.seed)
    workers = {"num_workers": args.workers, "pin_memory": args.device != "cpu", "persistent_workers": args.workers > 0}
    training = torch.utils.data.DataLoader(batches, batch_size=None, **workers)
    tests = torch.utils.data.DataLoader(Tests([images[i] for i in unseen], args.shorter, args.crop), batch_size=128, **workers)
    test_labels = torch.tensor([labels[i] for i in unseen])
    for step, (x, y) in enumerate(training, 1):
        with torch.autocast(args.device, torch.bfloat16):
            e = network(x.to(args.device, non_blocking=True))
        loss = multi_similarity(e.float(), y.to(args.device, non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % args.every == 0 or step == args.steps:
            score = recall_at_1(network, tests, test_labels, args.device)
            print(json.dumps({"step": step, "loss": round(loss.item(), 4), "r_at_1": round(score, 4),
                              "seconds": round(time.time() - start, 1)}), flush=True)


if __name__ == "__main__":
    main()
