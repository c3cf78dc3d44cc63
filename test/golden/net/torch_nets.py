"""The backbones once more, in PyTorch: the judge of src/net and the peer of its benchmark.

Written from the papers and the layer lists, with the tensor names of the weight files, so that
load_state_dict of a file checks the names too. Every net has the methods features(x) -> map and
heads(map) -> dict of taps."""
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    """Pooling and heads around a features() method."""

    classifier = "fc"

    def add_heads(self, channels, embedding, classes, pool="avg"):
        self.pool = pool
        if embedding:
            self.embedding = nn.Linear(channels, embedding)
        if classes:
            setattr(self, self.classifier, nn.Linear(channels, classes))

    def forward(self, x):
        taps = {"map": self.features(x)}
        m = taps["map"]
        pooled = 0
        if self.pool in ("avg", "both"):
            pooled = pooled + m.mean((2, 3))
        if self.pool in ("max", "both"):
            pooled = pooled + m.amax((2, 3))
        taps["pooled"] = pooled
        if hasattr(self, "embedding"):
            taps["embedding"] = self.embedding(pooled)
        if hasattr(self, self.classifier):
            taps["logits"] = getattr(self, self.classifier)(pooled)
        return taps


class ConvReLU(nn.Module):
    def __init__(self, ic, oc, k, s=1, p=0):
        super().__init__()
        self.conv = nn.Conv2d(ic, oc, k, s, p)

    def forward(self, x):
        return F.relu(self.conv(x), inplace=True)


class GoogLeNetBlock(nn.Module):
    def __init__(self, ic, one, three_reduce, three, five_reduce, five, pool):
        super().__init__()
        self.branch1 = ConvReLU(ic, one, 1)
        self.branch2 = nn.Sequential(ConvReLU(ic, three_reduce, 1), ConvReLU(three_reduce, three, 3, p=1))
        self.branch3 = nn.Sequential(ConvReLU(ic, five_reduce, 1), ConvReLU(five_reduce, five, 5, p=2))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), ConvReLU(ic, pool, 1))
        self.oc = one + three + five + pool

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class GoogLeNet(Net):
    """BVLC's: LRN, no batch norm."""

    BLOCKS = {
        "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
        "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64),
        "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128),
        "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
    }

    def __init__(self, embedding=0, classes=0):
        super().__init__()
        self.conv1 = ConvReLU(3, 64, 7, 2, 3)
        self.conv2 = ConvReLU(64, 64, 1)
        self.conv3 = ConvReLU(64, 192, 3, p=1)
        ic = 192
        for name, widths in self.BLOCKS.items():
            block = GoogLeNetBlock(ic, *widths)
            setattr(self, "inception" + name, block)
            ic = block.oc
        self.add_heads(ic, embedding, classes)

    def features(self, x):
        def pool(t):
            return F.max_pool2d(t, 3, 2, ceil_mode=True)

        def lrn(t):
            return F.local_response_norm(t, 5, 1e-4, 0.75, 1.0)

        x = lrn(pool(self.conv1(x)))
        x = pool(lrn(self.conv3(self.conv2(x))))
        for name in self.BLOCKS:
            x = getattr(self, "inception" + name)(x)
            if name in ("3b", "4e"):
                x = pool(x)
        return x


class BNInception(Net):
    classifier = "last_linear"
    # 1x1; 3x3 reduce, out; double 3x3 reduce, mid, out; pool projection. 1x1 of 0: stride 2.
    BLOCKS = {
        "3a": (64, 64, 64, 64, 96, 96, 32), "3b": (64, 64, 96, 64, 96, 96, 64), "3c": (0, 128, 160, 64, 96, 96, 0),
        "4a": (224, 64, 96, 96, 128, 128, 128), "4b": (192, 96, 128, 96, 128, 128, 128),
        "4c": (160, 128, 160, 128, 160, 160, 128), "4d": (96, 128, 192, 160, 192, 192, 128),
        "4e": (0, 128, 192, 192, 256, 256, 0),
        "5a": (352, 192, 320, 160, 224, 224, 128), "5b": (352, 192, 320, 192, 224, 224, 128),
    }

    def __init__(self, embedding=0, classes=0):
        super().__init__()
        self.add("conv1_7x7_s2", 3, 64, 7, 2)
        self.add("conv2_3x3_reduce", 64, 64, 1)
        self.add("conv2_3x3", 64, 192, 3)
        ic = 192
        for name, (one, tr, t, dr, dm, d, proj) in self.BLOCKS.items():
            p, s = "inception_%s_" % name, 1 if one else 2
            if one:
                self.add(p + "1x1", ic, one, 1)
            self.add(p + "3x3_reduce", ic, tr, 1)
            self.add(p + "3x3", tr, t, 3, s)
            self.add(p + "double_3x3_reduce", ic, dr, 1)
            self.add(p + "double_3x3_1", dr, dm, 3)
            self.add(p + "double_3x3_2", dm, d, 3, s)
            if proj:
                self.add(p + "pool_proj", ic, proj, 1)
            ic = one + t + d + (proj or ic)
        self.add_heads(ic, embedding, classes)

    def add(self, name, ic, oc, k, s=1):
        setattr(self, name, nn.Conv2d(ic, oc, k, s, k // 2))
        setattr(self, name + "_bn", nn.BatchNorm2d(oc))

    def conv(self, name, x):
        return F.relu(getattr(self, name + "_bn")(getattr(self, name)(x)), inplace=True)

    def features(self, x):
        x = F.max_pool2d(self.conv("conv1_7x7_s2", x), 3, 2, ceil_mode=True)
        x = self.conv("conv2_3x3", self.conv("conv2_3x3_reduce", x))
        x = F.max_pool2d(x, 3, 2, ceil_mode=True)
        for name, widths in self.BLOCKS.items():
            p = "inception_%s_" % name
            out = [self.conv(p + "1x1", x)] if widths[0] else []
            out.append(self.conv(p + "3x3", self.conv(p + "3x3_reduce", x)))
            d = self.conv(p + "double_3x3_1", self.conv(p + "double_3x3_reduce", x))
            out.append(self.conv(p + "double_3x3_2", d))
            if not widths[0]:
                out.append(F.max_pool2d(x, 3, 2, ceil_mode=True))
            elif name == "5b":
                out.append(self.conv(p + "pool_proj", F.max_pool2d(x, 3, 1, 1, ceil_mode=True)))
            else:
                pooled = F.avg_pool2d(x, 3, 1, 1, ceil_mode=True, count_include_pad=True)
                out.append(self.conv(p + "pool_proj", pooled))
            x = torch.cat(out, 1)
        return x


class ResNet50(Net):
    """torchvision's, with the stride moved to the first 1x1 on request."""

    def __init__(self, embedding=0, classes=0, stride="3x3"):
        super().__init__()
        import torchvision
        body = torchvision.models.resnet50()
        for name in ("conv1", "bn1", "layer1", "layer2", "layer3", "layer4"):
            setattr(self, name, getattr(body, name))
        if stride == "1x1":
            for layer in (self.layer2, self.layer3, self.layer4):
                layer[0].conv1.stride, layer[0].conv2.stride = (2, 2), (1, 1)
        self.add_heads(2048, embedding, classes)

    def features(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.max_pool2d(x, 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


class ConvNet4(Net):
    def __init__(self, embedding=0, classes=0, channels=3, width=64):
        super().__init__()
        ic = channels
        for i in range(1, 5):
            setattr(self, "conv%d" % i, nn.Conv2d(ic, width, 3, padding=1, bias=False))
            setattr(self, "bn%d" % i, nn.BatchNorm2d(width))
            ic = width
        self.add_heads(width, embedding, classes)

    def features(self, x):
        for i in range(1, 5):
            x = F.relu(getattr(self, "bn%d" % i)(getattr(self, "conv%d" % i)(x)))
            x = F.max_pool2d(x, 2)
        return x


NETS = {"googlenet": GoogLeNet, "bn_inception": BNInception, "resnet50": ResNet50, "convnet4": ConvNet4}
