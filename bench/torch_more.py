"""The networks of the benchmarks beside PyTorch: those of test/golden/net/torch_nets.py and torchvision's own, each up to
its pooled features and, if asked, an embedding layer. The keys of NETS are the names of `kith list backbones`."""
import functools
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../test/golden/net"))
import torch_nets  # noqa: E402


class GoogLeNetBN(torch_nets.Net):
    def __init__(self, embedding=0, classes=0):
        super().__init__()
        import torchvision
        self.body = torchvision.models.googlenet(aux_logits=False, init_weights=False)
        self.body.dropout, self.body.fc = torch.nn.Identity(), torch.nn.Identity()
        if embedding:
            self.embedding = torch.nn.Linear(1024, embedding)

    def forward(self, x):
        pooled = self.body(x)
        return {"pooled": pooled, "embedding": self.embedding(pooled) if hasattr(self, "embedding") else None}


class Torchvision(torch_nets.Net):
    """A network of torchvision up to its pooled features."""

    def __init__(self, name, embedding=0, classes=0):
        super().__init__()
        import torchvision
        if name == "vit_s":
            self.body = torchvision.models.VisionTransformer(224, 16, 12, 6, 384, 1536)
            self.body.heads, channels = torch.nn.Identity(), 384
        else:
            self.body = getattr(torchvision.models, name)()
            head = self.body.heads if hasattr(self.body, "heads") else self.body.classifier
            channels = [m for m in head.modules() if isinstance(m, torch.nn.Linear)][0].in_features
            if hasattr(self.body, "heads"):
                self.body.heads = torch.nn.Identity()
            elif name.startswith("convnext"):
                self.body.classifier = torch.nn.Sequential(*list(head)[:2])
            else:
                self.body.classifier = torch.nn.Identity()
        if embedding:
            self.embedding = torch.nn.Linear(channels, embedding)

    def forward(self, x):
        pooled = self.body(x)
        return {"pooled": pooled, "embedding": self.embedding(pooled) if hasattr(self, "embedding") else None}


# Ours and theirs.
TORCHVISION = {"vit_s": "vit_s", "vit_b": "vit_b_16", "convnext_t": "convnext_tiny",
               "mobilenet_v3_large": "mobilenet_v3_large", "efficientnet_b0": "efficientnet_b0"}

NETS = dict(torch_nets.NETS, googlenet_bn=GoogLeNetBN)
for ours, theirs in TORCHVISION.items():
    NETS[ours] = functools.partial(Torchvision, theirs)
