#!/usr/bin/env python3
"""Makes the fixtures of this folder with PyTorch, which is the reference for ampc.

    /usr/bin/python3 tests/torch/make_fixtures.py            the cases of cases.def that have no fixture yet
    /usr/bin/python3 tests/torch/make_fixtures.py NAME...    these cases again, from their stored inputs
    ... --draw NAME...     the same from new inputs
    ... --check [NAME...]  compares PyTorch's results here with the stored ones; writes nothing
    ... --trajectory, --plateau, --mixed, --every, --state   the file of that name, whole
    ... --halves [NAME...]    halves.safetensors, from the inputs in ops.safetensors, and rounding.def: these cases, or those
                              that the file lacks
    ... --rounding [NAME...]  only rounding.def, for these cases of halves.safetensors, or for all

Debian's python3-torch is enough for most cases: kinks_bounds has the gradients of PyTorch 2.15, which 1.13
does not compute, rms_norm needs 2.4, weight_norm 2.1; the cases of augmentation need torchvision. Tests read the committed files and need no PyTorch.
Inputs are float32 values; PyTorch computes outputs, losses and gradients from them in float64. The inputs of
a case are drawn from its name, so they do not depend on other cases. Other cases keep their bytes.

ops.safetensors         for each CASE of cases.def: CASE/x... (parameters), CASE/t (targets), CASE/g
                        (the loss is sum(out * g)), CASE/out, CASE/loss, CASE/grad/x...; with running
                        statistics also CASE/after/x..., and out is that of evaluation
halves.safetensors      for each case f16/CASE/out, bf16/CASE/grad/x..., ...: float64 results from inputs and g that are
                        rounded to 16 bits, rounded to 16 bits too. The metadata has the errors of
                        PyTorch itself in 16 bits
rounding.def            the rounding errors of deep cases in 16 bits (rounding.py)
trajectory.safetensors  20 steps of an MLP, a CNN and LSTMs under several optimizers and schedules;
                        weights and batches are not stored: they come from `mix`, which the test has too
mixed.safetensors       20 steps under autocast in bf16 of a value that three products read
every.safetensors       20 steps of a generator and its critic; some steps update only one of them
state.safetensors       no tensors; metadata: names, shapes and default initialization of PyTorch's layers
"""
import argparse
import collections
import json
import math
import os
import re
import struct
import sys
import warnings
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import rounding
from cases import FUNCTION, read_cases

HERE = os.path.dirname(os.path.abspath(__file__))
class Halves:
    """Numbers of a type that numpy does not have, as bits."""
    def __init__(self, name, bits):
        self.name, self.bits = name, bits

    @classmethod
    def of(cls, tensor):
        return cls("BF16" if tensor.dtype == torch.bfloat16 else "F16", tensor.detach().contiguous().view(torch.int16).numpy())


TYPES = {np.dtype("float64"): "F64", np.dtype("float32"): "F32", np.dtype("int64"): "I64"}
DTYPES = {name: dtype for dtype, name in TYPES.items()}


def numpy_of(value):
    return np.asarray(value.detach().numpy() if isinstance(value, torch.Tensor) else value, order="C")


def read_bytes(name):
    """The metadata of a file, the places of its tensors, and their bytes; all empty without the file."""
    path = os.path.join(HERE, name)
    if not os.path.exists(path):
        return {}, {}, b""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        return header.pop("__metadata__"), header, f.read()


def read(name):
    """The tensors of a file as arrays, in the file's order, and its metadata."""
    metadata, header, data = read_bytes(name)
    return {key: np.frombuffer(data[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]])
            .reshape(entry["shape"]) for key, entry in header.items()}, metadata


def write(name, tensors, metadata):
    """The safetensors format: u64 header size, JSON header, then the bytes."""
    metadata = dict(metadata, made_by="tests/torch/make_fixtures.py", torch=torch.__version__,
                    numpy=np.__version__)
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for key, value in tensors.items():
        array = value.bits if isinstance(value, Halves) else numpy_of(value)
        blob = array.tobytes()
        header[key] = {"dtype": value.name if isinstance(value, Halves) else TYPES[array.dtype], "shape": list(array.shape),
                       "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


# ---- how to fill inputs: the words of cases.def ----------------------------------------------------

def scaled(factor):
    return lambda random, shape: random.standard_normal(shape) * factor


normal = scaled(1.0)


def positive(random, shape):
    return random.random_sample(shape) * 3 + 0.1


def share(random, shape):
    return random.random_sample(shape)


def within(random, shape):
    return random.random_sample(shape) * 1.98 - 0.99


def distinct(random, shape):
    """Values that differ clearly, so that max and argmax have one answer in any type."""
    n = math.prod(shape)
    return (random.permutation(n) / n * 4 - 2).reshape(shape)


def values(*numbers):
    """These numbers, repeated, so that kinks and ties are at known places."""
    return lambda random, shape: np.resize(np.array(numbers, dtype=np.float64), shape)


def labels(n, classes, extra=None):
    """n targets; the second and the last are `extra`, such as the ignored index."""
    def fill(random, _):
        t = random.randint(0, classes, n).astype(np.int64)
        if extra is not None:
            t[1] = t[-1] = extra
        return t
    return fill


# ---- one layer or function at a time -------------------------------------------------------------

def dice_loss(logits, target, smooth=1e-5, squared=False, ignore_index=-100, reduction="mean"):
    """MONAI's DiceLoss(softmax=True, to_onehot_y=True, squared_pred=squared, smooth_nr=smooth, smooth_dr=smooth) of
    classes, with sigmoid=True of masks; a sample and a class at a time."""
    rows = []
    for x, y in zip(logits, target):
        seen = torch.ones(x[0].shape, dtype=torch.bool) if y.is_floating_point() else y != ignore_index
        for c in range(len(x)):
            p = (torch.sigmoid(x) if y.is_floating_point() else torch.softmax(x, 0))[c][seen]
            t = y[c][seen] if y.is_floating_point() else (y == c)[seen].to(p)
            size = (p ** 2).sum() + (t ** 2).sum() if squared else p.sum() + t.sum()
            rows.append(1 - (2 * (p * t).sum() + smooth) / (size + smooth))
    rows = torch.stack(rows).reshape(logits.shape[:2])
    return rows.mean() if reduction == "mean" else rows.sum() if reduction == "sum" else rows


def rotary_frequencies(dim, rope_theta=10000.0, rope_type="default", **scaling):
    """Of transformers 5, from the fields of config.json."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    rope = {"rope_type": rope_type, "rope_theta": rope_theta, **scaling}
    if rope_type == "default":
        return 1.0 / rope_theta ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    config = LlamaConfig(hidden_size=dim, num_attention_heads=1, head_dim=dim, rope_parameters=rope,
                         max_position_embeddings=scaling.get("original_max_position_embeddings", 8192))
    return ROPE_INIT_FUNCTIONS[rope_type](config, "cpu")[0].double()


def rotary_embedding(x, frequencies=None, positions=None, interleaved=False, attention_factor=1.0):
    """Rotations as products of complex numbers."""
    f = rotary_frequencies(x.shape[-1]) if frequencies is None else frequencies
    p = torch.arange(x.shape[-2]) if positions is None else positions
    angle = p.double().unsqueeze(-1) * f.double().to(p.device)
    if p.dim() == 2:
        angle = angle.view([len(p)] + [1] * (x.dim() - 3) + list(angle.shape[1:]))
    n = 2 * len(f)
    pairs = x[..., :n].unflatten(-1, (-1, 2)) if interleaved else x[..., :n].unflatten(-1, (2, -1)).transpose(-1, -2)
    turn = (torch.cos(angle) * attention_factor).to(x.dtype), (torch.sin(angle) * attention_factor).to(x.dtype)
    a, b = pairs[..., 0], pairs[..., 1]
    y = torch.stack([a * turn[0] - b * turn[1], b * turn[0] + a * turn[1]], -1)
    y = (y if interleaved else y.transpose(-1, -2)).flatten(-2)
    return torch.cat([y, x[..., n:]], -1)


def scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, window=None, softcap=None, **rest):
    """PyTorch's; with a window or a cap of the scores from their definitions, a mask of both."""
    if window is None and softcap is None:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, **rest)
    ahead = torch.arange(q.shape[-2]).unsqueeze(1) - torch.arange(k.shape[-2])
    seen = torch.ones_like(ahead, dtype=torch.bool) if window is None else ahead.abs() < window
    seen = seen & (ahead >= 0) if is_causal else seen
    seen = seen if attn_mask is None else seen & attn_mask
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    return torch.softmax(scores.masked_fill(~seen, -math.inf), -1) @ v


def jvp(function, points, directions):
    listed = isinstance(points, list)
    return torch.func.jvp(function, tuple(points) if listed else (points,), tuple(directions) if listed else (directions,))


def grad(y, x, v=None):
    listed = isinstance(x, list)
    dx = torch.autograd.grad(y, x, v, create_graph=True)
    return list(dx) if listed else dx[0]


def padded(layer):
    """A recurrent layer that packs a padded batch if it gets `lengths`."""
    class Padded(layer):
        def forward(self, x, hx=None, lengths=None):
            if lengths is None:
                return super().forward(x, hx)
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, self.batch_first, enforce_sorted=False)
            out, states = super().forward(packed, hx)
            t = x.shape[1 if self.batch_first else 0]
            return nn.utils.rnn.pad_packed_sequence(out, self.batch_first, total_length=t)[0], states
    return Padded


def of_images(name):
    """A function of torchvision, which only the cases of augmentation need."""
    def call(img, number, interpolation=None, **arguments):
        from torchvision.transforms import functional as images
        if interpolation:
            arguments["interpolation"] = images.InterpolationMode(interpolation)
        return getattr(images, name)(img, number, **arguments)
    return call


OWN = {"dice_loss": dice_loss, "jvp": jvp, "grad": grad,  # functions that PyTorch lacks or has elsewhere
       "rotary_frequencies": rotary_frequencies, "rotary_embedding": rotary_embedding,
       "scaled_dot_product_attention": scaled_dot_product_attention,
       **{name: getattr(nn.utils.parametrizations, name, None) for name in ("weight_norm", "spectral_norm")},
       **{name: padded(getattr(nn, name)) for name in ("LSTM", "GRU", "RNN")},
       **{name: of_images(name) for name in
          ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue", "rotate")}}


class Names(dict):
    """The names that a case's text may use in addition to its members. The language is close enough to PyTorch
    that both read the same text."""
    def __missing__(self, name):
        if name in ("true", "false"):
            return name == "true"
        if name == "none":
            return None
        if name in OWN:
            return OWN[name]
        for module in (nn, F, torch):
            if hasattr(module, name):
                return getattr(module, name)
        raise KeyError(name)


class Case:
    """A case with its inputs, which are those of `stored` if their shapes still fit. They are rounded to type `rounded`;
    the case is computed in `dtype`."""
    def __init__(self, name, row, stored, dtype=torch.float64, rounded=None):
        self.name, (members, self.output, fill) = name, row
        self.dtype, self.rounded = dtype, rounded
        self.fill = eval(f"dict({fill})")  # text of cases.def
        self.stored = stored
        self.random = np.random.RandomState(zlib.crc32(name.encode()))
        self.inputs = {}  # by name: the parameters, float64 with gradients
        self.tensors = {}  # for the file
        self.names = Names(Parameter=list)
        functions, members = re.findall(FUNCTION, members), re.sub(FUNCTION, "", members)
        exec("\n".join(line.strip() for line in members.split("\n")), {}, self.names)
        self.names.pop("Parameter")
        self.modules = {k: v for k, v in self.names.items() if isinstance(v, nn.Module)}
        for key, shape in self.names.items():
            if key not in self.modules:
                self.names[key] = self.parameter(key, self.drawn(key, shape))
        for key, module in self.modules.items():
            module.to(self.dtype)
            for name, p in module.named_parameters():
                p.data = self.parameter(f"{key}.{name}", self.drawn(f"{key}.{name}", p.shape, scaled(0.5))).data
                self.inputs[f"{key}.{name}"] = p
        for key, arguments, result in functions:
            self.names[key] = self.function(arguments.split(", "), result)
        self.targets = self.drawn("t", None) if "t" in self.fill else None
        if self.targets is not None:
            self.names["t"] = self.tensors["t"] = torch.tensor(self.targets)

    def function(self, arguments, result):
        return lambda *given: eval(result, {}, Names(self.names, **dict(zip(arguments, given))))

    def drawn(self, key, shape, usual=normal):
        value = self.fill.get(key, usual)(self.random, shape)
        value = value if value.dtype == np.int64 else value.astype(np.float32)
        old = self.stored.get(f"{self.name}/{key}")
        return old.copy() if old is not None and old.shape == value.shape else value

    def parameter(self, key, value):
        self.tensors[key] = value
        self.inputs[key] = self.number(value).requires_grad_(True)
        return self.inputs[key]

    def number(self, value):
        value = torch.tensor(value)
        return (value.to(self.rounded) if self.rounded else value).to(self.dtype)

    def call(self):
        return eval(self.output, {}, self.names)

    def buffers(self):
        return {f"{key}.{name}": value for key, module in self.modules.items()
                for name, value in module.named_buffers() if value.dtype != torch.int64}

    def keep_statistics(self):
        """Running statistics before and after one call in training, and the result of evaluation before it."""
        for key, value in self.buffers().items():
            self.tensors[key] = self.drawn(key, value.shape, positive if "var" in key else normal)
            value.copy_(torch.tensor(self.tensors[key]))
        for module in self.modules.values():
            module.eval()
        self.tensors["out"] = self.call().detach()
        for module in self.modules.values():
            module.train()

    def run(self):
        self.compute()
        return {f"{self.name}/{key}": numpy_of(value) for key, value in self.tensors.items()}

    def compute(self):
        torch.set_default_dtype(self.dtype)  # tensors that a case creates, such as ones(3), are float64 too
        statistics = bool(self.buffers())
        if statistics:
            self.keep_statistics()
        out = self.call()
        self.tensors.setdefault("out", out)
        if statistics:
            self.tensors.update({f"after/{k}": v.clone() for k, v in self.buffers().items()})
        if out.requires_grad:
            self.differentiate(out)

    def differentiate(self, out):
        """The loss is sum(out * g). g has the shape of the output; for a scalar output it has one number for each target, or one."""
        one = len(self.targets) if self.targets is not None else 1
        g = self.drawn("g", tuple(out.shape) if out.dim() else (one,))
        loss = (out * self.number(g)).sum()
        loss.backward()
        self.tensors["g"], self.tensors["loss"] = g, loss
        for key, value in self.inputs.items():
            if value.grad is not None:
                self.tensors[f"grad/{key}"] = value.grad


def owner(key):
    return key.split("/")[0]


def make_ops(cases, names, draw):
    """Computes the cases `names`. Other cases keep their bytes; cases that cases.def lacks are removed."""
    stored, metadata = read("ops.safetensors")
    made = {name: Case(name, cases[name], {} if draw else stored).run() for name in names}
    tensors = {}
    for key, value in stored.items():
        name = owner(key)
        if name in made:
            tensors.update(made[name])  # at its old position
        elif name in cases:
            tensors[key] = value
    for name in names:
        tensors.update(made[name])
    order = list(dict.fromkeys(map(owner, tensors)))
    write("ops.safetensors", tensors, dict(metadata, cases=" ".join(order)))
    print(f"{len(made)} cases made: {' '.join(made) or '-'}; {len(order)} in the file")


def near(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=1e-13)


def check_ops(cases, names):
    """Compares PyTorch's results from the stored inputs with the stored results. On another machine PyTorch
    may sum products in another order, so the last bits of float64 may differ."""
    stored, _ = read("ops.safetensors")
    bad = 0
    for name in names:
        made = Case(name, cases[name], stored).run()
        old = {key: value for key, value in stored.items() if owner(key) == name}
        wrong = [key for key in made.keys() | old.keys()
                 if key not in made or key not in old or not near(made[key], old[key])]
        if wrong:
            print(f"{name} differs from the stored case: {', '.join(sorted(wrong))}")
            bad += 1
    print(f"{len(names)} cases checked, {bad} differ")
    return bad


# ---- 16 bits ---------------------------------------------------------------------------------------

LEAST_DEVIATION = 2 / 3  # test_halves.c allows three deviations, and 2 in any case
DEEP = 4 / 3  # a larger error of PyTorch itself means more than one or two roundings

def results(tensors):
    """The tensors that are compared in 16 bits: the value, and the gradients if all of them fit the type."""
    return {key: value.detach() for key, value in tensors.items() if key == "out" or key.startswith("grad/")}


def run_in(name, row, stored, dtype, rounded):
    case = Case(name, row, stored, dtype, rounded)
    case.compute()
    return results({key: value for key, value in case.tensors.items() if isinstance(value, torch.Tensor)})


def own_errors(truth, name, row, stored, half):
    """PyTorch's largest errors in 16 bits, of the value and of the gradients, in units of eps times the largest number.
    None if PyTorch cannot compute the case on a CPU."""
    try:
        got = run_in(name, row, stored, half, half)
    except (RuntimeError, NotImplementedError, ValueError, TypeError):
        return None
    worst = [0.0, 0.0]
    for key, want in truth.items():
        fits = torch.isfinite(want) & (want.abs() <= torch.finfo(half).max)
        most = want[fits].abs().max().item() if fits.any() else 0.0
        error = (got[key].double() - want)[fits].abs()
        if most and error.numel():
            used = error.max().item() / (most * torch.finfo(half).eps)
            worst[key != "out"] = max(worst[key != "out"], used) if used == used else math.inf
    return [round(w, 2) for w in worst]


def read_halves():
    """The tensors of halves.safetensors and PyTorch's errors, each by case."""
    metadata, header, data = read_bytes("halves.safetensors")
    tensors, errors = collections.defaultdict(dict), collections.defaultdict(dict)
    for key, entry in header.items():
        bits = np.frombuffer(data[slice(*entry["data_offsets"])], np.int16).reshape(entry["shape"])
        tensors[key.split("/")[1]][key] = Halves(entry["dtype"], bits)
    for key, error in json.loads(metadata.get("errors", "{}")).items():
        errors[key.split("/")[1]][key] = error
    return tensors, errors, metadata.get("cases", "").split()


def make_halves(cases, names):
    """Computes the cases `names`, or those that the file lacks. The rows of all others stay, since another machine sums in
    another order; cases that cases.def lacks are removed."""
    stored, _ = read("ops.safetensors")
    old_tensors, old_errors, have = read_halves()
    names = names or [name for name in cases if name not in have]
    tensors, errors = {}, {}
    for name, row in cases.items():
        if name not in names:
            tensors.update(old_tensors[name])
            errors.update(old_errors[name])
            continue
        for word, half in (("f16", torch.float16), ("bf16", torch.bfloat16)):
            truth = run_in(name, row, stored, torch.float64, half)
            if not truth["out"].is_floating_point():
                continue  # indices: rounded inputs may have others
            if any(not torch.isfinite(value.to(half)).all() for value in truth.values()):
                truth = {"out": truth["out"]}  # the scaler skips a step whose gradients overflow
            errors[f"{word}/{name}"] = own_errors(truth, name, row, stored, half)
            tensors.update({f"{word}/{name}/{key}": Halves.of(value.to(half)) for key, value in truth.items()})
    write("halves.safetensors", tensors, {"errors": json.dumps(errors), "cases": " ".join(cases)})
    print(f"{len(names)} cases made in 16 bits; {len(cases)} in the file, {sum(e is None for e in errors.values())} that PyTorch "
          "cannot compute on a CPU")
    make_rounding(cases, names, errors)


def make_rounding(cases, names, errors):
    """Measures deep cases among `names`. For the others the smallest bound of the test is enough."""
    stored, _ = read("ops.safetensors")
    with open(os.path.join(HERE, "rounding.def"), encoding="utf-8") as f:
        old = [line for line in f if line.startswith("ROUNDING(")]
    lines = []
    for key, own in errors.items():
        word, name = key.split("/")
        if name not in names:
            lines += [line for line in old if line.startswith(f'ROUNDING("{key}/')]
            continue
        half = torch.float16 if word == "f16" else torch.bfloat16
        if name not in cases or own is None or max(own) <= DEEP or "jvp(" in "".join(cases[name][:2]):
            continue  # torch.func bypasses a dispatch mode
        def compute(dtype=torch.float64, name=name, half=half):
            return run_in(name, cases[name], stored, dtype, half)
        found = rounding.deviations(compute(), compute, half)
        print(key, *(f"{deviation:.2f}" for deviation in found.values()), flush=True)
        lines += [f'ROUNDING("{key}/{tensor}", {deviation:.2f})\n' for tensor, deviation in found.items()
                  if deviation > LEAST_DEVIATION]
    with open(os.path.join(HERE, "rounding.def"), "w", encoding="utf-8") as f:
        f.write("/* make_fixtures.py wrote this file. ROUNDING(tensor, deviation): the standard deviation that\n"
                " * roundings to 16 bits cause, in units of eps times the largest number of the tensor (rounding.py).\n"
                " * Other tensors have the smallest bound. */\n")
        f.writelines(lines)
    print(f"{len(lines)} tensors of {len({line.split('/')[1] for line in lines})} cases in rounding.def")


# ---- twenty steps ------------------------------------------------------------------------------

CLASSES, STEPS = 10, 20
LOSS_DISTANCE = 2.5e-7  # relative error of a loss after 20 steps in f32; test_trajectory.c allows four times that


class MLP:
    inputs, batch, batches = 784, 32, 20
    sample = 101   # every 101st final weight is stored
    margin = 8e-6  # a sum of fc1 in f32 may be off by 1e-6
    orders = 100   # with 8, a draw was chosen in which the sign of a gradient depends on the processor
    shapes = {"fc1.weight": (64, 784), "fc1.bias": (64,), "fc2.weight": (10, 64), "fc2.bias": (10,)}
    running = {}

    @staticmethod
    def forward(p, _, x):
        h = F.linear(x, p["fc1.weight"], p["fc1.bias"])
        return F.linear(torch.relu(h), p["fc2.weight"], p["fc2.bias"]), [h]


class CNN:
    inputs, batch, batches, sample, margin, orders = 144, 8, 2, 1, 1e-5, 1
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


class LSTM:
    """Over 12 time steps of 12 numbers; the last one yields the class. It has no relu, so no number must stay away from 0."""
    inputs, batch, batches, sample, margin, orders = 144, 8, 2, 1, 0, 1
    hidden, proj, directions = 16, 0, 1
    running = {}
    shapes = {f"rnn.{name}_l{k}": shape for k, width in enumerate((12, 16)) for name, shape in (
        ("weight_ih", (64, width)), ("weight_hh", (64, 16)), ("bias_ih", (64,)), ("bias_hh", (64,)))}
    shapes.update({"fc.weight": (10, 16), "fc.bias": (10,)})

    @classmethod
    def forward(cls, p, _, x):
        x = x.reshape(-1, 12, 12)
        weights = [value for name, value in p.items() if name.startswith("rnn.")]
        layers = len(weights) // cls.directions // (5 if cls.proj else 4)
        h, c = (x.new_zeros(layers * cls.directions, len(x), n) for n in (cls.proj or cls.hidden, cls.hidden))
        out, _, _ = torch._VF.lstm(x, (h, c), weights, True, layers, 0.0, True, cls.directions == 2, True)
        return F.linear(out[:, -1], p["fc.weight"], p["fc.bias"]), []


class ProjectedLSTM(LSTM):
    """One layer, in both directions, with a projection."""
    proj, directions = 6, 2
    shapes = {f"rnn.{name}_l0{suffix}": shape for suffix in ("", "_reverse") for name, shape in (
        ("weight_ih", (64, 12)), ("weight_hh", (64, 6)), ("bias_ih", (64,)), ("bias_hh", (64,)), ("weight_hr", (6, 16)))}
    shapes.update({"fc.weight": (10, 12), "fc.bias": (10,)})


NETS = {"cnn": CNN, "lstm": LSTM, "proj": ProjectedLSTM}  # by the prefix of a run's name; else the MLP


def mix(seed, n):
    """n numbers in [0, 1), multiples of 2^-24, from splitmix64; mix.h has the same function."""
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
    """The linear schedule of transformers: 0 to 1 over `warmup`, then down to end / start."""
    def factor(t):
        if t < warmup:
            return t / warmup
        done = min((t - warmup) / (steps - warmup), 1.0)
        return 1 + (end / start - 1) * done
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


class Lamb(torch.optim.Optimizer):
    """You et al., 2020, algorithm 2, line by line; phi is the identity. Beyond it: `bias_correction` off leaves
    out the two divisions, `always_adapt` off leaves parameters without decay at ratio 1 (NVIDIA's FusedLAMB)."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, bias_correction=True,
                 always_adapt=True):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "bias_correction": bias_correction, "always_adapt": always_adapt})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for x in group["params"]:
                state = self.state[x]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = beta1 * state.get("m", torch.zeros_like(x)) + (1 - beta1) * x.grad
                v = state["v"] = beta2 * state.get("v", torch.zeros_like(x)) + (1 - beta2) * x.grad ** 2
                if group["bias_correction"]:
                    m, v = m / (1 - beta1 ** t), v / (1 - beta2 ** t)
                change = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * x
                ratio = 1.0
                adapts = group["always_adapt"] or group["weight_decay"] != 0
                if adapts and x.norm() != 0 and change.norm() != 0:
                    ratio = x.norm() / change.norm()
                x -= group["lr"] * ratio * change


class Lion(torch.optim.Optimizer):
    """Chen et al., 2023, algorithm 2, line by line."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for x in group["params"]:
                m = self.state[x].get("m", torch.zeros_like(x))
                c = beta1 * m + (1 - beta1) * x.grad
                x -= group["lr"] * (c.sign() + group["weight_decay"] * x)
                self.state[x]["m"] = beta2 * m + (1 - beta2) * x.grad


class Muon(torch.optim.Optimizer):
    """Matrices as torch.optim.Muon, but in their own type, where that computes in bf16; the others by AdamW with lr
    `rest`."""

    def __init__(self, params, lr, rest, weight_decay=0.1, momentum=0.95, nesterov=True, match=False):
        params = list(params)
        super().__init__(params, {})
        self.settings = lr, weight_decay, momentum, nesterov, match
        self.rest = torch.optim.AdamW([x for x in params if x.ndim != 2], lr=rest)

    @torch.no_grad()
    def step(self):
        lr, decay, momentum, nesterov, match = self.settings
        for x in self.param_groups[0]["params"]:
            if x.ndim != 2:
                continue
            m = self.state[x]["m"] = torch.lerp(self.state[x].get("m", torch.zeros_like(x)), x.grad, 1 - momentum)
            change = torch.lerp(x.grad, m, momentum) if nesterov else m
            rows, columns = x.shape
            change = change.T if rows > columns else change
            change = change / change.norm().clamp(min=1e-7)
            for _ in range(5):
                gram = change @ change.T
                change = 3.4445 * change + (-4.7750 * gram + 2.0315 * gram @ gram) @ change
            change = change.T if rows > columns else change
            factor = 0.2 * max(rows, columns) ** 0.5 if match else max(1, rows / columns) ** 0.5
            x.mul_(1 - lr * decay).sub_(lr * factor * change)
        self.rest.step()


SCHED = torch.optim.lr_scheduler
RUNS = {  # name: optimizer, schedule or None, clip_norm or None, more settings; NETS says which net
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
    "amsgrad": (lambda p: torch.optim.Adam(p, lr=2e-3, betas=(0.9, 0.9), amsgrad=True), None, None),
    "rmsprop": (lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.9, eps=1e-4, momentum=0.5,
                                              centered=True), None, None),
    "adagrad": (lambda p: torch.optim.Adagrad(p, lr=1e-2, lr_decay=0.1, weight_decay=0.01,
                                              initial_accumulator_value=0.01), None, None),
    "adadelta": (lambda p: torch.optim.Adadelta(p, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.01), None, None),
    "adamax": (lambda p: torch.optim.Adamax(p, lr=2e-3, betas=(0.8, 0.9), weight_decay=0.01), None, None),
    "nadam": (lambda p: torch.optim.NAdam(p, lr=2e-3, betas=(0.8, 0.99), weight_decay=0.01, momentum_decay=0.1), None, None),
    "nadam_cyclic": (lambda p: torch.optim.NAdam(p, lr=2e-3, weight_decay=0.1, decoupled_weight_decay=True),
                     lambda o: SCHED.CyclicLR(o, 5e-4, 3e-3, step_size_up=3, step_size_down=5, mode="triangular2",
                                              cycle_momentum=False), None),
    "radam": (lambda p: torch.optim.RAdam(p, lr=2e-3, weight_decay=0.01), None, None),
    "radam_cyclic": (lambda p: torch.optim.RAdam(p, lr=2e-3, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
                     lambda o: SCHED.CyclicLR(o, 5e-4, 3e-3, step_size_up=4, mode="exp_range", gamma=0.95,
                                              cycle_momentum=False), None),
    "cnn_lion": (lambda p: Lion(p, lr=2e-3, weight_decay=0.1), None, None),
    "sgd_restarts": (lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
                     lambda o: SCHED.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=1e-3), None),
    "clip_value": (lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9), None, 0.5,
                   {"clip_value": 1e-3, "clamp": 0.1}),
    "accumulate": (lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.01), None, 0.5,
                   {"bodies": 4}),
    "cnn_accumulate": (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), None, None,
                       {"bodies": 2}),
    "ema": (lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), None, None, {"ema": 0.8}),
    "lamb": (lambda p: Lamb(p, lr=2e-2, weight_decay=0.01),
             lambda o: warm_linear(o, 2e-2, 0.0, 20, 4), 1.0),
    "groups_lamb": (lambda p: Lamb(
        [{"params": [p[0], p[2]]}, {"params": [p[1], p[3]], "weight_decay": 0.0, "always_adapt": False,
                                    "lr": 2e-3}],
        lr=1e-2, betas=(0.8, 0.99), weight_decay=0.1, bias_correction=False), None, None),
    "cnn_lamb": (lambda p: Lamb(p, lr=1e-2), None, None),
    "muon": (lambda p: Muon(p, lr=0.02, rest=2e-3), None, None),
    "muon_bodies": (lambda p: Muon(p, lr=2e-3, rest=2e-3, weight_decay=0.01, match=True), None, None, {"bodies": 2}),
    "lstm_muon": (lambda p: Muon(p, lr=0.01, rest=1e-2, momentum=0.9, nesterov=False), None, None),
    "lstm_sgd": (lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9), None, 0.5),
    "lstm_adamw": (lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.01), None, 1.0),
    "proj_adam": (lambda p: torch.optim.Adam(p, lr=1e-2), None, 1.0),
}


def run(net, arguments, dtype, draw, order=None):
    """Returns the loss of each step's last body, the final weights and running statistics, and the smallest distance from 0 of a
    relu's input. `order` permutes the inputs and the columns of the first weight, so that products sum in another order."""
    make, schedule, clip, *rest = arguments
    more = rest[0] if rest else {}
    bodies = more.get("bodies", 1)
    p = {k: v.to(dtype).requires_grad_(True) for k, v in start_weights(net).items()}
    first = next(iter(p))
    if order is not None:
        p[first] = p[first].detach()[:, order].contiguous().requires_grad_(True)
    average = torch.optim.swa_utils.AveragedModel(
        nn.ParameterList(p.values()), avg_fn=lambda a, w, _: more["ema"] * a + (1 - more["ema"]) * w)
    state = {k: torch.full((n,), v, dtype=dtype) for k, (n, v) in net.running.items()}
    optimizer = make(list(p.values()))
    sched = schedule(optimizer) if schedule else None
    losses, margin = [], math.inf
    for step in range(STEPS):
        optimizer.zero_grad()
        for body in range(bodies):
            x, y = batch(net, step * bodies + body, draw)
            x = x if order is None else x[:, order].contiguous()
            logits, seen = net.forward(p, state, x.to(dtype))
            margin = min([margin] + [h.abs().min().item() for h in seen])
            loss = F.cross_entropy(logits, y)
            (loss / bodies).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(p.values(), clip)
        if "clip_value" in more:
            torch.nn.utils.clip_grad_value_(p.values(), more["clip_value"])
        optimizer.step()
        if "clamp" in more:
            with torch.no_grad():
                for v in p.values():
                    v.clamp_(-more["clamp"], more["clamp"])
        if "ema" in more:
            average.update_parameters(nn.ParameterList(p.values()))
        if sched:
            sched.step()
        losses.append(loss.item())
    final = list(average.module if "ema" in more else p.values()) + list(state.values())
    if order is not None:
        final[0] = final[0][:, order.argsort()]
    weights = torch.cat([v.detach().flatten() for v in final]).double().numpy()
    return np.array(losses), weights, margin


def f32_distance(net, arguments, draw, losses, weights):
    """The largest difference between PyTorch's f64 run and its f32 runs in `net.orders` orders of summation: of the losses
    (relative), and of the weights. `weights` has every `net.sample`-th weight."""
    distance = [0.0, 0.0]
    for n in range(net.orders):
        order = torch.tensor(np.argsort(mix(3000 + n, net.inputs))) if n else None
        losses32, weights32, _ = run(net, arguments, torch.float32, draw, order)
        distance = [max(distance[0], float(np.max(np.abs(losses32 - losses) / losses))),
                    max(distance[1], float(np.max(np.abs(weights32[::net.sample] - weights))))]
    return distance


def safe_run(net, arguments):
    """The first draw of batches for which the order of summation changes neither the sign of a relu's input nor that of a
    gradient that Adam divides by its magnitude."""
    for draw in range(200):
        losses, weights, margin = run(net, arguments, torch.float64, draw)
        weights = weights[::net.sample].copy()
        if margin > net.margin and f32_distance(net, arguments, draw, losses, weights)[0] <= LOSS_DISTANCE:
            return draw, losses, weights
    raise AssertionError("in every draw a relu's input or a gradient comes too near to 0")


def make_trajectory():
    """Runs in float64. The metadata has f32_distance, the effect of rounding in 20 steps, from which the bounds of the test
    were chosen. Stored runs keep their bytes."""
    stored, _ = read("trajectory.safetensors")
    tensors, distance = {}, {}
    for name, arguments in RUNS.items():
        net = NETS.get(name.partition("_")[0], MLP)
        if f"{name}/draw" in stored:
            draw, losses, weights = (stored[f"{name}/{part}"] for part in ("draw", "losses", "weights"))
            draw = int(draw[0])
        else:
            draw, losses, weights = safe_run(net, arguments)
        tensors[f"{name}/draw"] = np.array([draw], dtype=np.float64)
        tensors[f"{name}/losses"] = losses
        tensors[f"{name}/weights"] = weights
        distance[name] = f32_distance(net, arguments, draw, losses, weights)
        assert losses[-2:].sum() < losses[:2].sum(), (name, losses)
    write("trajectory.safetensors", tensors,
          {"f32_distance": json.dumps(distance), "runs": " ".join(RUNS)})
    for name, d in distance.items():
        print(f"{name:14} f32 against f64: losses {d[0]:.1e} relative, weights {d[1]:.1e}")


# ---- a schedule that waits for a metric ------------------------------------------------------------------

PLATEAUS = {  # arguments of ReduceLROnPlateau, as in test_plateau.c
    "defaults": {"patience": 3},
    "hasty": {"factor": 0.5, "patience": 0, "min_lr": 0.01},
    "max": {"mode": "max", "factor": 0.3, "patience": 2, "threshold": 0.05, "cooldown": 3},
    "abs": {"factor": 0.5, "patience": 1, "threshold": 0.1, "threshold_mode": "abs", "cooldown": 1},
    "max_abs": {"mode": "max", "factor": 0.7, "patience": 1, "threshold": 0.02, "threshold_mode": "abs",
                "min_lr": 0.05},
    "eps": {"factor": 0.9, "patience": 0, "eps": 0.02},
}


def make_plateau():
    """Metrics of 80 evaluations, which fall, stay, rise and are NaN, and the learning rate after each."""
    tensors = {}
    for number, (name, arguments) in enumerate(PLATEAUS.items()):
        noise = mix(50 + number, 80)
        metric = np.round(np.exp(-np.arange(80) / 12) + 0.2 * noise * (noise > 0.4), 4)
        metric[[17, 40, 41]] = np.nan
        if arguments.get("mode") == "max":
            metric = 1 - metric
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **arguments)
        rates = []
        for value in metric:
            schedule.step(value)
            rates.append(optimizer.param_groups[0]["lr"])
        assert len(set(rates)) > 2, (name, set(rates))
        tensors[f"{name}/metric"] = metric
        tensors[f"{name}/rates"] = np.array(rates)
    write("plateau.safetensors", tensors, {"torch": torch.__version__})


# ---- mixed precision ------------------------------------------------------------------------------------

def make_mixed():
    """h = p x is f32, and three products read it in bf16, each through its own cast. The gradient of h is the
    f32 sum of three gradients in bf16; a sum in bf16 would be off by 1e-3 of it."""
    def numbers(seed, *shape):
        return torch.tensor((2 * mix(seed, math.prod(shape)) - 1).reshape(shape), dtype=torch.float32)
    p, steps, losses = numbers(1, 8).requires_grad_(True), [], []
    weights = [numbers(2 + i, 4, 8) for i in range(3)]
    optimizer = torch.optim.SGD([p], lr=0.05)
    for step in range(STEPS):
        x, t = numbers(1000 + step, 4, 8), numbers(2000 + step, 4, 4)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = p * x
            y = F.linear(h, weights[0]) + F.linear(h, weights[1]) + F.linear(h, weights[2])
        loss = F.mse_loss(y.float(), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        steps.append(p.detach().double().numpy().copy())
    write("mixed.safetensors", {"losses": np.array(losses), "p": np.stack(steps)}, {})


# ---- steps with `every` ----------------------------------------------------------------------

GAN_BATCH = 8


class Gan:
    """A generator and a critic. Settings are powers of two, so they are exact in f32."""

    def __init__(self):
        shapes = {"gen.fc1.weight": (16, 4), "gen.fc1.bias": (16,), "gen.fc2.weight": (6, 16),
                  "gen.fc2.bias": (6,), "disc.fc1.weight": (16, 6), "disc.fc1.bias": (16,),
                  "disc.fc2.weight": (1, 16)}
        self.p = {name: torch.tensor((2 * mix(i + 1, math.prod(shape)) - 1).reshape(shape) / 2,
                                     requires_grad=True)
                  for i, (name, shape) in enumerate(shapes.items())}

    def of(self, model):
        return [value for name, value in self.p.items() if name.startswith(model)]

    def gen(self, z):
        return F.linear(torch.tanh(F.linear(z, self.p["gen.fc1.weight"], self.p["gen.fc1.bias"])),
                        self.p["gen.fc2.weight"], self.p["gen.fc2.bias"])

    def disc(self, x):
        return F.linear(torch.tanh(F.linear(x, self.p["disc.fc1.weight"], self.p["disc.fc1.bias"])),
                        self.p["disc.fc2.weight"])


def gan_batch(body):
    return tuple(torch.tensor((2 * mix(seed + body, GAN_BATCH * n) - 1).reshape(GAN_BATCH, n))
                 for seed, n in ((1000, 6), (2000, 4)))


def run_wgan(interval, bodies):
    """Updates the generator in every `interval`-th step. Gradients of `bodies` batches are added."""
    net, rows = Gan(), []
    opt_d = torch.optim.RMSprop(net.of("disc"), lr=2 ** -8, alpha=0.875, eps=2 ** -10)
    opt_g = torch.optim.RMSprop(net.of("gen"), lr=2 ** -8, alpha=0.875, eps=2 ** -10)
    for step in range(1, STEPS + 1):
        fires, losses = step % interval == 0, [math.nan, math.nan]
        opt_d.zero_grad()
        opt_g.zero_grad()
        for body in range(bodies):
            real, z = gan_batch((step - 1) * bodies + body)
            fake = net.gen(z)
            loss = net.disc(fake.detach()).mean() - net.disc(real).mean()
            grads = torch.autograd.grad(loss / bodies, net.of("disc"))
            for p, g in zip(net.of("disc"), grads):
                p.grad = g if p.grad is None else p.grad + g
            losses[0] = loss.item()
            if body == bodies - 1:
                opt_d.step()
                with torch.no_grad():
                    for p in net.of("disc"):
                        p.clamp_(-0.125, 0.125)
            if fires:
                loss = -net.disc(fake).mean()
                grads = torch.autograd.grad(loss / bodies, net.of("gen"))
                for p, g in zip(net.of("gen"), grads):
                    p.grad = g if p.grad is None else p.grad + g
                losses[1] = loss.item()
        if fires:
            opt_g.step()
        rows.append(losses)
    return net, rows


def run_uneven():
    """Updates the critic twice in each step and a third time in every sixth, the generator in every second step."""
    net, rows = Gan(), []
    opt_d = torch.optim.Adam(net.of("disc"), lr=2 ** -6, betas=(0.5, 0.875), eps=2 ** -10)
    opt_g = torch.optim.SGD(net.of("gen"), lr=2 ** -4, momentum=0.5)
    decay = torch.optim.lr_scheduler.StepLR(opt_d, step_size=4, gamma=0.5)

    def critic(loss):
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
        decay.step()
        return loss.item()

    for step in range(1, STEPS + 1):
        real, z = gan_batch(step - 1)
        fake, losses = net.gen(z), [math.nan] * 4
        losses[0] = critic((net.disc(fake.detach()) - 1).square().mean())
        losses[1] = critic(net.disc(real).square().mean())
        if step % 2 == 0:
            opt_g.zero_grad()
            loss = (net.disc(fake) - 1).square().mean()
            loss.backward()
            losses[2] = loss.item()
            opt_g.step()
            if step % 3 == 0:
                losses[3] = critic(net.disc(real).mean())
        rows.append(losses)
    return net, rows


def run_together(bodies):
    """One loss and two optimizers, each with its own clipping. Every third step has another loss, of the critic alone."""
    net, rows = Gan(), []
    opt_d = torch.optim.Adam(net.of("disc"), lr=2 ** -6, betas=(0.5, 0.875), eps=2 ** -10)
    opt_g = torch.optim.SGD(net.of("gen"), lr=2 ** -4, momentum=0.5)
    for step in range(1, STEPS + 1):
        losses = [math.nan, math.nan]
        opt_d.zero_grad()
        opt_g.zero_grad()
        for body in range(bodies):
            real, z = gan_batch((step - 1) * bodies + body)
            loss = (net.disc(net.gen(z)) - 1).square().mean() + net.disc(real).square().mean()
            (loss / bodies).backward()
            losses[0] = loss.item()
        torch.nn.utils.clip_grad_norm_(net.of("disc"), 0.125)
        torch.nn.utils.clip_grad_norm_(net.of("gen"), 0.25)
        opt_d.step()
        opt_g.step()
        if bodies == 1 and step % 3 == 0:
            opt_d.zero_grad()
            loss = (net.disc(real) - 1).square().mean()
            loss.backward()
            losses[1] = loss.item()
            torch.nn.utils.clip_grad_norm_(net.of("disc"), 0.125)
            opt_d.step()
        rows.append(losses[:1] if bodies > 1 else losses)
    return net, rows


def take(optimizer, parameters, loss, bodies=1, clip=None):
    """Computes gradients for this optimizer alone: no other optimizer adds to them or clips them."""
    def step():
        for p, g in zip(parameters, kept):
            p.grad = g.clone()
        if clip:
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
    kept = [torch.zeros_like(p) for p in parameters]
    for body in range(bodies):
        for g, more in zip(kept, torch.autograd.grad(loss(body) / bodies, parameters)):
            g += more
    return step


def run_shared_in_turn():
    """The generator has two optimizers, which step one after the other."""
    net, rows = Gan(), []
    all_of = net.of("disc") + net.of("gen")
    opt_g = torch.optim.SGD(net.of("gen"), lr=2 ** -4, momentum=0.5)
    opt_b = torch.optim.Adam(all_of, lr=2 ** -6, betas=(0.5, 0.875), eps=2 ** -10)
    for step in range(1, STEPS + 1):
        real, z = gan_batch(step - 1)
        losses = [(net.disc(net.gen(z)) - 1).square().mean()]
        take(opt_g, net.of("gen"), lambda body: losses[0])()
        losses.append(net.gen(z).square().mean() + (net.disc(real) + net.disc(net.gen(z))).square().mean())
        take(opt_b, all_of, lambda body: losses[1])()
        rows.append([loss.item() for loss in losses])
    return net, rows


def run_shared_together(bodies):
    """One loss and three optimizers whose parameters overlap in all ways; two of them clip their own gradients."""
    net, rows = Gan(), []
    p = net.p
    first = [p["gen.fc1.weight"], p["gen.fc1.bias"], p["disc.fc2.weight"]]
    groups = [net.of("disc") + [p["gen.fc1.weight"], p["gen.fc2.weight"]], [p["gen.fc1.bias"], p["gen.fc2.bias"]]]
    third = [p["disc.fc1.weight"], p["disc.fc1.bias"], p["gen.fc1.bias"], p["gen.fc2.weight"]]
    opt_a = torch.optim.SGD(first, lr=2 ** -4, momentum=0.5)
    opt_b = torch.optim.Adam([{"params": groups[0]}, {"params": groups[1], "lr": 2 ** -8}], lr=2 ** -6,
                             betas=(0.5, 0.875), eps=2 ** -10)
    opt_c = torch.optim.RMSprop(third, lr=2 ** -8, alpha=0.875, eps=2 ** -10)
    for step in range(1, STEPS + 1):
        def loss(body):
            real, z = gan_batch((step - 1) * bodies + body)
            value = (net.disc(net.gen(z)) - 1).square().mean() + net.disc(real).square().mean()
            last[:] = [value.item()]
            return value
        last = []
        steps = [take(opt_a, first, loss, bodies, 0.125), take(opt_b, groups[0] + groups[1], loss, bodies, 0.25),
                 take(opt_c, third, loss, bodies)]
        for each in steps:
            each()
        rows.append(last)
    return net, rows


def run_penalty():
    """WGAN-GP: the critic keeps its gradient by points between real and generated ones at norm 1."""
    net, rows = Gan(), []
    opt_d = torch.optim.Adam(net.of("disc"), lr=2 ** -6, betas=(0.5, 0.875), eps=2 ** -10)
    opt_g = torch.optim.Adam(net.of("gen"), lr=2 ** -6, betas=(0.5, 0.875), eps=2 ** -10)
    for step in range(STEPS):
        real, z = gan_batch(step)
        fake = net.gen(z)
        between = (real * 0.25 + fake.detach() * 0.75).requires_grad_()
        slope = grad(net.disc(between).sum(), between)
        critic = (net.disc(fake.detach()).mean() - net.disc(real).mean()
                  + 8 * (torch.linalg.vector_norm(slope, dim=1) - 1).square().mean())
        for p, g in zip(net.of("disc"), torch.autograd.grad(critic, net.of("disc"))):
            p.grad = g
        opt_d.step()
        loss = -net.disc(fake).mean()
        for p, g in zip(net.of("gen"), torch.autograd.grad(loss, net.of("gen"))):
            p.grad = g
        opt_g.step()
        rows.append([critic.item(), loss.item()])
    return net, rows


def make_every():
    tensors = {}
    for name, (net, rows) in {"wgan": run_wgan(5, 1), "bodies": run_wgan(3, 2), "uneven": run_uneven(),
                              "together": run_together(1), "summed": run_together(2),
                              "shared": run_shared_in_turn(), "three": run_shared_together(1),
                              "twofold": run_shared_together(2), "penalty": run_penalty()}.items():
        tensors[f"{name}/losses"] = np.array(rows)
        tensors[f"{name}/weights"] = np.concatenate([p.detach().numpy().ravel() for p in net.p.values()])
    write("every.safetensors", tensors, {})


# ---- names, shapes, initialization ---------------------------------------------------------------------

def make_state():
    """The bounds of nn.Linear's uniform initialization are 1 / sqrt(fan in), which is checked on a sample."""
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


# ---- the command ------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="cases of cases.def; none: those without a fixture")
    for option in ("draw", "check", "halves", "trajectory", "plateau", "mixed", "every", "state", "rounding"):
        parser.add_argument("--" + option, action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "nn.functional.* is deprecated")
    if arguments.halves:
        warnings.simplefilter("ignore")
    cases = read_cases()
    unknown = [name for name in arguments.names if name not in cases]
    if unknown:
        sys.exit(f"cases.def has no case {', '.join(unknown)}")
    if arguments.draw and not arguments.names:
        sys.exit("--draw needs the names of cases")
    if arguments.check:
        sys.exit(check_ops(cases, arguments.names or list(cases)) != 0)
    if arguments.halves:
        make_halves(cases, arguments.names)
    if arguments.rounding:
        make_rounding(cases, arguments.names or list(cases), json.loads(read_bytes("halves.safetensors")[0]["errors"]))
    if arguments.trajectory:
        make_trajectory()
    if arguments.plateau:
        make_plateau()
    if arguments.mixed:
        make_mixed()
    if arguments.every:
        make_every()
    if arguments.state:
        make_state()
    whole = (arguments.halves or arguments.trajectory or arguments.plateau or arguments.mixed or arguments.every
             or arguments.state or arguments.rounding)
    if not whole:
        have = {owner(key) for key in read("ops.safetensors")[0]}
        make_ops(cases, arguments.names or [name for name in cases if name not in have], arguments.draw)


if __name__ == "__main__":
    main()
