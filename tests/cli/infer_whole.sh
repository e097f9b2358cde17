#!/usr/bin/env bash
# amp infer with arguments that share no axis of samples: states and sequences, a graph, numbers.
# Python computes the expected results from the formulas, in double.
#   infer_whole.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
infer() { timeout 60 "$amp" infer -q --device cpu "$@"; }

cat >states.amp <<'JOB'
dim N(max=8); dim T(max=16)
const L = 2
model net = LSTM(3, 4, num_layers=L, batch_first=true)
infer run(h: f32[L, N, 4], c: f32[L, N, 4], x: f32[N, T, 3], k: i64[N]) {
  out, state = net(x, (h, c), lengths=k)
  return out, state[0], state[1]
}
infer fixed(h: f32[L, 5, 4], c: f32[L, 5, 4], x: f32[5, 7, 3], k: i64[5]) {
  out, state = net(x, (h, c), lengths=k)
  return out, state[0], state[1]
}
JOB
cat >job.amp <<'JOB'
dim V(max=9); dim E(max=40)
infer degree(nodes: f32[V, 3], edges: i64[2, E]) {
  return zeros(V, 3).scatter_add(0, edges[1].unsqueeze(1).expand(E, 3), embedding(edges[0], nodes))
}
infer blend(x: f32[4, 3], t: f32[]) -> f32[4, 3] { return x * t + 1.0 }
infer numbers(t: f32[], k: i64[], b: bool[]) { return where(b, t, -t), k }
infer loose(t: float) { return t }
infer seen(p: u8[2, 3, 16, 16], y: f32[5]) { return p.to(f32).mean([2, 3]), y }
JOB
cat >case.py <<'PY'
import ast, math, random, struct, sys
random.seed(7)
L, N, T, F, H, V, E = 2, 5, 7, 3, 4, 6, 11
def numbers(n):  # exact in f32
    return [random.randrange(-64, 64) / 64 for _ in range(n)]
def npy(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    code = {"<f4": "f", "<i8": "q"}[descr]
    open(name, "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(data)}{code}", *data))
def read(name):
    b = open(name, "rb").read()
    n = 10 + struct.unpack("<H", b[8:10])[0]
    return ast.literal_eval(b[10:n].decode())["shape"], struct.unpack(f"<{(len(b) - n) // 4}f", b[n:])
def near(what, name, shape, want):
    got_shape, got = read(name)
    assert got_shape == shape, (what, got_shape, shape)
    worst = max(abs(a - b) for a, b in zip(got, want, strict=True))
    assert worst < 1e-5, (what, worst)

weights = {}
for k in range(L):
    for name, rows, columns in (("ih", 4 * H, F if k == 0 else H), ("hh", 4 * H, H)):
        weights[f"weight_{name}_l{k}"] = rows, columns, numbers(rows * columns)
        weights[f"bias_{name}_l{k}"] = rows, 0, numbers(rows)
h, c, x, seen = numbers(L * N * H), numbers(L * N * H), numbers(N * T * F), [7, 3, 0, 1, 5]
nodes, edges, rows = numbers(V * 3), [random.randrange(V) for _ in range(2 * E)], numbers(18)

def sigmoid(v):
    return 1 / (1 + math.exp(-v))
def gates(k, n, inputs):  # n: "ih" or "hh"
    r, m, w = weights[f"weight_{n}_l{k}"]
    return [sum(w[i * m + j] * inputs[j] for j in range(m)) + weights[f"bias_{n}_l{k}"][2][i] for i in range(r)]
def lstm():
    out, hs, cs = [0.0] * (N * T * H), list(h), list(c)
    for n in range(N):
        for t in range(seen[n]):
            v = x[(n * T + t) * F:(n * T + t + 1) * F]
            for k in range(L):
                at = (k * N + n) * H
                g = [a + b for a, b in zip(gates(k, "ih", v), gates(k, "hh", hs[at:at + H]))]
                for j in range(H):
                    cs[at + j] = sigmoid(g[H + j]) * cs[at + j] + sigmoid(g[j]) * math.tanh(g[2 * H + j])
                    hs[at + j] = sigmoid(g[3 * H + j]) * math.tanh(cs[at + j])
                v = hs[at:at + H]
            out[(n * T + t) * H:(n * T + t + 1) * H] = v
    return out, hs, cs

if sys.argv[1] == "write":
    for name, shape, data in (("h", (L, N, H), h), ("c", (L, N, H), c), ("x", (N, T, F), x), ("nodes", (V, 3), nodes), ("rows", (6, 3), rows)):
        npy(name + ".npy", "<f4", shape, data)
    npy("k.npy", "<i8", (N,), seen)
    npy("edges.npy", "<i8", (2, E), edges)
    npy("out.npy", "<i8", (2, E), edges[:-1] + [V])
    npy("few.npy", "<f4", (N - 1, T, F), x[T * F:])
    with open("w.txt", "w") as f:
        for name, (r, m, w) in weights.items():
            print(name, "F32", f"[{r},{m}]" if m else f"[{r}]", *w, file=f)
elif sys.argv[1] == "lstm":
    for i, (shape, want) in enumerate(zip(((N, T, H), (L, N, H), (L, N, H)), lstm())):
        near(f"result {i}", f"{i}.npy", shape, want)
    for name, begin in (("1.npy", h), ("2.npy", c)):  # the sample of 0 steps keeps its state
        at = [(k * N + 2) * H + j for k in range(L) for j in range(H)]
        assert [read(name)[1][i] for i in at] == [begin[i] for i in at], name
elif sys.argv[1] == "graph":
    want = [0.0] * (V * 3)
    for a, b in zip(edges[:E], edges[E:]):
        for j in range(3):
            want[b * 3 + j] += nodes[a * 3 + j]
    near("degree", "0.npy", (V, 3), want)
else:
    near("blend", "0.npy", (6, 3), [v * float(sys.argv[2]) + 1 for v in rows])
PY
python3 case.py write && "$source_dir/tests/cli/weights.py" w.safetensors <w.txt || failed "the files of this test"

# ---- states [layers, n, hidden] and sequences [n, t, features] --------------------------------------
states="--weights w.safetensors --input h=h.npy --input c=c.npy --input k=k.npy"
for block in run fixed; do
  passes "an LSTM with states, $block" infer $states --input x=x.npy --block $block states.amp \
    --output $block.0=0.npy --output $block.1=1.npy --output $block.2=2.npy --force
  passes "its numbers" python3 case.py lstm
done
passes "as text, a line for each result" infer $states --input x=x.npy --block run states.amp
[ "$(cut -d: -f1 out | xargs)" = "run.0 run.1 run.2" ] || failed "as text: $(cat out)"

# ---- a graph: nodes [v, features] and edges [2, e] -------------------------------------------------
passes "a graph" infer --input nodes=nodes.npy --input edges=edges.npy --block degree job.amp --output 0.npy --force
passes "its sums" python3 case.py graph

# ---- numbers ---------------------------------------------------------------------------------------
for t in 0.5 -2 1e-3; do
  passes "two batches and the number $t" infer --input x=rows.npy --input t=$t --block blend job.amp --output 0.npy --force
  passes "its results" python3 case.py blend $t
done
passes "numbers only" infer --input t=0.5 --input k=9007199254740993 --input b=false --block numbers job.amp
[ "$(cat out)" = $'numbers.0: -0.5\nnumbers.1: 9007199254740993' ] || failed "numbers only: $(cat out)"

# ---- errors, and their cures -------------------------------------------------------------------------
refuses "a wrong size" 1 '`x` of infer `run` is declared f32\[N, T, 3\], the value is f32\[4, 7, 3\]' infer $states --input x=few.npy --block run states.amp
grep -q 'N is 5, axis 0 of the value is 4' err || failed "a wrong size: which"
refuses "a wrong size of a block with numbers" 1 '`x` of infer `fixed` is declared f32\[5, 7, 3\], the value is f32\[4, 7, 3\]' infer $states --input x=few.npy --block fixed states.amp
grep -q 'each file has all of its argument; a `dim` is a size that files may choose' err || failed "a wrong size: no cure"
refuses "a size above the maximum" 1 '`V`, axis 0 of `nodes`, is 6; the maximum is 5' bash -c "
  sed 's/V(max=9)/V(max=5)/' job.amp >small.amp
  '$amp' infer --device cpu --input nodes=nodes.npy --input edges=edges.npy --block degree small.amp"
refuses "an edge to no node" 3 'is 6, expected 0 to 5 \(rows of embedding, job.amp:3\)' infer --input nodes=nodes.npy --input edges=out.npy --block degree job.amp
refuses "one call for all" 1 'the first size of `edges` is 2, that of `nodes` is V, so --data cannot read them' infer --data 'npy("nodes.npy")' --block degree job.amp
grep -q 'give each argument: --input edges=FILE' err || failed "one call for all: no cure"
refuses "one call for a number" 1 '`t` has no axis of samples, so --data cannot read it' infer --data 'npy("rows.npy")' --block blend job.amp
grep -q 'give each argument: --input t=0.5' err || failed "one call for a number: no cure"
refuses "a file for a number" 2 '--input t=x.npy: `t` is f32\[\], a number, as --input t=0.5' infer --input x=rows.npy --input t=x.npy --block blend job.amp
refuses "half a whole number" 2 '--input k=1.5: `k` is i64\[\], a whole number, as --input k=3' infer --input t=0.5 --input k=1.5 --input b=true --block numbers job.amp
refuses "1 for true" 2 '--input b=1: `b` is bool\[\], true or false, as --input b=true' infer --input t=0.5 --input k=1 --input b=1 --block numbers job.amp
refuses "a number without a type" 1 '`t` of an infer block needs a type with its sizes' infer --input t=0.5 --block loose job.amp
grep -q '`t: f32\[\]` for one number' err || failed "a number without a type: no cure"
refuses "pictures beside another array" 1 'images reads samples one by one, .*write an NPY file' \
  infer --input "p=$source_dir/tests/data/pictures/dog" --input y=x.npy --block seen job.amp
[ $failures -eq 0 ]
