#!/usr/bin/env python3
"""Small nets of transformers with drawn weights, as folders: config.json, model.safetensors, and expected.safetensors
with ids, logits (of an encoder: hidden states and logits), and for each parameter the norm of its gradient and the product
of the gradient with cos(0), cos(1), .. Only this file needs PyTorch, transformers and gguf. Without --strict of folder.py it makes the
committed ones: nets/, types.gguf, types.safetensors.
usage: nets.py"""
import json
import math
import random
import shutil
import tempfile
from pathlib import Path

import gguf
import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

SIZES = {"vocab_size": 29, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2,
         "max_position_embeddings": 32}
GPT2 = {"vocab_size": 29, "n_embd": 12, "n_layer": 2, "n_head": 2, "n_positions": 32, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "resid_pdrop": 0.0}
BERT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GROUPED = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 16}


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 500.0, **more}}


# name: (class of the config, class of the net, settings); names of OLD get a config.json as transformers 4 wrote it
NETS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", GROUPED),
    "llama_tied": ("LlamaConfig", "LlamaForCausalLM", {"tie_word_embeddings": True, "head_dim": 10}),
    "llama_biases": ("LlamaConfig", "LlamaForCausalLM", {"attention_bias": True, "mlp_bias": True}),
    "llama_old": ("LlamaConfig", "LlamaForCausalLM", {**GROUPED, **rope("default")}),
    "llama3": ("LlamaConfig", "LlamaForCausalLM", rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                       original_max_position_embeddings=16)),
    "llama3_old": ("LlamaConfig", "LlamaForCausalLM", rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                           original_max_position_embeddings=16)),
    "llama_linear": ("LlamaConfig", "LlamaForCausalLM", rope("linear", factor=4.0)),
    "llama_yarn": ("LlamaConfig", "LlamaForCausalLM", {"hidden_size": 64, **rope(
        "yarn", factor=4.0, original_max_position_embeddings=8)}),
    "llama_yarn_all": ("LlamaConfig", "LlamaForCausalLM", {"hidden_size": 64, **rope(
        "yarn", factor=4.0, original_max_position_embeddings=8, attention_factor=1.25, beta_fast=16.0, beta_slow=2.0)}),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**GROUPED, "sliding_window": 3}),
    "mistral_full": ("MistralConfig", "MistralForCausalLM", {"sliding_window": None, "num_key_value_heads": 1, "head_dim": 8}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", GROUPED),
    "qwen2_window": ("Qwen2Config", "Qwen2ForCausalLM", {**GROUPED, "use_sliding_window": True, "sliding_window": 3,
                                                         "max_window_layers": 1}),
    "qwen2_window_old": ("Qwen2Config", "Qwen2ForCausalLM", {**GROUPED, "use_sliding_window": True, "sliding_window": 3,
                                                             "max_window_layers": 1}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**GROUPED, "head_dim": 6, "tie_word_embeddings": True}),
    "qwen3_biases": ("Qwen3Config", "Qwen3ForCausalLM", {**GROUPED, "head_dim": 6, "attention_bias": True,
                                                         "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", {**GROUPED, "head_dim": 6, "sliding_window": 3, "query_pre_attn_scalar": 10,
                                                     "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5}),
    "gemma2_old": ("Gemma2Config", "Gemma2ForCausalLM", {**GROUPED, "head_dim": 6, "sliding_window": 3}),
    "gemma2_even": ("Gemma2Config", "Gemma2ForCausalLM", {**GROUPED, "head_dim": 6, "sliding_window": 3, "query_pre_attn_scalar": 6}),
    "gemma2_plain": ("Gemma2Config", "Gemma2ForCausalLM", {**GROUPED, "head_dim": 6, "sliding_window": 4, "attention_bias": True,
                                                           "attn_logit_softcapping": None, "final_logit_softcapping": None}),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", GPT2),
    "gpt2_bare": ("GPT2Config", "GPT2Model", {**GPT2, "n_inner": 20}),
    "gpt2_by_layer": ("GPT2Config", "GPT2LMHeadModel", {**GPT2, "scale_attn_by_inverse_layer_idx": True,
                                                        "activation_function": "gelu", "tie_word_embeddings": False}),
    "gpt2_unscaled": ("GPT2Config", "GPT2LMHeadModel", {**GPT2, "scale_attn_weights": False}),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {"num_attention_heads": 2, "hidden_size": 16,
                                                         **rope("default", partial_rotary_factor=0.25)}),
    "gpt_neox_old": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {"hidden_size": 16, **rope("default", partial_rotary_factor=0.5)}),
    "gpt_neox_serial": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {
        "use_parallel_residual": False, "attention_bias": False, "hidden_act": "gelu_new", "tie_word_embeddings": True,
        **rope("linear", factor=2.0, partial_rotary_factor=1.0)}),
    "bert": ("BertConfig", "BertForMaskedLM", BERT),
    "bert_bare": ("BertConfig", "BertModel", {**BERT, "hidden_act": "gelu_new", "pad_token_id": 3}),
    "bert_pretraining": ("BertConfig", "BertForPreTraining", BERT),
    "modernbert": ("ModernBertConfig", "ModernBertForMaskedLM", {"num_hidden_layers": 4, "local_attention": 6, "pad_token_id": 0,
                                                                 "global_attn_every_n_layers": 3}),
    "modernbert_old": ("ModernBertConfig", "ModernBertForMaskedLM", {"num_hidden_layers": 4, "local_attention": 6, "pad_token_id": 0}),
    "modernbert_biases": ("ModernBertConfig", "ModernBertForMaskedLM", {
        "norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "local_attention": 4,
        "pad_token_id": 0}),
}
ENCODERS = ("bert", "modernbert")
COMMITTED = ["llama3", "mistral", "qwen2_window", "qwen3", "gemma2", "gpt2_bare", "gpt_neox_old", "bert", "modernbert"]


def drawn(net):
    """Weights whose effect is large enough to see a fault in any part."""
    for name, p in net.named_parameters():
        uniform = random.Random(name).random
        if p.dim() < 2:
            base, scale = (0.0 if name.endswith("bias") else 1.0), 0.25
        else:
            base, scale = 0.0, 1.0 if "emb" in name or "wte" in name or "wpe" in name else 1.5 / math.sqrt(p.shape[-1])
        with torch.no_grad():
            p.copy_(torch.tensor([base + scale * (2 * uniform() - 1) for _ in range(p.numel())]).reshape(p.shape))


def older(config):
    """config.json as transformers 4 wrote it."""
    parts = config.pop("rope_parameters", None)
    config.pop("layer_types", None)
    if parts and "full_attention" in parts:
        config["global_rope_theta"] = parts["full_attention"]["rope_theta"]
        config["local_rope_theta"] = parts["sliding_attention"]["rope_theta"]
    elif parts:
        names = {"gpt_neox": ("rotary_emb_base", "rotary_pct")}.get(config["model_type"], ("rope_theta", "partial_rotary_factor"))
        config[names[0]] = parts.pop("rope_theta")
        if "partial_rotary_factor" in parts:
            config[names[1]] = parts.pop("partial_rotary_factor")
        kind = parts.get("rope_type", "default")
        config["rope_scaling"] = None if kind == "default" else {**parts, "type": kind}
    config["torch_dtype"] = config.pop("dtype", "float32")
    config["use_cache"] = True
    return config


def sentences(folder):
    kinds = ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling"]
    (folder / "modules.json").write_text(json.dumps([{"idx": i, "type": kind} for i, kind in enumerate(kinds)]) + "\n")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}\n')


def texts(pad):
    rng = random.Random("ids")
    rows = [[rng.randrange(4, 29) for _ in range(11)] for _ in range(2)]
    if pad is not None:
        rows[1][8:] = [pad] * 3
    return torch.tensor(rows)


def gradients(net, ids, targets):
    logits = net(ids)
    logits = logits.logits if "logits" in logits else logits.prediction_logits
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    return {name: p.grad.float() for name, p in net.named_parameters() if p.grad is not None}


def make(name, folder, whole=False):
    """`whole`: also gradients.safetensors, with all gradients."""
    config_class, net_class, settings = NETS[name]
    kind = net_class.split("For")[0].split("Model")[0].split("LMHead")[0]
    sizes = {} if kind == "GPT2" else dict(SIZES)
    config = getattr(transformers, config_class)(**{**sizes, **settings}, attn_implementation="eager")
    torch.manual_seed(0)
    net = getattr(transformers, net_class)(config)
    drawn(net)
    Path(folder).mkdir(parents=True, exist_ok=True)
    net.save_pretrained(folder)
    (Path(folder) / "generation_config.json").unlink(missing_ok=True)
    own = Path(folder) / "config.json"
    if name in COMMITTED and "old" not in name:
        own.write_text(json.dumps(json.loads(own.read_text()), indent=1) + "\n")
    if "old" in name:
        own.write_text(json.dumps(older(json.loads(own.read_text())), indent=1) + "\n")
    encoder = config.model_type in ENCODERS
    if encoder:  # all that is read of it
        (Path(folder) / "tokenizer.json").write_text('{"added_tokens": [{"id": 2, "content": "[MASK]"}]}\n')
    ids = texts(config.pad_token_id if encoder else None)
    targets = torch.cat([ids[:, 1:], ids[:, :1]], 1)
    whole_net = net
    if net_class == "GPT2Model":  # with the head that the job has
        whole_net = transformers.GPT2LMHeadModel(config)
        whole_net.transformer.load_state_dict(net.state_dict())
    whole_net = whole_net.double().train()
    out = {"ids": ids, "targets": targets}
    with torch.no_grad():
        if encoder:
            text = (ids != config.pad_token_id).double().unsqueeze(-1)
            body = whole_net.base_model(ids, attention_mask=(ids != config.pad_token_id).long())
            out["hidden"] = body.last_hidden_state.float()
            out["embed"] = torch.nn.functional.normalize((body.last_hidden_state * text).sum(1) / text.sum(1), dim=1).float()
            if name == "bert_bare":  # as sentence-transformers with other settings
                out["embed"] = out["hidden"][:, 0]
                sentences(Path(folder))
        if net_class != "BertModel":
            result = whole_net(ids, attention_mask=(ids != config.pad_token_id).long()) if encoder else whole_net(ids)
            out["logits"] = (result.logits if "logits" in result else result.prediction_logits).float()
    if net_class != "BertModel":
        first = ids[:1]
        own_targets = targets[:1] if encoder else None
        if encoder:  # texts without padding
            found = gradients(whole_net, first, own_targets)
        else:
            found = gradients(whole_net, first[:, :-1], first[:, 1:])
        for key, g in found.items():
            flat = g.flatten()
            out["gradient." + key] = torch.stack([flat.norm(), (flat * torch.cos(torch.arange(flat.numel()))).sum()])
        if whole:
            save_file({k: g.contiguous() for k, g in found.items()}, Path(folder) / "gradients.safetensors")
    save_file({k: v.contiguous() for k, v in out.items()}, Path(folder) / "expected.safetensors")


# ---- GGUF -------------------------------------------------------------------------------------------------

NAMES = {  # of Hugging Face: of llama.cpp
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "post_attention_layernorm": "ffn_norm", "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
GEMMA = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
         "post_feedforward_layernorm": "post_ffw_norm"}
GGUFS = ["llama", "llama3", "llama_tied", "qwen2", "qwen3", "gemma2_even", "gpt2"]


def permuted(w, heads):
    """The order of rows in which llama.cpp rotates features 2i and 2i + 1."""
    return w.reshape(heads, 2, -1, *w.shape[1:]).transpose(1, 2).reshape(w.shape)


def gguf_name(key, model):
    base, end = key.rsplit(".", 1)
    parts = base.split(".")
    number = next((part for part in parts if part.isdigit()), None)
    if number:
        base = base.split(f".{number}.")[1]
    own = GEMMA.get(base) if model == "gemma2" else None
    return (f"blk.{number}." if number else "") + (own or NAMES[base]) + "." + end


def make_gguf(name, folder, path):
    """The net of a folder as llama.cpp's converter writes it, in f32, without a tokenizer."""
    config = json.loads((Path(folder) / "config.json").read_text())
    model, at = config["model_type"], config.get
    out = gguf.GGUFWriter(str(path), model)
    heads, groups = at("num_attention_heads") or at("n_head"), at("num_key_value_heads")
    width = at("hidden_size") or at("n_embd")
    each = at("head_dim") or width // heads
    out.add_block_count(at("num_hidden_layers") or at("n_layer"))
    out.add_context_length(at("max_position_embeddings") or at("n_positions"))
    out.add_embedding_length(width)
    out.add_feed_forward_length(at("intermediate_size") or 4 * width)
    out.add_head_count(heads)
    out.add_vocab_size(config["vocab_size"])
    if model == "gpt2":
        out.add_layer_norm_eps(config["layer_norm_epsilon"])
    else:
        out.add_head_count_kv(groups)
        out.add_layer_norm_rms_eps(config["rms_norm_eps"])
        out.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
        out.add_rope_dimension_count(each)
        out.add_key_length(each)
        out.add_value_length(each)
    if model == "gemma2":
        out.add_sliding_window(config["sliding_window"])
        out.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        out.add_final_logit_softcapping(config["final_logit_softcapping"])
    for key, w in load_file(Path(folder) / "model.safetensors").items():
        if model == "llama" and ("q_proj" in key or "k_proj" in key):
            w = permuted(w, heads if "q_proj" in key else groups)
        if model == "gemma2" and "norm" in key:
            w = w + 1
        if model == "gpt2" and ".c_" in key and w.dim() == 2:
            w = w.t()
        out.add_tensor(gguf_name(key, model), w.contiguous().numpy())
    rope_parts = at("rope_parameters") or {}
    if rope_parts.get("rope_type") == "llama3":
        out.add_tensor("rope_freqs.weight", divisors(rope_parts, each))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def divisors(parts, each):
    """What llama.cpp stores for the scaling of Llama 3."""
    low, high, old, out = parts["low_freq_factor"], parts["high_freq_factor"], parts["original_max_position_embeddings"], []
    for i in range(0, each, 2):
        turns = old / (2 * math.pi * parts["rope_theta"] ** (i / each))
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        out.append(1 / ((1 - share) / parts["factor"] + share))
    return torch.tensor(out).numpy()


def make_types(path, expected):
    """Every type that is read, in random blocks, and their numbers as the package gguf reads them."""
    rng, out, numbers = numpy.random.default_rng(0), gguf.GGUFWriter(str(path), "types"), {}
    for kind, halves in {"F16": [], "BF16": [], "F32": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q8_0": [0], "Q4_K": [0, 2],
                         "Q5_K": [0, 2], "Q6_K": [208]}.items():
        dtype = gguf.GGMLQuantizationType[kind]
        elements, size = gguf.GGML_QUANT_SIZES[dtype]
        blocks = rng.integers(0, 256, (6, size), dtype=numpy.uint8)
        for at in halves:  # scales that are finite
            blocks[:, at:at + 2] = rng.normal(size=(6, 1)).astype(numpy.float16).view(numpy.uint8)
        if elements == 1:
            values = rng.normal(size=(3, 64)).astype(numpy.float32)
            blocks = gguf.quants.quantize(values, dtype).view(numpy.uint8).reshape(3, -1)
        else:
            blocks = blocks.reshape(3, -1)
        out.add_tensor(kind.lower(), blocks, raw_dtype=dtype)
        numbers[kind.lower()] = torch.tensor(gguf.quants.dequantize(blocks, dtype).reshape(3, -1).astype(numpy.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    save_file(numbers, expected)


def make_q8_0(path):
    """Rows, and the blocks of q8_0 that the package gguf makes of them."""
    rng = numpy.random.default_rng(1)
    x = rng.normal(size=(16, 64)).astype(numpy.float32)
    x[0], x[1, :32] = 0, 1e-9  # no scale; a scale that f16 rounds to 0
    x[2] = numpy.tile(numpy.arange(-16, 16) + 0.5, 2) * 127 / 15.5 / 8  # many are between two integers
    x[2, 0], x[2, 32] = -15.875, 127
    x[3], x[4] = x[3] * 1e6, x[4] * 3e-6  # beyond most of f16, and among its subnormals
    blocks = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
    save_file({"x": torch.tensor(x), "blocks": torch.tensor(blocks)}, path)


def strict(name, folder, weights):
    """Loads what a job saved into the net of transformers. Fails unless all names and shapes match."""
    _, net_class, _ = NETS[name]
    net_class = {"GPT2Model": "GPT2LMHeadModel"}.get(net_class, net_class)
    with tempfile.TemporaryDirectory() as saved:
        shutil.copy(Path(folder) / "config.json", saved)
        save_file(load_file(weights), Path(saved) / "model.safetensors", metadata={"format": "pt"})
        _, found = getattr(transformers, net_class).from_pretrained(saved, output_loading_info=True)
    missing = {key for key in found["missing_keys"] if "seq_relationship" not in key}  # the job has no such head
    assert not missing and not found["unexpected_keys"] and not found["mismatched_keys"], found


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    for one in COMMITTED:
        make(one, here / "nets" / one)
        if one in GGUFS:
            make_gguf(one, here / "nets" / one, here / "nets" / one / "model.gguf")
    make_types(here / "types.gguf", here / "types.safetensors")
    make_q8_0(here / "q8_0.safetensors")
