#!/usr/bin/env bash
# A program without oneDNN: what it links, and its bits on an older processor. As a static program it
# runs in a folder that holds nothing but itself and the data.
#   ship.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
iris=$source_dir/examples/iris/iris.amp
build() { # build NAME JOB OPTION...: emits and builds a program; the options are for the line, too
  "$ampc" --no-onednn -o "$1.c" "${@:3}" "$2" && "$ampc" --no-onednn --build-line $linked -o "$1.c" "${@:3}" "$2" >line && sh line
}
linked=

# ---- who computes ----
refuses "a GPU" 2 '--no-onednn needs --target=cpu' "$ampc" --no-onednn "$iris"
refuses "static with oneDNN" 2 '--static needs --target=cpu and --no-onednn' "$ampc" --target=cpu --static --build-line "$iris"
refuses "a static library" 2 '--static cannot be combined with --library' \
  "$ampc" --target=cpu --no-onednn --static --build-line --library "$iris"
refuses "only a build line is static" 2 '--static needs --build-line' "$ampc" --target=cpu --no-onednn --static "$iris"
refuses "kernels of a GPU" 2 '--no-onednn needs --arch cpu' "$amp" inspect --no-onednn "$iris"
passes "--explain" "$ampc" --explain --target=cpu --no-onednn "$iris"
grep -q '^products and convolutions by loops of ampc' out || failed "--explain does not say who computes"
passes "a program without oneDNN" build iris "$iris"
ldd iris >out
grep -E 'dnnl|gomp' out && failed "the program needs oneDNN"
passes "it trains" ./iris -q --seed 1 --data-dir "$(dirname "$iris")" --save emitted
passes "amp trains" "$amp" train -q --device cpu --no-onednn --seed 1 --save jit "$iris"
same "amp computes the same bits" emitted jit
passes "a program with oneDNN" "$ampc" -o with.c "$iris"
"$ampc" --build-line -o with.c "$iris" | sed 's/-l:libdnnl[^ ]*//' >line
sh line 2>err && failed "a program with oneDNN is linked without it"

# ---- the same bits on each processor: dense, grouped, depthwise, strided and dilated ----
cat >nets.amp <<'AMP'
data d() { return synthetic(96, [3, 12, 12]), synthetic(96, [], i64, 0, 10) }
model net = Sequential(Conv2d(3, 24, 3, stride=2, padding=1), ReLU(), Conv2d(24, 24, 5, padding=2, groups=24),
                       Conv2d(24, 36, 3, padding=2, dilation=2, groups=3), ReLU(), Flatten(), Linear(1296, 70), ReLU(),
                       Linear(70, 10))
optimizer opt = AdamW(net, lr=0.01)
train x, y in d() with batch=32, epochs=2 { minimize cross_entropy(net(x), y) with opt }
AMP
for precision in f32 bf16; do # tests/unit/ has the others
  passes "$precision" build $precision nets.amp --set "precision=$precision" --march=x86-64
  passes "$precision here" ./$precision -q --seed 1 --save here
  passes "$precision on a processor of 2008" qemu-x86_64 -cpu Nehalem ./$precision -q --seed 1 --save there
  same "$precision: the same bits" here there
  passes "$precision with oneDNN" "$amp" train -q --device cpu --seed 1 --save library --set "precision=$precision" nets.amp
  python3 - here library $precision <<'PY' || failed "$precision: other weights than with oneDNN"
import json, struct, sys
def weights(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: struct.unpack(f"<{(v['data_offsets'][1] - v['data_offsets'][0]) // 4}f", data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if v.get("dtype") == "F32" and k[0].isdigit()}
a, b = weights(sys.argv[1]), weights(sys.argv[2])
assert a and a.keys() == b.keys(), sorted(a)
sums = [sum((p - q) ** 2 for k in a for p, q in zip(a[k], b[k])), sum(q * q for k in b for q in b[k])]
# six steps of AdamW enlarge other roundings of sums; a wrong product changes the weights by more than their size
assert sums[0] < 0.02 ** 2 * sums[1], (sums[0] / sums[1]) ** 0.5
PY
done

# ---- a static program in an empty folder ----
linked=--static
passes "a static program" build static "$iris"
[ -s err ] && failed "the linker warns"
[ "$(stat -c %s static)" -lt 5000000 ] || failed "the program has $(stat -c %s static) bytes"
mkdir root && cp static "$(dirname "$iris")/iris.csv" root
alone=() # without root, a user namespace permits chroot
[ "$(id -u)" = 0 ] || alone=(unshare -r)
passes "it trains alone" "${alone[@]}" chroot root /static -q --seed 1 --save saved
same "the same bits" root/saved emitted
cat >picture.amp <<'AMP'
model net = Linear(192, 2)
optimizer opt = SGD(net, lr=0.1)
train x, y in images("pictures", 8) with batch=1 { minimize cross_entropy(net(flatten(x.to(f32), 1)), y) with opt }
AMP
mkdir -p pictures/a pictures/b
printf '\x89PNG\r\n\x1a\n' | tee pictures/a/1.png >pictures/b/2.png
passes "a static program for pictures" build picture picture.amp
cp -r picture pictures root
refuses "pictures" 5 'a static program loads no libraries' "${alone[@]}" chroot root /picture
finish
