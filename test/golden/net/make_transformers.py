"""Make transformers/: the networks of Hugging Face transformers at toy sizes, and names/transformers.*.txt. Made with 4.48.3.

    /usr/bin/python3 make_transformers.py

Each forward pass runs in a fresh model: Swin remembers the window of a small image."""
from golden_nets import save, save_names

import transformers as t

VIT_SIZES = [(2, 3, 16, 16), (1, 3, 28, 12)]
CONV_SIZES = [(2, 3, 32, 32), (1, 3, 36, 32)]
TINY = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=36, image_size=16, patch_size=4)
DINO = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, mlp_ratio=1.5, image_size=16, patch_size=4)


def resizing(m, x, i):
    out = m(x, interpolate_pos_encoding=True) if i else m(x)
    return out.last_hidden_state, out.pooler_output


def plain(m, x, i):
    out = m(x)
    return out.last_hidden_state, out.pooler_output


VIT_GRADS = ["embeddings.patch_embeddings.projection.weight", "encoder.layer.1.attention.attention.query.weight",
             "embeddings.position_embeddings"]
CLIP_GRADS = ["vision_model.embeddings.patch_embedding.weight", "vision_model.encoder.layers.1.self_attn.k_proj.weight",
              "vision_model.embeddings.position_embedding.weight"]
NETS = [
    ("vit", t.ViTModel, t.ViTConfig(**TINY), resizing, VIT_SIZES, VIT_GRADS + ["encoder.layer.0.layernorm_before.weight"]),
    ("dinov2", t.Dinov2Model, t.Dinov2Config(**DINO), plain, VIT_SIZES,
     VIT_GRADS + ["encoder.layer.0.norm1.weight", "encoder.layer.1.layer_scale1.lambda1"]),
    ("dinov2_swiglu", t.Dinov2Model, t.Dinov2Config(use_swiglu_ffn=True, **DINO), plain, VIT_SIZES,
     VIT_GRADS + ["encoder.layer.0.norm1.weight", "encoder.layer.1.mlp.weights_in.weight"]),
    ("dinov2_with_registers", t.Dinov2WithRegistersModel, t.Dinov2WithRegistersConfig(num_register_tokens=3, **DINO), plain, VIT_SIZES,
     VIT_GRADS + ["encoder.layer.0.norm1.weight", "embeddings.register_tokens"]),
    ("clip", t.CLIPVisionModel, t.CLIPVisionConfig(**TINY), resizing, VIT_SIZES,
     CLIP_GRADS + ["vision_model.pre_layrnorm.weight", "vision_model.embeddings.class_embedding"]),
    ("siglip", t.SiglipVisionModel, t.SiglipVisionConfig(**TINY), resizing, VIT_SIZES,
     CLIP_GRADS + ["vision_model.encoder.layers.0.layer_norm1.weight"]),
    ("convnext", t.ConvNextModel, t.ConvNextConfig(hidden_sizes=[6, 8, 12, 16], depths=[1, 1, 2, 1]), plain, CONV_SIZES,
     ["embeddings.patch_embeddings.weight", "encoder.stages.2.layers.1.pwconv1.weight", "encoder.stages.2.layers.0.layernorm.weight",
      "encoder.stages.1.layers.0.layer_scale_parameter"]),
    ("convnextv2", t.ConvNextV2Model, t.ConvNextV2Config(hidden_sizes=[6, 8, 12, 16], depths=[1, 1, 2, 1]), plain, CONV_SIZES,
     ["embeddings.patch_embeddings.weight", "encoder.stages.2.layers.1.pwconv1.weight", "encoder.stages.2.layers.0.layernorm.weight",
      "encoder.stages.1.layers.0.grn.weight"]),
    ("swin", t.SwinModel, t.SwinConfig(image_size=32, patch_size=2, embed_dim=6, depths=[2, 2, 1], num_heads=[1, 2, 4], window_size=4,
                                       mlp_ratio=2.0), plain, [(2, 3, 32, 32), (1, 3, 36, 26)],
     ["embeddings.patch_embeddings.projection.weight", "encoder.layers.1.blocks.1.attention.self.query.weight",
      "encoder.layers.1.blocks.1.layernorm_before.weight", "encoder.layers.0.blocks.1.attention.self.relative_position_bias_table",
      "encoder.layers.0.downsample.reduction.weight"]),
]


def written(model):
    """config.json as save_pretrained writes it."""
    config = model.config
    config.architectures = [type(model).__name__]
    return config.to_json_string()


POOLED = {  # networks with parameters behind the last hidden state
    "vit": ["pooler.dense.weight", "layernorm.weight"],
    "clip": ["vision_model.post_layernorm.weight", "vision_model.embeddings.class_embedding"],
    "siglip": ["vision_model.head.probe", "vision_model.head.attention.in_proj_weight", "vision_model.head.layernorm.weight",
               "vision_model.post_layernorm.weight"],
    "convnext": ["layernorm.weight", "embeddings.layernorm.weight"]}

for name, kind, config, forward, sizes, grads in NETS:
    config._attn_implementation = "eager"
    make = lambda: kind(config)
    save("transformers", name, make, forward, sizes, grads, written(make()), POOLED.get(name, ()))

TRUE = [("vit_base", t.ViTModel, t.ViTConfig()),
        ("dinov2_small", t.Dinov2Model, t.Dinov2Config(image_size=518, patch_size=14, hidden_size=384, num_attention_heads=6)),
        ("dinov2_with_registers_small", t.Dinov2WithRegistersModel,
         t.Dinov2WithRegistersConfig(image_size=518, patch_size=14, hidden_size=384, num_attention_heads=6)),
        ("clip_vit_base_patch16", t.CLIPVisionModel, t.CLIPVisionConfig(patch_size=16)),
        ("siglip_base_patch16_224", t.SiglipVisionModel, t.SiglipVisionConfig()),
        ("convnext_tiny", t.ConvNextModel, t.ConvNextConfig()), ("convnextv2_tiny", t.ConvNextV2Model, t.ConvNextV2Config()),
        ("swin_tiny", t.SwinModel, t.SwinConfig())]
for name, kind, config in TRUE:
    config._attn_implementation = "eager"
    save_names("transformers", name, kind(config).state_dict())
