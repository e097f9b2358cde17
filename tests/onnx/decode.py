#!/usr/bin/env python3
"""Exports decoders with drawn weights (`amp export --decode`), continues texts with them in ONNX Runtime and compares
the logits after each token with those that `amp infer` computes for the whole text at once.
usage: decode.py BUILD [PART OF A NAME]   status 77: onnx or onnxruntime is not installed"""
import sys

from compare import ROOT, compare, drawn_weights, judge, np, onnx, onnxruntime, run, safetensors

LLAMA = [x for d in ("VOCAB=96", "WIDTH=48", "INNER=64", "DEPTH=2", "HEADS=6", "CONTEXT=64", "KV_HEADS=2", "HEAD_DIM=8")
         for x in ("-D", d)]
# job, block, options, precisions, for how many tokens the state has room; 0: any number
CASES = [
    ("models/gpt2/kjv", "next", [], ("f32", "f16"), 128),
    ("models/llama/llama", "next", LLAMA, ("f32", "f16"), 64),
    ("models/llama/llama", "next", [*LLAMA, "-D", "WINDOW=5", "-D", "QK_NORM=true", "-D", "INTERLEAVED=true"], ("f32",), 64),
    ("models/gemma2/gemma2", "next", [*LLAMA, "-D", "WINDOW=20"], ("f32",), 64),
    ("models/gpt_neox/gpt_neox", "next", LLAMA[:12], ("f32",), 64),
    ("tests/decode/lstm", "next", [], ("f32", "f16"), 0),
    *[("tests/decode/scores", "next", ["-D", f"MASK={m}"], ("f32",), 256)
      for m in "where added tril window slopes half shared einsum linear".split()],
    ("tests/decode/scores", "last", [], ("f32",), 256),
    *[("tests/decode/masks", "next", ["-D", f"MASK={m}"], ("f32",), 256)
      for m in "window softcap bias shared padding".split()],
    *[("tests/decode/shifts", "next", ["-D", f"PART={p}"], ("f32",), 256 if p == "table" else 0)
      for p in "conv padded shift joined sums scan table".split()],
    *[("tests/decode/beside", "next", ["-D", f"PART={p}"], ("f32",), 256)
      for p in "sink front prefix attention zero places distances maps maps_masked moved first".split()],
    ("tests/passes/decode_scan", "last", [], ("f32",), 0),
]
# How many tokens the calls of a text have
WAYS = [[40] + [1] * 20, [1, 7, 2, 33] + [1] * 17, [20, 20, 20], [3, 1] * 15, [60], [1] * 60]
TOKENS = 60
# Of the largest logit after a token. f32: eight roundings of 6e-8 in each of a few layers; f16 rounds to 5e-4.
BOUND = {"f32": 4e-6, "f16": 5e-3}


class Decoder:
    def __init__(self, path, extended):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if extended:  # with all optimizations ONNX Runtime 1.32 crashes on loops in f16, also on those of whole blocks
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.ids, self.position, *self.past = self.session.get_inputs()
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(bool)": np.bool_}
        self.state = {i.name: np.zeros(i.shape, kinds[i.type]) for i in self.past}
        self.buffers = {}

    def next(self, tokens, position):
        kind = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}[self.ids.type]
        given = {self.ids.name: np.array([tokens], kind), self.position.name: np.array([position])}
        logits, *present = self.session.run(None, {**given, **self.state})
        for name, value in zip(self.state, present, strict=True):
            assert value.shape == self.state[name].shape, f"{name} becomes {value.shape}"
            self.state[name] = value
        return logits.reshape([-1, logits.shape[-1]])

    def next_in_place(self, tokens, position):
        """The same with one buffer for each past_N and its present_N."""
        bind, (logits, *present) = self.session.io_binding(), self.session.get_outputs()
        for one, value in (self.ids, [tokens]), (self.position, [position]):
            bind.bind_cpu_input(one.name, np.array(value))
        for old, new in zip(self.past, present, strict=True):
            value = self.buffers.setdefault(old.name, onnxruntime.OrtValue.ortvalue_from_numpy(self.state[old.name], "cpu"))
            bind.bind_ortvalue_input(old.name, value)
            bind.bind_ortvalue_output(new.name, value)
        bind.bind_output(logits.name)
        self.session.run_with_iobinding(bind)
        return bind.get_outputs()[-1].numpy().reshape([-1, logits.shape[-1]])


def whole_text(build, folder, argument, tokens, options, last):
    """The logits after each token; of a block that returns the last ones only, after every tenth."""
    logits = np.full([len(tokens), 1], np.nan)
    for n in range(10, len(tokens) + 1, 10) if last else [len(tokens)]:
        np.save(f"{folder}/ids.npy", np.array([tokens[:n]]))
        run(f"{build}/amp", "infer", "-q", "--device", "cpu", "--input", f"{argument}={folder}/ids.npy", "--output",
            f"{folder}/logits.npy", "--dim", f"S={n}", *options)
        some = np.load(f"{folder}/logits.npy")[0]
        if not last:
            return some
        logits = np.repeat(logits, len(some) // logits.shape[1], 1)
        logits[n - 1] = some
    return logits


def continue_text(next_tokens, tokens, want, way, place=lambda at: at):
    """The largest difference to the wanted logits."""
    worst = at = 0
    for n in way:
        got = next_tokens(tokens[at:at + n], place(at))
        at += n
        for row, exact in zip(got[::-1], want[:at][::-1]):  # all of the call, or the last one
            if not np.isnan(exact).any():
                worst = max(worst, compare([row], [exact]))
    assert at == len(tokens)
    return worst


def check(build, folder, case, precision):
    job, rng = f"{ROOT}/{case[0]}.amp", np.random.default_rng(1)
    options = [*case[2], "--set", f"precision={precision}"]
    weights, path = f"{folder}/weights.safetensors", f"{folder}/decoder.onnx"
    drawn = drawn_weights(build, job, ["--decode", case[1], *case[2]], rng)
    safetensors(weights, {name: value for name, value in drawn.items() if not name.startswith("cache.")})
    told = run(f"{build}/amp", "export", "--decode", case[1], "--weights", weights, "-o", path, *options, job)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert "any T" in told, told
    tokens = [int(x) for x in rng.integers(0, 48, TOKENS)]
    decoder = Decoder(path, precision == "f16")
    block = ["--block", case[1], "--weights", weights, *options, job]
    want = whole_text(build, folder, decoder.ids.name, tokens, block, case[1] == "last")
    # a text begins in the state that the one before has left
    worst = max(continue_text(call, tokens, want, way) for way in WAYS for call in (decoder.next, decoder.next_in_place))
    if precision == "f32":  # the comparison notices a position that is not used
        for way in (WAYS[0], WAYS[2]):
            wrong = continue_text(decoder.next, tokens, want, way, lambda at: 0)
            assert wrong > 100 * BOUND["f32"], f"at position 0 the logits are only {wrong:.1e} apart"
    decoder.next(tokens[:8], (case[4] or 1000) - 8)
    if case[4]:
        try:
            decoder.next(tokens[:8], case[4] - 7)
            raise AssertionError(f"a token at position {case[4]} is accepted")
        except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument:
            pass
    return worst, len(model.graph.node), len(decoder.past)


def main():
    build, failed = sys.argv[1], 0
    for case in CASES:
        for precision in case[3]:
            text = f"{case[0].split('/')[-1]} {case[1]} {' '.join(case[2][1::2])} {precision}"
            if len(sys.argv) > 2 and sys.argv[2] not in text:
                continue

            def attempt(folder):
                worst, count, states = check(build, folder, case, precision)
                return worst <= BOUND[precision], f"{count} operations, {states} tensors of state, {worst:.1e}"

            failed += not judge(text, attempt)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
