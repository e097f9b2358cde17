#!/usr/bin/env python3
"""Makes the fixtures of this folder with PyTorch, the reference that ampc is measured against.

    /usr/bin/python3 tests/torch/make_fixtures.py          (Debian: python3-torch)

Tests read the committed files and never need PyTorch. Inputs are float32 values; outputs, losses and
gradients are computed by PyTorch in float64 from them. Same PyTorch, same bytes.

ops.safetensors         for each CASE of cases.def: CASE/x... (parameters), CASE/t (targets), CASE/g
                        (what the output is multiplied with to get a loss), CASE/out, CASE/loss,
                        CASE/grad/x...; with running statistics CASE/after/x..., and out is that
                        of evaluation
trajectory.safetensors  20 steps of an MLP and of a CNN under several optimizers and schedules;
                        weights and batches come from `mix`, which the test has too, so they are
                        not stored
state.safetensors       no tensors: names, shapes and default initialisation of PyTorch's layers
"""
import json
import math
import os
import re
import struct

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.stateless import functional_call

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {np.dtype("float64"): "F64", np.dtype("float32"): "F32", np.dtype("int64"): "I64"}


def write(name, tensors, metadata):
    """The safetensors format: u64 header size, JSON header, then the bytes."""
    metadata = dict(metadata, made_by="tests/torch/make_fixtures.py", torch=torch.__version__,
                    numpy=np.__version__)
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for key, value in tensors.items():
        array = value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        blob = np.ascontiguousarray(array).tobytes()
        header[key] = {"dtype": TYPES[array.dtype], "shape": list(array.shape),
                       "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


# ---- one layer or function at a time -------------------------------------------------------------

def normal(*shape, scale=1.0):
    return (torch.randn(*shape, dtype=torch.float64) * scale).float()


def positive(*shape):
    return torch.rand(*shape, dtype=torch.float64).float() * 3 + 0.1


def distinct(*shape):
    """No two values are near each other, so that max and argmax have one answer in any type."""
    n = math.prod(shape)
    return (torch.randperm(n, dtype=torch.float64) / n * 4 - 2).float().reshape(shape)


CASES = {}
STATES = {}  # of a case with running statistics: its module


def case(name, function, t=None, differentiable=True, **params):
    """function: from named float64 parameters (and targets `t`) to the output."""
    CASES[name] = (params, t, function, differentiable)


def layer_case(name, prefix, module, x):
    """The module stands as `prefix` in the job, so its parameters are prefix.weight and so on."""
    params = {"x": x, **{f"{prefix}.{n}": normal(*p.shape, scale=0.5)
                         for n, p in module.named_parameters()}}
    module.double()

    def apply(p):
        own = {n: p[f"{prefix}.{n}"] for n, _ in module.named_parameters()}
        return functional_call(module, own, p["x"])

    case(name, apply, **params)


def unary_cases():
    x = normal(3, 17, scale=2.0)
    x[0, 0], x[0, 1], x[0, 2] = 0.0, 9.5, -9.5
    for name, function in {
        "relu": torch.relu, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid,
        "tanh": torch.tanh, "exp": torch.exp,
        "gelu_tanh": lambda v: 0.5 * v * (1 + torch.tanh(math.sqrt(2 / math.pi)
                                                         * (v + 0.044715 * v ** 3))),
    }.items():
        case(name, lambda p, f=function: f(p["x"]), x=x)
    assert torch.allclose(CASES["gelu_tanh"][2]({"x": x}), F.gelu(x, approximate="tanh"), atol=1e-6)
    case("log", lambda p: torch.log(p["x"]), x=positive(3, 17))
    case("sqrt", lambda p: torch.sqrt(p["x"]), x=positive(3, 17))
    case("pow_number", lambda p: p["x"] ** 3, x=normal(3, 17))
    case("pow_half", lambda p: p["x"] ** 1.5, x=positive(3, 17))
    case("pow_tensor", lambda p: p["x"] ** p["y"], x=positive(3, 17), y=normal(3, 17))


def arithmetic_cases():
    x, row, column = normal(4, 5), normal(5), normal(4, 1)
    case("add", lambda p: p["x"] + p["y"], x=x, y=row)
    case("sub", lambda p: p["x"] - p["y"], x=x, y=column)
    case("mul", lambda p: p["x"] * p["y"], x=column, y=row)
    case("div", lambda p: p["x"] / p["y"], x=x, y=positive(4, 1))
    case("numbers", lambda p: 2 * p["x"] - p["x"] / 3 + 0.25, x=x)
    case("broadcast3", lambda p: p["x"] * p["y"], x=normal(2, 3, 4), y=normal(3, 1))
    case("matmul", lambda p: p["x"] @ p["y"], x=normal(5, 7), y=normal(7, 3))
    case("matmul_batched", lambda p: p["x"] @ p["y"], x=normal(2, 5, 7), y=normal(2, 7, 3))
    case("matmul_broadcast", lambda p: p["x"] @ p["y"], x=normal(2, 5, 7), y=normal(7, 3))


def reduction_cases():
    x = normal(3, 4, 5)
    case("sum_all", lambda p: p["x"].sum(), x=x)
    case("sum_dim", lambda p: p["x"].sum(1), x=x)
    case("sum_dims", lambda p: p["x"].sum((0, 2)), x=x)
    case("mean_all", lambda p: p["x"].mean(), x=x)
    case("mean_keep", lambda p: p["x"].mean(-1, keepdim=True), x=x)
    case("max_all", lambda p: p["x"].max(), x=distinct(3, 4, 5))
    case("amax_dim", lambda p: p["x"].amax(1), x=distinct(3, 4, 5))
    case("amin_dim", lambda p: p["x"].amin(-1), x=distinct(3, 4, 5))
    case("argmax", lambda p: p["x"].argmax(1), differentiable=False, x=distinct(6, 11))
    case("argmax_middle", lambda p: p["x"].argmax(1), differentiable=False, x=distinct(3, 4, 5))


def shape_cases():
    x = normal(2, 3, 4)
    case("flatten", lambda p: p["x"].flatten(1), x=x)
    case("view", lambda p: p["x"].view(6, 4), x=x)
    case("reshape_minus_one", lambda p: p["x"].reshape(4, -1), x=x)
    case("transpose", lambda p: p["x"].transpose(0, 2), x=x)
    case("transpose_view", lambda p: p["x"].transpose(1, 2).reshape(2, 12), x=x)
    case("cat", lambda p: torch.cat([p["x"], p["y"]], dim=1), x=x, y=normal(2, 2, 4))
    case("slice", lambda p: p["x"][:, 1:, ::2], x=x)
    case("slice_index", lambda p: p["x"][:, -1], x=x)
    case("reuse", lambda p: torch.cat([p["x"][:, :1], p["x"]], dim=1) * p["x"][:, 2:3], x=x)


def row_cases():
    x = normal(6, 10, scale=3.0)
    case("softmax", lambda p: F.softmax(p["x"], -1), x=x)
    case("softmax_dim0", lambda p: F.softmax(p["x"], 0), x=x)
    case("softmax_large", lambda p: F.softmax(p["x"], -1), x=x * 40)
    case("log_softmax", lambda p: F.log_softmax(p["x"], -1), x=x)
    case("log_softmax_middle", lambda p: F.log_softmax(p["x"], 1), x=normal(2, 7, 3))
    t = torch.randint(0, 10, (6,))
    some = t.clone()
    some[1], some[4] = -100, -100
    three = t.clone()
    three[0], three[5] = 3, 3
    case("cross_entropy", lambda p: F.cross_entropy(p["x"], p["t"]), t=t, x=x)
    case("cross_entropy_sum", lambda p: F.cross_entropy(p["x"], p["t"], reduction="sum"), t=t, x=x)
    case("cross_entropy_none", lambda p: F.cross_entropy(p["x"], p["t"], reduction="none"), t=t, x=x)
    case("cross_entropy_smooth",
         lambda p: F.cross_entropy(p["x"], p["t"], label_smoothing=0.1), t=t, x=x)
    case("cross_entropy_ignore", lambda p: F.cross_entropy(p["x"], p["t"]), t=some, x=x)
    case("cross_entropy_both", lambda p: F.cross_entropy(
        p["x"], p["t"], ignore_index=3, label_smoothing=0.2), t=three, x=x)
    case("mse_loss", lambda p: F.mse_loss(p["x"], p["y"]), x=x, y=normal(6, 10))
    case("mse_loss_sum", lambda p: F.mse_loss(p["x"], p["y"], reduction="sum"), x=x, y=normal(6, 10))


def layer_cases():
    x = normal(5, 7)
    layer_case("linear", "fc", nn.Linear(7, 3), x)
    layer_case("linear_no_bias", "fc", nn.Linear(7, 3, bias=False), x)
    layer_case("linear_3d", "fc", nn.Linear(7, 3), normal(2, 5, 7))
    layer_case("layer_norm", "norm", nn.LayerNorm(7), x)
    layer_case("layer_norm_eps", "norm", nn.LayerNorm(7, eps=0.1), normal(2, 3, 7))
    layer_case("dropout_eval", "drop", nn.Dropout(0.5).eval(), x)
    layer_case("sequential", "net", nn.Sequential(nn.Linear(7, 9), nn.LayerNorm(9), nn.GELU(),
                                                  nn.Linear(9, 4), nn.Softmax(-1)), x)
    layer_case("activations", "net", nn.Sequential(
        nn.Linear(7, 6), nn.SiLU(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Sigmoid(),
        nn.Linear(6, 6), nn.ReLU(), nn.Identity(), nn.Flatten()), x)


def convolution_cases():
    x = normal(2, 4, 7, 6)
    for name, arguments, options in (
            ("plain", (4, 3, 3), {}), ("stride", (4, 3, 3), {"stride": 2, "padding": 1}),
            ("uneven", (4, 2, (3, 2)), {"stride": (2, 1), "padding": (0, 1), "bias": False}),
            ("dilation", (4, 3, 3), {"dilation": 2, "padding": 2}),
            ("groups", (4, 6, 3), {"groups": 2, "padding": 1}),
            ("depthwise", (4, 4, 3), {"groups": 4, "padding": 1, "stride": (1, 2)}),
            ("point", (4, 5, 1), {"bias": False})):
        layer_case("conv_" + name, "conv", nn.Conv2d(*arguments, **options), x)
    layer_case("conv_chain", "net", nn.Sequential(
        nn.Conv2d(4, 5, 3, padding=1), nn.SiLU(), nn.AvgPool2d(2), nn.Conv2d(5, 3, 2), nn.Flatten(),
        nn.Linear(12, 2)), x[:, :, :6])


def norm_case(name, module, x):
    """`out` is the value in evaluation, from the statistics before; loss and gradients are those of
    training, which moves the statistics."""
    for key, value in module.named_buffers():
        if value.dtype == torch.float32:
            value.copy_(positive(*value.shape) if "var" in key else normal(*value.shape))
    layer_case(name, "norm", module, x)
    STATES[name] = module


def image_cases():
    x = normal(3, 4, 6, 5) + 0.5
    norm_case("batch_norm", nn.BatchNorm2d(4), x)
    norm_case("batch_norm_settings", nn.BatchNorm2d(4, eps=0.01, momentum=0.3), x * 2)
    norm_case("batch_norm_plain", nn.BatchNorm2d(4, affine=False), x)
    norm_case("batch_norm_1d", nn.BatchNorm1d(4), normal(7, 4))
    d = distinct(2, 3, 8, 7)
    case("max_pool", lambda p: F.max_pool2d(p["x"], 2), x=d)
    case("max_pool_overlap", lambda p: F.max_pool2d(p["x"], 3, stride=2, padding=1), x=d)
    case("max_pool_uneven", lambda p: F.max_pool2d(p["x"], (2, 3), stride=(1, 2), dilation=2), x=d)
    case("avg_pool", lambda p: F.avg_pool2d(p["x"], 2), x=d)
    case("avg_pool_padded", lambda p: F.avg_pool2d(p["x"], 3, stride=2, padding=1), x=d)
    case("avg_pool_inside",
         lambda p: F.avg_pool2d(p["x"], 3, 2, 1, count_include_pad=False), x=d)
    case("avg_pool_divisor", lambda p: F.avg_pool2d(p["x"], (2, 3), divisor_override=5), x=d)
    case("adaptive_one", lambda p: F.adaptive_avg_pool2d(p["x"], 1), x=d)
    case("adaptive_uneven", lambda p: F.adaptive_avg_pool2d(p["x"], (3, 5)), x=d)
    case("interpolate", lambda p: F.interpolate(p["x"], scale_factor=2), x=x)
    case("interpolate_uneven", lambda p: F.interpolate(p["x"], scale_factor=(3, 2)), x=x)
    case("pad_last", lambda p: F.pad(p["x"], (1, 2)), x=x)
    case("pad_image", lambda p: F.pad(p["x"], (0, 1, 2, 1), value=0.75), x=x)
    case("permute", lambda p: p["x"].permute(0, 2, 3, 1), x=x)
    case("unsqueeze", lambda p: p["x"].unsqueeze(1) * p["y"], x=normal(3, 4), y=normal(3, 2, 4))
    y = torch.rand(6, 10, dtype=torch.float64).float()
    bce = F.binary_cross_entropy_with_logits
    logits = normal(6, 10, scale=4.0)
    case("bce", lambda p: bce(p["x"], p["y"]), x=logits, y=y)
    case("bce_sum", lambda p: bce(p["x"], p["y"], reduction="sum"), x=logits, y=y)
    case("bce_none", lambda p: bce(p["x"], p["y"], reduction="none"), x=logits * 10, y=y)


def more_cases():
    x = normal(3, 4, 6, 5) + 0.5
    case("var_all", lambda p: p["x"].var(), x=x)
    case("var_dims", lambda p: p["x"].var((0, 3), keepdim=True), x=x)
    case("var_biased", lambda p: p["x"].var(1, unbiased=False), x=x)
    case("std_dims", lambda p: p["x"].std((2, 3)), x=x)
    case("std_dim", lambda p: p["x"].std(0), x=x)
    case("elu", lambda p: F.elu(p["x"]), x=normal(3, 17, scale=3.0))
    case("elu_alpha", lambda p: F.elu(p["x"], 0.3), x=normal(3, 17, scale=3.0))
    case("flip", lambda p: p["x"].flip((1, -1)), x=x)
    for name, arguments, options in (
            ("plain", (4, 3, 3), {}), ("stride", (4, 3, 4), {"stride": 2, "padding": 1}),
            ("groups", (4, 6, (3, 2)), {"stride": (2, 3), "groups": 2, "bias": False,
                                        "padding": (1, 0), "output_padding": (1, 2)}),
            ("dilation", (4, 2, 2), {"dilation": 2})):
        layer_case("transpose_" + name, "conv", nn.ConvTranspose2d(*arguments, **options), x)
    layer_case("conv1d", "conv", nn.Conv1d(4, 6, 3, stride=2, padding=2, groups=2),
               normal(2, 4, 9))
    layer_case("group_norm", "norm", nn.GroupNorm(2, 4), x)
    layer_case("instance_norm", "norm", nn.InstanceNorm2d(4), x)
    layer_case("instance_norm_affine", "norm", nn.InstanceNorm2d(4, affine=True), x)
    layer_case("group_norm_plain", "norm", nn.GroupNorm(4, 4, eps=0.01, affine=False), x)


def state_tensors(name, module, p):
    """Running statistics before and after one call in training, and what evaluation gives before."""
    tensors = {}
    floats = [(k, v) for k, v in module.named_buffers() if v.dtype != torch.int64]
    for key, value in floats:
        tensors[f"{name}/norm.{key}"] = value.float()
        assert (value == value.float()).all()
    own = {n: p[f"norm.{n}"] for n, _ in module.named_parameters()}
    tensors[f"{name}/out"] = functional_call(module.eval(), own, p["x"])
    module.train()
    functional_call(module, own, p["x"])
    for key, value in floats:
        tensors[f"{name}/after/norm.{key}"] = dict(module.named_buffers())[key].clone()
    return tensors


FAMILIES = {  # by the seed of their numbers: a new family leaves the others as they are
    20: (unary_cases, arithmetic_cases, reduction_cases, shape_cases, row_cases, layer_cases),
    22: (convolution_cases, image_cases),
    23: (more_cases,),
}


def make_ops():
    tensors, names = {}, []
    for seed, makers in FAMILIES.items():
        torch.manual_seed(seed)
        CASES.clear()
        for make in makers:
            make()
        tensors.update(case_tensors())
        names += list(CASES)
    write("ops.safetensors", tensors, {"cases": " ".join(names)})


def case_tensors():
    tensors = {}
    for name, (params, t, function, differentiable) in CASES.items():
        p = {k: v.double().requires_grad_(differentiable) for k, v in params.items()}
        if t is not None:
            p["t"] = t
        state = state_tensors(name, STATES[name], p) if name in STATES else {}
        out = function(p)
        for key, value in params.items():
            tensors[f"{name}/{key}"] = value
        if t is not None:
            tensors[f"{name}/t"] = t
        tensors[f"{name}/out"] = out
        tensors.update(state)
        if not differentiable:
            continue
        shape = out.shape if out.dim() else (len(t) if t is not None else 1,)
        g = normal(*shape)
        loss = (out * g.double()).sum()
        loss.backward()
        tensors[f"{name}/g"] = g
        tensors[f"{name}/loss"] = loss
        for key in params:
            if p[key].grad is not None:
                tensors[f"{name}/grad/{key}"] = p[key].grad
    return tensors


# ---- twenty steps ------------------------------------------------------------------------------

CLASSES, STEPS = 10, 20


class MLP:
    inputs, batch, batches = 784, 32, 20
    sample = 101   # every 101st final weight is stored
    margin = 8e-6  # a sum of fc1 may be 1e-6 off in f32
    shapes = {"fc1.weight": (64, 784), "fc1.bias": (64,), "fc2.weight": (10, 64), "fc2.bias": (10,)}
    running = {}

    @staticmethod
    def forward(p, _, x):
        h = F.linear(x, p["fc1.weight"], p["fc1.bias"])
        return F.linear(torch.relu(h), p["fc2.weight"], p["fc2.bias"]), [h]


class CNN:
    inputs, batch, batches, sample, margin = 144, 8, 2, 1, 1e-5
    shapes = {"conv1.weight": (4, 1, 3, 3), "bn1.weight": (4,), "bn1.bias": (4,),
              "conv2.weight": (8, 4, 3, 3), "bn2.weight": (8,), "bn2.bias": (8,),
              "fc.weight": (10, 8), "fc.bias": (10,)}
    running = {"bn1.running_mean": (4, 0.0), "bn1.running_var": (4, 1.0),
               "bn2.running_mean": (8, 0.0), "bn2.running_var": (8, 1.0)}

    @staticmethod
    def forward(p, state, x):
        x, seen = x.reshape(-1, 1, 12, 12), []
        for i in "12":
            x = F.conv2d(x, p[f"conv{i}.weight"], padding=1)
            x = F.batch_norm(x, state[f"bn{i}.running_mean"], state[f"bn{i}.running_var"],
                             p[f"bn{i}.weight"], p[f"bn{i}.bias"], training=True)
            seen.append(x)
            x = F.avg_pool2d(torch.relu(x), 2)
        return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"]), seen


def mix(seed, n):
    """n numbers of [0, 1), multiples of 2^-24: splitmix64, the same in test_trajectory.c."""
    with np.errstate(over="ignore"):
        z = (np.arange(n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / 2 ** 24


def start_weights(net):
    return {name: torch.tensor((2 * mix(i + 1, math.prod(shape)) - 1).reshape(shape) / 8)
            + (1 if re.match("bn.*weight", name) else 0)
            for i, (name, shape) in enumerate(net.shapes.items())}


def batch(net, step, draw):
    seed, n = 2000 * draw + step % net.batches, net.batch
    x = torch.tensor(mix(1000 + seed, n * net.inputs).reshape(n, net.inputs))
    y = torch.tensor(np.floor(mix(2000 + seed, n) * CLASSES).astype(np.int64))
    return x, y


def warm_linear(optimizer, start, end, steps, warmup):
    """What transformers' linear schedule does: 0 to 1 over `warmup`, then down to end / start."""
    def factor(t):
        if t < warmup:
            return t / warmup
        done = min((t - warmup) / (steps - warmup), 1.0)
        return 1 + (end / start - 1) * done
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


SCHED = torch.optim.lr_scheduler
RUNS = {  # name: optimizer, schedule or None, clip_norm or None; cnn... trains the CNN
    "sgd": (lambda p: torch.optim.SGD(p, lr=0.05), None, None),
    "nesterov": (lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True,
                                           weight_decay=5e-4), None, None),
    "adam": (lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=1e-2), None, None),
    "adamw_linear": (lambda p: torch.optim.AdamW(p, lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1),
                     lambda o: SCHED.LinearLR(o, 1.0, 0.1, total_iters=15), 0.5),
    "adamw_warmup": (lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.1),
                     lambda o: warm_linear(o, 2e-3, 0.0, 20, 4), 1.0),
    "adamw_cosine": (lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.01),
                     lambda o: SCHED.CosineAnnealingLR(o, T_max=20, eta_min=2e-4), 1.0),
    "sgd_step": (lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.1),
                 lambda o: SCHED.StepLR(o, step_size=5, gamma=0.3), 0.25),
    "groups_sgd": (lambda p: torch.optim.SGD(
        [{"params": [p[0]]}, {"params": [p[1]], "lr": 0.01, "momentum": 0.0},
         {"params": p[2:], "weight_decay": 0.0, "nesterov": False}],
        lr=0.03, momentum=0.9, nesterov=True, weight_decay=0.01), None, 0.5),
    "groups_adamw": (lambda p: torch.optim.AdamW(
        [{"params": [p[0], p[2]]}, {"params": [p[1], p[3]], "weight_decay": 0.0, "eps": 1e-6,
                                    "betas": (0.8, 0.99)}], lr=2e-3, weight_decay=0.1),
        lambda o: SCHED.LambdaLR(o, [lambda t: 1.0, lambda t: 0.5 ** (t // 5)]), None),
    "cnn_onecycle": (lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9, nesterov=True,
                                               weight_decay=5e-4),
                     lambda o: SCHED.OneCycleLR(o, 0.2, total_steps=20, cycle_momentum=False), None),
    "cnn_adamw": (lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.01), None, 1.0),
}


def run(net, make, schedule, clip, dtype, draw):
    """Losses, final weights and running statistics and the least distance from 0 of what goes into the relu."""
    p = {k: v.to(dtype).requires_grad_(True) for k, v in start_weights(net).items()}
    state = {k: torch.full((n,), v, dtype=dtype) for k, (n, v) in net.running.items()}
    optimizer = make(list(p.values()))
    sched = schedule(optimizer) if schedule else None
    losses, margin = [], math.inf
    for step in range(STEPS):
        x, y = batch(net, step, draw)
        logits, seen = net.forward(p, state, x.to(dtype))
        margin = min([margin] + [h.abs().min().item() for h in seen])
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(p.values(), clip)
        optimizer.step()
        if sched:
            sched.step()
        losses.append(loss.item())
    final = list(p.values()) + list(state.values())
    weights = torch.cat([v.detach().flatten() for v in final]).double().numpy()
    return np.array(losses), weights, margin


def safe_run(net, arguments):
    """The first draw of batches on which no order of summation decides what a relu passes on."""
    for draw in range(100):
        losses, weights, margin = run(net, *arguments, torch.float64, draw)
        if margin > net.margin:
            return draw, losses, weights
    raise AssertionError("no draw keeps away from 0")


def make_trajectory():
    """The truth is float64. PyTorch's own float32 distance from it shows what rounding alone does
    in 20 steps; it goes into the metadata and is what the test's bounds were chosen by."""
    tensors, distance = {}, {}
    for name, arguments in RUNS.items():
        net = CNN if name.startswith("cnn") else MLP
        draw, losses, weights = safe_run(net, arguments)
        losses32, weights32, _ = run(net, *arguments, torch.float32, draw)
        tensors[f"{name}/draw"] = np.array([draw], dtype=np.float64)
        tensors[f"{name}/losses"] = losses
        tensors[f"{name}/weights"] = weights[::net.sample].copy()
        distance[name] = [float(np.max(np.abs(losses32 - losses) / losses)),
                          float(np.max(np.abs(weights32 - weights)))]
        assert losses[-2:].sum() < losses[:2].sum(), (name, losses)
    write("trajectory.safetensors", tensors,
          {"f32_distance": json.dumps(distance), "runs": " ".join(RUNS)})
    for name, d in distance.items():
        print(f"{name:14} f32 against f64: losses {d[0]:.1e} relative, weights {d[1]:.1e}")


# ---- names, shapes, initialisation ---------------------------------------------------------------------

def make_state():
    """Bounds of nn.Linear's uniform initialisation are 1 / sqrt(fan in); checked on a sample here."""
    torch.manual_seed(21)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.LayerNorm(256), nn.Dropout(0.1),
                        nn.Sequential(nn.Linear(256, 64, bias=False), nn.GELU()), nn.Linear(64, 10))
    rows = []
    for name, p in net.state_dict().items():
        owner = net.get_submodule(name.rpartition(".")[0])
        if isinstance(owner, nn.Linear):
            bound = 1 / math.sqrt(owner.in_features)
            assert p.abs().max() <= bound and (p.numel() < 256 or p.abs().max() > 0.98 * bound)
            init = ["uniform", -bound, bound]
        else:
            init = ["constant", float(p[0]), 0.0]
            assert (p == p[0]).all()
        rows.append({"name": name, "shape": list(p.shape), "init": init})
    write("state.safetensors", {}, {"state": json.dumps(rows)})


if __name__ == "__main__":
    torch.set_num_threads(1)
    make_ops()
    make_trajectory()
    make_state()
