"""Make timm/: the networks of timm (pytorch-image-models) at toy sizes, and names/timm.*.txt. Made with 1.0.28.

    /usr/bin/python3 make_timm.py"""
import pathlib
import tempfile

from golden_nets import save, save_names

import timm
from timm.models import _efficientnet_builder as builder
from timm.models import efficientnet, mobilenetv3
from timm.models._hub import save_config_for_hf
from functools import partial
from timm.models._efficientnet_blocks import SqueezeExcite

VIT_SIZES = [(2, 3, 16, 16), (1, 3, 28, 12)]
NEXT_SIZES = [(2, 3, 32, 32), (1, 3, 36, 32)]
CONV_SIZES = [(2, 3, 24, 24), (1, 3, 20, 28)]
TINY = dict(img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=3, mlp_ratio=1.5, dynamic_img_size=True)
NEXT = dict(depths=(1, 1, 2, 1), dims=(6, 8, 12, 16), num_classes=10)
VIT_GRADS = ["patch_embed.proj.weight", "blocks.1.attn.qkv.weight", "blocks.0.norm1.weight", "pos_embed"]
NEXT_GRADS = ["stem.0.weight", "stages.2.blocks.1.mlp.fc1.weight", "stages.2.blocks.0.norm.weight"]


def run(m, x, i):
    features = m.forward_features(x)
    return features, m.forward_head(features, pre_logits=True)


def written(model, args):
    """config.json as timm writes it for the hub."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        save_config_for_hf(model, path, model_args=args)
        return path.read_text()


NETS = [
    ("vit", "vit_small_patch16_224", dict(TINY, num_classes=10), VIT_SIZES, VIT_GRADS, ()),
    ("vit_reg4_dinov2", "vit_small_patch14_reg4_dinov2", TINY, VIT_SIZES, VIT_GRADS + ["blocks.1.ls1.gamma", "reg_token"], ()),
    ("convnext", "convnext_tiny", NEXT, NEXT_SIZES, NEXT_GRADS + ["stages.1.blocks.0.gamma"], ["head.norm.weight"]),
    ("convnextv2", "convnextv2_tiny", NEXT, NEXT_SIZES, NEXT_GRADS + ["stages.1.blocks.0.mlp.grn.weight"], ()),
    ("swin", "swin_tiny_patch4_window7_224", dict(img_size=32, patch_size=2, embed_dim=6, depths=(2, 2, 1), num_heads=(1, 2, 4),
                                                  window_size=4, mlp_ratio=2.0, strict_img_size=False, num_classes=10),
     [(2, 3, 32, 32), (1, 3, 36, 26)],
     ["patch_embed.proj.weight", "layers.1.blocks.1.attn.qkv.weight", "layers.1.blocks.1.norm1.weight",
      "layers.0.blocks.1.attn.relative_position_bias_table", "layers.1.downsample.reduction.weight"], ()),
]
for name, architecture, args, sizes, grads, pooled_grads in NETS:
    make = lambda: timm.create_model(architecture, **args)
    save("timm", name, make, run, sizes, grads, written(make(), args), pooled_grads)

# The last two have no arguments for their stages, so the class is made directly, as the functions of the module do.
MOBILE = [["ds_r1_k3_s1_e1_c8_nre"], ["ir_r1_k3_s2_e2_c8_se0.25_nre"], ["ir_r1_k5_s1_e3_c8_se0.25"], ["ir_r1_k5_s2_e3_c8"],
          ["cn_r1_k1_s1_c48"]]


def make_mobile():
    squeeze = partial(SqueezeExcite, gate_layer="hard_sigmoid", force_act_layer=timm.layers.get_act_layer("relu"),
                      rd_round_fn=builder.round_channels)
    return mobilenetv3.MobileNetV3(builder.decode_arch_def(MOBILE), num_classes=10, stem_size=8, num_features=24,
                                   act_layer=timm.layers.get_act_layer("hard_swish"), se_layer=squeeze)


save("timm", "mobilenetv3", make_mobile, run, CONV_SIZES,
     ["conv_stem.weight", "blocks.1.0.se.conv_reduce.weight", "blocks.2.0.conv_dw.weight", "blocks.2.0.bn1.weight"],
     {"class": "MobileNetV3", "arch_def": MOBILE, "stem_size": 8, "num_features": 24, "num_classes": 10, "act_layer": "hard_swish",
      "se": "hard_sigmoid gate, relu, width rounded to 8"}, ["conv_head.weight"])

EFFICIENT = [["ds_r1_k3_s1_e1_c8_se0.25"], ["ir_r2_k3_s2_e4_c8_se0.25"], ["ir_r1_k5_s2_e3_c16_se0.25"]]
save("timm", "efficientnet",
     lambda: efficientnet.EfficientNet(builder.decode_arch_def(EFFICIENT), num_classes=10, stem_size=8, num_features=64,
                                       act_layer=timm.layers.get_act_layer("swish")), run, CONV_SIZES,
     ["conv_stem.weight", "blocks.1.0.se.conv_reduce.weight", "blocks.1.1.conv_dw.weight", "blocks.2.0.bn1.weight"],
     {"class": "EfficientNet", "arch_def": EFFICIENT, "stem_size": 8, "num_features": 64, "num_classes": 10, "act_layer": "swish"})

TRUE = ["vit_small_patch16_224", "vit_small_patch14_dinov2", "vit_small_patch14_reg4_dinov2", "convnext_tiny",
        "convnextv2_tiny", "mobilenetv3_large_100", "efficientnet_b0", "swin_tiny_patch4_window7_224"]
for name in TRUE:
    save_names("timm", name, timm.create_model(name).state_dict())
