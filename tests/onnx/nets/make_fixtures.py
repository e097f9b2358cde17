#!/usr/bin/env python3
"""Exports small nets with PyTorch, for tests/onnx/import.py: NAME.onnx, and NAME.npz with the names and shapes of the
parameters, inputs, and PyTorch's results. usage: make_fixtures.py [NAME..]
"""
import copy
import os
import sys
import warnings

import numpy
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
warnings.simplefilter("ignore")


def other():
    """As programs other than PyTorch write it: any names; constants are tensors; a bias is added to a product."""
    rng = numpy.random.default_rng(1)
    tensors = {"seq/norm/gamma:0": numpy.ones(4), "seq/dense/ReadVariableOp:0": rng.normal(size=(4, 3)),
               "seq/dense/BiasAdd:0": numpy.zeros(3), "coefficient": rng.normal(size=(3, 1)), "intercept": [0.5],
               "const_fold_opt__12": 2.0, "Const:0": [3.0], "_half": numpy.full(3, 0.5)}
    nodes = [("Mul", "x", "seq/norm/gamma:0", "a"), ("MatMul", "a", "seq/dense/ReadVariableOp:0", "b"),
             ("Add", "b", "seq/dense/BiasAdd:0", "c"), ("Pow", "c", "const_fold_opt__12", "d"), ("Mul", "d", "Const:0", "e"),
             ("Sub", "e", "half", "f"), ("MatMul", "f", "coefficient", "g"), ("Add", "g", "intercept", "y")]
    tensors = {key: numpy.asarray(value, numpy.float32) for key, value in tensors.items()}
    half = onnx.helper.make_node("Constant", [], ["half"], value=onnx.numpy_helper.from_array(tensors.pop("_half")))
    info = [onnx.helper.make_tensor_value_info(key, 1, ["N", n]) for key, n in (("x", 4), ("y", 1))]
    graph = onnx.helper.make_graph([half] + [onnx.helper.make_node(op, [a, b], [y]) for op, a, b, y in nodes], "graph",
                                   info[:1], info[1:], [onnx.numpy_helper.from_array(t, key) for key, t in tensors.items()])
    x = rng.normal(size=(2, 4)).astype(numpy.float32)
    y = ((x @ tensors["seq/dense/ReadVariableOp:0"]) ** 2 * 3 - 0.5) @ tensors["coefficient"] + 0.5
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), f"{HERE}/other.onnx")
    numpy.savez(f"{HERE}/other.npz", x0=x, y0=y)


def branches():
    """Open sizes: the first guess is too small for a pad. Two If, one on sizes. Ops of older opsets. A weight of an LSTM
    that the file computes."""
    rng = numpy.random.default_rng(2)
    node = onnx.helper.make_node
    floats = {"w": rng.normal(size=(6, 4, 3)), "ih_a": rng.normal(size=(8, 6)), "ih_b": rng.normal(size=(4, 6)),
              "hh": rng.normal(size=(1, 12, 3)), "two": [2.0], "zero": 0.0}
    tensors = [onnx.numpy_helper.from_array(numpy.asarray(t, numpy.float32), key) for key, t in floats.items()]
    tensors += [onnx.numpy_helper.from_array(numpy.asarray(t, numpy.int64), key) for key, t in
                {"last": 2, "long": 1000, "pads": [0, 0, 64, 0, 0, 64]}.items()]

    def branch(name, *nodes):
        result = onnx.helper.make_tensor_value_info(nodes[-1].output[0], 1, None)
        return onnx.helper.make_graph(list(nodes), name, [], [result])

    nodes = [node("Pad", ["x", "pads"], ["pad"], mode="reflect"),
             node("Conv", ["pad", "w"], ["conv"], auto_pad="SAME_UPPER", strides=[2], kernel_shape=[3]),
             node("Softmax", ["conv"], ["soft"], axis=1),
             node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "last"], ["length"]),
             node("Less", ["length", "long"], ["short"]),
             node("If", ["short"], ["a"], then_branch=branch("then", node("Mul", ["soft", "two"], ["p"])),
                  else_branch=branch("else", node("Neg", ["soft"], ["p"]))),
             node("ReduceMax", ["x"], ["most"], keepdims=0), node("Greater", ["most", "zero"], ["positive"]),
             node("If", ["positive"], ["b"], then_branch=branch("then", node("Identity", ["a"], ["q"])),
                  else_branch=branch("else", node("Relu", ["conv"], ["q"]))),
             node("Concat", ["ih_a", "ih_b"], ["ih"], axis=0), node("Unsqueeze", ["ih"], ["ih3"], axes=[0]),
             node("Transpose", ["b"], ["steps"], perm=[2, 0, 1]),
             node("LSTM", ["steps", "ih3", "hh"], ["", "h"], hidden_size=3), node("Squeeze", ["h"], ["y"], axes=[0])]
    graph = onnx.helper.make_graph(nodes, "graph", [onnx.helper.make_tensor_value_info("x", 1, ["N", 4, "L"])],
                                   [onnx.helper.make_tensor_value_info("y", 1, ["N", 3])], tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 11)], ir_version=8)
    onnx.save(model, f"{HERE}/branches.onnx")
    x = rng.normal(size=(2, 4, 128)).astype(numpy.float32)
    y = onnxruntime.InferenceSession(f"{HERE}/branches.onnx").run(None, {"x": x})[0]
    numpy.savez(f"{HERE}/branches.npz", x0=x, y0=y)


def slices():
    """A Squeeze without axes: which of them have one element depends on an open size. A reduction without axes. A slice
    of sizes from the least integer on, as PyTorch writes `sizes[:-1]`. A bias of equal elements."""
    rng = numpy.random.default_rng(3)
    node = onnx.helper.make_node
    numbers = {"first": [15], "end": [200], "axis": [1], "least": [-2**63], "last": [-1], "four": [4]}
    tensors = [onnx.numpy_helper.from_array(numpy.asarray(t), key) for key, t in numbers.items()]
    tensors.append(onnx.numpy_helper.from_array(rng.normal(size=(8, 4)).astype(numpy.float32), "w"))
    tensors.append(onnx.numpy_helper.from_array(rng.normal(size=(1, 4, 1)).astype(numpy.float32), "kernel"))
    bias = onnx.numpy_helper.from_array(numpy.full(1, 0.25, numpy.float32))
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Transpose", ["m"], ["turned"], perm=[0, 2, 1]),
             node("Constant", [], ["bias"], value=bias), node("Conv", ["turned", "kernel", "bias"], ["line"]), node("ReduceMax", ["line"], ["top"], keepdims=0),
             node("Slice", ["m", "first", "end", "axis"], ["part"]),
             node("Squeeze", ["part"], ["row"]), node("Shape", ["m"], ["sizes"]), node("Slice", ["sizes", "least", "last"], ["some"]),
             node("Concat", ["some", "four"], ["same"], axis=0), node("Reshape", ["m", "same"], ["again"]),
             node("ReduceLogSumExp", ["again"], ["sum"], keepdims=0),
             node("Add", ["row", "sum"], ["more"]),
             node("Add", ["more", "top"], ["y"])]
    info = [onnx.helper.make_tensor_value_info(key, 1, n) for key, n in (("x", ["N", "L", 8]), ("y", ["N", 4]))]
    graph = onnx.helper.make_graph(nodes, "graph", info[:1], info[1:], tensors)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), f"{HERE}/slices.onnx")
    x = rng.normal(size=(2, 16, 8)).astype(numpy.float32)
    y = onnxruntime.InferenceSession(f"{HERE}/slices.onnx").run(None, {"x": x})[0]
    numpy.savez(f"{HERE}/slices.npz", x0=x, y0=y)


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(o, o, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride=stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Identity(), nn.ReLU(), nn.MaxPool2d(2))
        self.layer1 = nn.Sequential(*[BasicBlock(4, 4) for _ in range(3)])
        self.layer2 = nn.Sequential(BasicBlock(4, 6, 2), BasicBlock(6, 6))
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(self.drop(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)))


class Attention(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x, mask):
        n, s, c = x.shape
        q, k, v = (t.view(n, s, self.heads, c // self.heads).transpose(1, 2) for t in self.c_attn(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.c_proj(y.transpose(1, 2).reshape(n, s, c))


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(c), Attention(c, heads), nn.LayerNorm(c)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(c, 4 * c), "c_proj": nn.Linear(4 * c, c)})

    def forward(self, x, mask):
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Language(nn.Module):
    def __init__(self, words=11, c=8, heads=2, length=6, depth=3):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, c), nn.Parameter(torch.randn(length, c) * 0.1)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))
        self.h = nn.ModuleList([Block(c, heads) for _ in range(depth)])
        self.ln_f, self.lm_head = nn.LayerNorm(c), nn.Linear(c, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe
        for block in self.h:
            x = block(x, self.mask)
        return self.lm_head(self.ln_f(x))


class Twice(nn.Module):
    """A module with weights is called twice; there are two arguments and two results."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 4))
        self.scale = nn.Parameter(torch.tensor([0.5, 2.0, 1.0, -1.0]))

    def forward(self, left, right):
        a, b = self.encoder(left), self.encoder(right) * self.scale
        return (a - b).abs(), F.cosine_similarity(a, b, dim=1, eps=1e-6)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x, mask):
        return torch.tanh(self.fc(x)) * mask


class Mixed(nn.Module):
    """What a reader can mistake: a loop beside a skip, a part of a module called alone, one weight with two biases, a
    scalar parameter, a batch norm without weights."""

    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList([Masked() for _ in range(3)])
        self.parts = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8))
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.norm = nn.BatchNorm1d(8, affine=False)
        self.groups, self.act = nn.GroupNorm(2, 8), nn.PReLU()
        self.cells = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x2, mask):
        y = F.relu(x2)
        for part in self.h:
            y = part(y, mask)
        y = self.norm(y * x2) * self.scale.exp()
        y = self.parts(y) + torch.tanh(self.parts[0](y))
        y = self.act(self.first(y)) + F.relu(self.second(y))
        z, _ = self.cells(y.view(-1, 2, 4))
        return self.groups(y), z[:, -1]


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Linear(3 * 16, 4)

    def forward(self, x):
        return self.fc(F.relu(self.bn(self.conv(F.avg_pool2d(x, 2)))).flatten(1))


class Fresh(nn.Module):
    """A net that has not been trained: norms are ones and zeros. Constants of forward() do not train, and nothing
    trains through detach()."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.flat = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.BatchNorm2d(4, affine=False)
        self.fc, self.gamma = nn.Linear(4, 6), nn.Parameter(torch.full((6,), 0.5))
        self.scale, self.ln, self.ln2 = nn.Parameter(torch.tensor(2.0)), nn.LayerNorm(6), nn.LayerNorm(6)
        self.head = nn.Linear(6, 1)
        self.register_buffer("shift", torch.full((6,), 0.5))
        nn.init.zeros_(self.fc.bias)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        x = (x - torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)) / torch.tensor(0.25)
        x = self.flat(F.relu(self.bn(self.conv(x)))).mean((2, 3))
        y = self.ln(self.fc(x)) * self.gamma + self.shift
        return self.head(self.ln2(y.detach() * y + y ** 2)) * self.scale.exp()


class Mask(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, mask):
        return torch.softmax(self.fc(x).masked_fill(mask > 0.5, torch.finfo(torch.float32).min), -1)


class Translation(nn.Module):
    """The result has the length of the second argument."""

    def __init__(self):
        super().__init__()
        self.e, self.out = nn.Embedding(11, 4), nn.Linear(4, 11)

    def forward(self, source, target):
        return self.out(self.e(target) + self.e(source).mean(1, keepdim=True))


class Branch(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv, self.act = nn.Conv2d(i, o, 3, padding=1), nn.SiLU()

    def forward(self, x):
        return self.act(self.conv(x))


class Heads(nn.Module):
    """Sequentials in a list, as in the head of YOLOv8."""

    def __init__(self):
        super().__init__()
        self.cv2 = nn.ModuleList(nn.Sequential(Branch(2, 3), Branch(3, 3), nn.Conv2d(3, 4, 1)) for _ in range(2))

    def forward(self, x):
        return torch.cat([part(x) for part in self.cv2], 2)


class Rows(nn.Module):
    """The rows of the result are no samples, so the guessed loss does not fit."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x).reshape(-1, 4)


class Open(nn.Module):
    """Sizes of images, and two batches, which the file leaves open."""

    def __init__(self):
        super().__init__()
        self.c, self.a = nn.Conv2d(3, 4, 3, stride=8), nn.Linear(4, 4)

    def forward(self, x, z):
        return torch.cat([F.max_pool2d(self.c(x), 4).amax((2, 3)), self.a(z)], 1)


class Positions(nn.Module):
    """A table of positions limits an open size."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.out = nn.Embedding(11, 4), nn.Parameter(torch.randn(1, 20, 4)), nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.words(x) + self.places[:, :x.shape[1]])


def images(*sizes):
    return torch.rand(2, *sizes)


def ids():
    return torch.randint(0, 11, (2, 6))


NEW = {"dynamo": True, "optimize": False, "external_data": False, "opset_version": 23, "verbose": False}
OLD = {"dynamo": False, "training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
BATCH = {0: "N"}
NETS = {  # net, arguments, options of the export
    "blocks": (Blocks, lambda: [images(1, 14, 14)], NEW | {"dynamic_shapes": (BATCH,)}),
    "language": (Language, lambda: [ids()], NEW | {"dynamic_shapes": (BATCH,)}),
    "twice": (Twice, lambda: [torch.randn(2, 6), torch.randn(2, 6)], NEW | {"dynamic_shapes": (BATCH, BATCH)}),
    "mixed": (Mixed, lambda: [torch.randn(2, 8), torch.randn(2, 8)],
              NEW | {"opset_version": 20, "dynamic_shapes": (BATCH, BATCH)}),
    "fixed": (Small, lambda: [images(1, 8, 8)], NEW),
    "folded": (Small, lambda: [images(1, 8, 8)], NEW | {"optimize": True, "eval": True}),
    "fresh": (Fresh, lambda: [images(3, 6, 6)], NEW | {"dynamic_shapes": (BATCH,), "step": True}),
    "fresh_script": (Fresh, lambda: [images(3, 6, 6)], OLD | {"input_names": ["x"], "dynamic_axes": {"x": BATCH}}),
    "fresh_folded": (Fresh, lambda: [images(3, 6, 6)],
                     {"dynamo": False, "input_names": ["x"], "dynamic_axes": {"x": BATCH}, "eval": True}),
    "mask": (Mask, lambda: [torch.randn(2, 4), torch.rand(2, 4)], NEW | {"dynamic_shapes": (BATCH, BATCH)}),
    "translation": (Translation, lambda: [ids(), torch.randint(0, 11, (2, 4))], NEW | {"dynamic_shapes": (BATCH, BATCH)}),
    "heads": (Heads, lambda: [images(2, 4, 4)], OLD | {"input_names": ["x"], "dynamic_axes": {"x": BATCH}}),
    "rows": (Rows, lambda: [torch.randn(2, 2, 3)], NEW | {"dynamic_shapes": (BATCH,)}),
    "open": (Open, lambda: [images(3, 27, 36), torch.randn(2, 4)],
             OLD | {"input_names": ["x", "z"], "dynamic_axes": {"x": {0: "n1", 2: "H", 3: "W"}, "z": {0: "n2"}}}),
    "positions": (Positions, lambda: [torch.randint(0, 11, (2, 16))],
                  NEW | {"dynamic_shapes": ({0: "N", 1: torch.export.Dim("S", max=20)},)}),
    "script": (Blocks, lambda: [images(1, 14, 14)], OLD | {"input_names": ["x"], "dynamic_axes": {"x": BATCH}}),
}


def shorten(path):
    """Removes what amp import does not read: most of a file are the places in Python that made its nodes."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if p.key.split(".")[-1] in ("name_scopes", "class_hierarchy", "rule_name")]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.ClearField("doc_string")
    for value in list(model.graph.value_info) + list(model.graph.input) + list(model.graph.output):
        del value.metadata_props[:]
    del model.metadata_props[:]
    onnx.save(model, path)


def step(net, x):
    """The state after a step of SGD that makes the squares of the result small."""
    net = copy.deepcopy(net).train()
    for parameter in net.parameters():
        parameter.grad = None
    net(*x).square().mean().backward()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter -= 0.1 * parameter.grad
    return {"after." + key: value.numpy() for key, value in net.state_dict().items()}


def make(name):
    kind, arguments, options = NETS[name]
    torch.manual_seed(1)
    net, x = kind(), arguments()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d) and not name.startswith("fresh"):  # statistics of a net that has been trained
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    options = dict(options)
    net.train(not options.pop("eval", False))
    steps = options.pop("step", False)
    names = [f"{key} {list(value.shape)}" for key, value in net.state_dict().items()]
    path = os.path.join(HERE, name + ".onnx")
    torch.onnx.export(net, tuple(x), path, **options)
    shorten(path)
    if name != "folded":  # the old exporter has run the net, which changed its statistics
        stored = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in onnx.load(path).graph.initializer}
        net.load_state_dict({key: stored[key] for key in net.state_dict() if key in stored}, strict=False)
    with torch.no_grad():
        y = net.eval()(*x)
    arrays = {f"x{i}": value.numpy() for i, value in enumerate(x)}
    arrays |= {f"y{i}": value.numpy() for i, value in enumerate(y if isinstance(y, tuple) else (y,))}
    arrays |= step(net, x) if steps else {}
    numpy.savez(os.path.join(HERE, name + ".npz"), **arrays)
    with open(os.path.join(HERE, name + ".names"), "w", encoding="utf-8") as file:
        file.write("\n".join(names) + "\n")


OTHERS = {"other": other, "branches": branches, "slices": slices}
for each in sys.argv[1:] or [*NETS, *OTHERS]:
    OTHERS[each]() if each in OTHERS else make(each)
