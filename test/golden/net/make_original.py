"""Make original/: DINOv2, DINO and CLIP by the code of their authors, at toy sizes, and names/original.*.txt.

    PYTHONPATH=DINOV2:DINO:CLIP /usr/bin/python3 make_original.py

DINOV2, DINO and CLIP are clones of facebookresearch/dinov2, facebookresearch/dino and openai/CLIP."""
from functools import partial
import warnings

import torch
from golden_nets import save, save_names

if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):  # PyTorch 1: DINOv2 calls what came with 2
    def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
        return torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1) @ v

    torch.nn.functional.scaled_dot_product_attention = attention

warnings.simplefilter("ignore")
from dinov2.models import vision_transformer as dinov2
import vision_transformer as dino
from clip import model as clip

SIZES = [(2, 3, 16, 16), (1, 3, 28, 12)]
TINY = dict(patch_size=4, embed_dim=24, depth=2, num_heads=3, mlp_ratio=1.5)
GRADS = ["patch_embed.proj.weight", "blocks.1.attn.qkv.weight", "blocks.0.norm1.weight", "pos_embed"]


def dinov2_features(m, x, i):
    """All tokens after the norm, as the dictionary of forward_features holds them in pieces."""
    out = m.forward_features(x)
    tokens = torch.cat([out["x_norm_clstoken"][:, None], out["x_norm_regtokens"], out["x_norm_patchtokens"]], dim=1)
    return tokens, m(x)


def make_dinov2(**more):
    return dinov2.DinoVisionTransformer(img_size=16, init_values=1.0, block_chunks=0, **TINY, **more)


for name, more in [("dinov2", dict(interpolate_antialias=False, interpolate_offset=0.1)),
                   ("dinov2_reg", dict(num_register_tokens=3, interpolate_antialias=True, interpolate_offset=0.0))]:
    save("original", name, lambda: make_dinov2(**more), dinov2_features, SIZES, GRADS + ["blocks.1.ls1.gamma"],
         {"class": "DinoVisionTransformer", "img_size": 16, "init_values": 1.0, "block_chunks": 0, **TINY, **more})


def dino_features(m, x, i):
    return m.get_intermediate_layers(x)[0], m(x)


def make_dino():
    return dino.VisionTransformer(img_size=[16], qkv_bias=True, norm_layer=partial(torch.nn.LayerNorm, eps=1e-6), **dict(TINY, depth=1))


save("original", "dino", make_dino, dino_features, SIZES,
     [g.replace("blocks.1", "blocks.0") for g in GRADS],
     {"class": "VisionTransformer", "img_size": [16], "qkv_bias": True, "norm_eps": 1e-6, **TINY, "depth": 1})

CLIP = dict(input_resolution=16, patch_size=4, width=16, layers=1, heads=2, output_dim=12)


class Tower(torch.nn.Module):
    """Gives the names of a whole CLIP, which holds its picture tower as `visual`."""

    def __init__(self, **sizes):
        super().__init__()
        self.visual = clip.VisionTransformer(**sizes)


def clip_features(m, x, i):
    """The class of the library returns only the projected class token: features are caught before ln_post."""
    caught = []
    hook = m.visual.transformer.register_forward_hook(lambda module, args, out: caught.append(out.permute(1, 0, 2)))
    pooled = m.visual(x)
    hook.remove()
    return caught[0], pooled


save("original", "clip", lambda: Tower(**CLIP), clip_features, SIZES[:1],
     ["visual.conv1.weight", "visual.transformer.resblocks.0.attn.in_proj_weight", "visual.ln_pre.weight",
      "visual.positional_embedding"], {"class": "VisionTransformer", **CLIP}, ["visual.proj", "visual.ln_post.weight"])

HUB = dict(img_size=518, patch_size=14, init_values=1.0, block_chunks=0)
save_names("original", "dinov2_vits14", dinov2.vit_small(**HUB).state_dict())
save_names("original", "dinov2_vits14_reg", dinov2.vit_small(**dict(HUB, num_register_tokens=4)).state_dict())
save_names("original", "dino_vits16", dino.vit_small(patch_size=16).state_dict())
save_names("original", "clip_vit_b_16",
           Tower(input_resolution=224, patch_size=16, width=768, layers=12, heads=12, output_dim=512).state_dict())
