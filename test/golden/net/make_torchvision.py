"""Make torchvision/: the networks of torchvision 0.14 at toy sizes, and names/torchvision.*.txt.

    /usr/bin/python3 make_torchvision.py"""
import torch
from golden_nets import save, save_names

from torchvision import models
from torchvision.models import convnext, efficientnet, mobilenetv3, resnet, swin_transformer, vision_transformer

CONV = [(2, 3, 32, 32), (1, 3, 36, 32)]
SMALL = [(2, 3, 24, 24), (1, 3, 20, 28)]


def pooled(x):
    return x.mean((2, 3))


def resnet_features(m, x, i):
    x = m.maxpool(m.relu(m.bn1(m.conv1(x))))
    x = m.layer4(m.layer3(m.layer2(m.layer1(x))))
    return x, pooled(x)


def thin(net, widths):
    """ResNet has no width of its own below 64: rebuild its stages with these widths."""
    net.inplanes = widths[0]
    net.conv1 = torch.nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
    net.bn1 = torch.nn.BatchNorm2d(widths[0])
    block, layers = net.made_of
    for i, (w, n) in enumerate(zip(widths, layers)):
        setattr(net, "layer%d" % (i + 1), net._make_layer(block, w, n, stride=1 if i == 0 else 2))
    net.fc = torch.nn.Linear(widths[3] * block.expansion, 10)
    return net


def make_resnet(block, layers, widths):
    net = resnet.ResNet(block, layers)
    net.made_of = block, layers
    return thin(net, widths)


for name, block, layers, widths in [("resnet_basic", resnet.BasicBlock, [2, 1, 1, 1], [6, 8, 10, 12]),
                                    ("resnet_bottleneck", resnet.Bottleneck, [2, 1, 1, 1], [4, 4, 6, 8])]:
    save("torchvision", name, lambda: make_resnet(block, layers, widths), resnet_features, CONV,
         ["conv1.weight", "bn1.weight", "layer3.0.conv2.weight", "layer2.0.downsample.0.weight"],
         {"class": "ResNet", "block": block.__name__, "layers": layers, "widths": widths, "num_classes": 10})


def feature_maps(m, x, i):
    x = m.features(x)
    return x, pooled(x)


MOBILE = [  # in, kernel, expanded, out, SE, activation, stride, dilation
    (8, 3, 8, 8, False, "RE", 1, 1), (8, 3, 16, 8, True, "RE", 2, 1), (8, 5, 24, 8, True, "HS", 1, 1),
    (8, 5, 24, 8, False, "HS", 2, 1)]


def mobile_features(m, x, i):
    """pooled: what the last linear layer of the classifier sees."""
    x = m.features(x)
    return x, m.classifier[1](m.classifier[0](pooled(x)))


save("torchvision", "mobilenet_v3",
     lambda: mobilenetv3.MobileNetV3([mobilenetv3.InvertedResidualConfig(*row, 1.0) for row in MOBILE], 24, num_classes=10),
     mobile_features, SMALL,
     ["features.0.0.weight", "features.2.block.2.fc1.weight", "features.3.block.1.0.weight", "features.3.block.0.1.weight"],
     {"class": "MobileNetV3", "inverted_residual_setting": MOBILE, "last_channel": 24, "num_classes": 10})

EFFICIENT = [  # expansion, kernel, stride, in, out, layers
    (1, 3, 1, 8, 8, 1), (4, 3, 2, 8, 8, 2), (3, 5, 2, 8, 16, 1)]
save("torchvision", "efficientnet",
     lambda: efficientnet.EfficientNet([efficientnet.MBConvConfig(*row) for row in EFFICIENT], 0.2, num_classes=10),
     feature_maps, SMALL,
     ["features.0.0.weight", "features.2.0.block.2.fc1.weight", "features.2.1.block.1.0.weight", "features.3.0.block.0.1.weight"],
     {"class": "EfficientNet", "inverted_residual_setting": EFFICIENT, "num_classes": 10})

NEXT = [(6, 8, 1), (8, 12, 1), (12, 16, 2), (16, None, 1)]


def convnext_features(m, x, i):
    x = m.features(x)
    return x, m.classifier[0](m.avgpool(x)).flatten(1)


save("torchvision", "convnext",
     lambda: convnext.ConvNeXt([convnext.CNBlockConfig(*row) for row in NEXT], num_classes=10), convnext_features, CONV,
     ["features.0.0.weight", "features.5.1.block.3.weight", "features.5.1.block.2.weight", "features.3.0.layer_scale"],
     {"class": "ConvNeXt", "block_setting": NEXT, "num_classes": 10})

SWIN = dict(patch_size=[2, 2], embed_dim=6, depths=[2, 2, 1], num_heads=[1, 2, 4], window_size=[4, 4], mlp_ratio=2.0,
            num_classes=10)


def swin_features(m, x, i):
    x = m.norm(m.features(x))
    return x, x.mean((1, 2))


save("torchvision", "swin", lambda: swin_transformer.SwinTransformer(**SWIN), swin_features,
     [(2, 3, 32, 32), (1, 3, 36, 26)],
     ["features.0.0.weight", "features.3.1.attn.qkv.weight", "features.3.1.norm1.weight",
      "features.1.1.attn.relative_position_bias_table", "features.2.reduction.weight"], {"class": "SwinTransformer", **SWIN})

VIT = dict(image_size=16, patch_size=4, num_layers=2, num_heads=3, hidden_dim=24, mlp_dim=36, num_classes=10)


def vit_features(m, x, i):
    """At the second size: the model the library builds for it, with positions from its own interpolate_embeddings."""
    if i:
        size = x.shape[-1]
        state = vision_transformer.interpolate_embeddings(size, 4, m.state_dict())
        m = vision_transformer.VisionTransformer(**dict(VIT, image_size=size)).eval()
        m.load_state_dict(state)
    x = m._process_input(x)
    x = m.encoder(torch.cat([m.class_token.expand(x.shape[0], -1, -1), x], dim=1))
    return x, x[:, 0]


save("torchvision", "vit", lambda: vision_transformer.VisionTransformer(**VIT), vit_features, [(2, 3, 16, 16), (1, 3, 28, 28)],
     ["conv_proj.weight", "encoder.layers.encoder_layer_1.self_attention.in_proj_weight", "encoder.ln.weight",
      "encoder.pos_embedding"], {"class": "VisionTransformer", **VIT})

for name in ["resnet18", "resnet34", "resnet101", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "swin_t", "vit_b_16"]:
    save_names("torchvision", name, getattr(models, name)().state_dict())
