#!/usr/bin/env bash
# amp inspect on a small job: the table, one kernel, two precisions, JSON, wrong usage.
#   inspect.sh [--rewrite] AMPC AMP
# --rewrite writes the expected files (*.expected). Read the diff before you commit it.
rewrite=
[ "${1-}" = --rewrite ] && rewrite=1 && shift
. "$(dirname "$0")/../faults/lib.sh"
here=$source_dir/tests/inspect
cd "$source_dir" || exit 1
job=tests/inspect/small.amp

answers() { # answers NAME ARGUMENTS...: stdout, with names in place of numbers, must be NAME.expected
  local name=$1
  shift
  if ! "$amp" inspect "$@" >"$work/out" 2>"$work/err"; then
    cat "$work/err"
    failed "$name: exit status"
    return
  fi
  # the name of oneDNN's implementation depends on the machine; ref, loops and product are not such
  # names
  sed -E '/conv by (ref|loops|product)\b/!s/conv by [a-z0-9_:]*/conv by oneDNN/' <"$work/out" | tests/canonical.py >"$work/$name"
  if [ -n "$rewrite" ]; then
    cp "$work/$name" "$here/$name.expected"
  elif ! diff -u "$here/$name.expected" "$work/$name"; then
    failed "$name: the output differs"
  else
    echo "ok: $name"
  fi
}

answers table --arch none --wide "$job"
answers diff --arch none --wide --diff f32 f16 "$job"
answers layers --arch none --by layer "$job"
answers scan --arch none tests/inspect/scan.amp
# Two models with the same members, one with the name of an optimizer: each must have its own row.
cat >"$work/two.amp" <<'AMP'
data numbers() { return synthetic(64, [8]), synthetic(64, [], dtype=i64, low=0, high=3) }
module Net(h: int) {
  fc = Linear(8, h)
  opt = Linear(h, 3)
  def forward(x) { return opt(relu(fc(x))) }
}
model a = Net(16)
model b = Net(32)
optimizer opt = SGD(a, 0.1)
optimizer more = SGD(b, 0.1)
train x, y in numbers() with batch=32 {
  minimize cross_entropy(a(x), y) with opt
  minimize cross_entropy(b(x), y) with more
}
AMP
layers_of() { "$amp" inspect --arch none --by layer "$1" | sed -nE 's/^([a-z.]+) +[0-9].*/\1/p' | sort | xargs; }
[ "$(layers_of "$work/two.amp")" = "a.fc a.opt b.fc b.opt more opt" ] || failed "two models: $(layers_of "$work/two.amp")"
grep -v '\bb\b' "$work/two.amp" | sed 's/, more//' >"$work/one.amp"
[ "$(layers_of "$work/one.amp")" = "a.opt fc opt" ] || failed "a layer named as the optimizer: $(layers_of "$work/one.amp")"
refuses "layers of one kernel" 2 'cannot be combined with' "$amp" inspect --by layer --kernel relu "$job"

# No line may be wider than the terminal; the columns read and written must be shown.
for columns in 60 70 80 120; do
  for mode in "" "--by layer" "--by kernel" "--by line"; do
    script -qec "stty cols $columns; '$amp' inspect --arch none $mode '$job'" /dev/null | tr -d '\r' >"$work/out"
    awk -v most=$columns 'length > most' "$work/out" | grep -q . && failed "too wide for $columns columns"
    grep -Eq '(name|layer|kernel|line).* read +written' "$work/out" || failed "no columns at $columns"
  done
done
COLUMNS=70 script -qec "'$amp' inspect --arch none '$job'" /dev/null >"$work/out" || failed "COLUMNS: exit status"
tr -d '\r' <"$work/out" | awk 'length > 70' | grep -q . && failed "COLUMNS is ignored"
drop=net_drop
answers kernel --arch cpu --kernel net_dr "$job"
answers product --arch cpu --kernel conv_conv2d "$job"

# ---- for programs --------------------------------------------------------------------------------
"$amp" inspect --arch none --json "$job" >"$work/json" || failed "--json: exit status"
python3 "$here/check_json.py" "$work/json" || failed "--json: counts"
# Each command of a block is in exactly one group, whatever the groups are.
cat >"$work/groups.py" <<'PY'
import json, sys
groups, commands = (json.load(open(path))["blocks"] for path in sys.argv[2:4])
for block, whole in zip(groups, commands):
    for key in ("commands", "read", "written", *(["predicted_us", "launches"] if "gpu" in sys.argv else [])):
        of = [g[key] for g in block["groups"]]
        wanted = len(whole["commands"]) if key == "commands" else sum(c[key] for c in whole["commands"])
        assert abs(sum(of) - wanted) <= 1e-6 * wanted and (key == "commands" or block[key] == whole[key]), (key, of, wanted)
    keys = {"kernel": ("kernel", "types", "shape", "run")}.get(sys.argv[1], (sys.argv[1],))
    names = [tuple((g["flops"] or 0) / g["times"] if key == "run" else g.get(key) for key in keys) for g in block["groups"]]
    assert len(set(names)) == len(names), names
print("ok: --by", *sys.argv[1:2], *sys.argv[4:])
PY
groups() { # groups WORD ARGUMENTS...
  local by=$1
  shift
  "$amp" inspect "$@" --by "$by" --json "$job" >"$work/groups.json" && "$amp" inspect "$@" --json "$job" >"$work/json" &&
    python3 "$work/groups.py" "$by" "$work/groups.json" "$work/json" "${@#--}" || failed "--by $by $*"
}
for by in layer work line kernel; do groups $by --arch none; done
job=models/gpt2/kjv.amp groups kernel --arch none # equal layers
"$amp" inspect --gpu h200 models/gpt2/kjv.amp 2>/dev/null | grep -Eq '(1[1-9]|[2-9][0-9])[0-9]\.[0-9] %' && failed "a share of more than 100 %"
"$amp" inspect --diff f32 f16 --arch none --json "$job" >"$work/json" || failed "--diff --json: exit status"
python3 - "$work/json" <<'PY' || failed "--diff --json"
import json, sys
diff = json.load(open(sys.argv[1]))
assert diff["precision"] == ["f32", "f16"], diff["precision"]
train = diff["blocks"][0]["commands"]
words = [c["change"] for c in train]
assert words.count("added") == 2 and "removed" not in words, words # images and the stem's weight with 8 channels
added = [[n["op"] for n in c["b"]["nodes"]] for c in train if c["change"] == "added"]
assert added == [["pad", "cast"], ["pad"]], added
linear = next(c for c in train if c["a"] and c["a"]["nodes"][0]["op"] == "linear")
assert linear["change"] == "changed" and linear["b"]["read"] * 2 == linear["a"]["read"], linear
print("ok: --diff --json")
PY

# Which code computes convolutions on the CPU: the library, if it has generated code for them.
"$amp" inspect --arch cpu --json tests/inspect/convolutions.amp >"$work/json" || failed "--arch cpu: exit status"
python3 - "$work/json" <<'PY' || failed "--arch cpu: what computes convolutions"
import json, sys
commands = json.load(open(sys.argv[1]))["blocks"][0]["commands"]
by = {(c["nodes"][0]["op"], c["shape"]): c["library"] for c in commands if c["kind"] == "conv"}
assert len([c for c in commands if "library" in c]) == 11, commands
assert not any(name.startswith("ref") for name in by.values()), by
assert not any("library" in c for c in commands if c["kind"] != "conv"), commands
pointwise = [("conv2d", "[32, 2, 2, 400]"), ("conv2d_data", "[32, 2, 2, 384]"), ("conv2d_weight", "[400, 1, 1, 384]")]
assert [by[key] for key in pointwise] == ["product"] * 3, by
assert by["conv2d_weight", "[24, 5, 5, 1]"] == "loops", by # oneDNN has its own code up to 3x3
print("ok: --arch cpu: what computes convolutions")
PY
passes "--arch none: no library" "$amp" inspect --arch none --json tests/inspect/convolutions.amp
grep -q '"library"' "$work/out" && failed "library: only on the CPU"

# ---- wrong usage -----------------------------------------------------------------------------------
refuses "no job" 2 'no job' "$amp" inspect
refuses "no such kernel" 2 "did you mean $drop" "$amp" inspect --kernel "${drop%op}p" "$job"
refuses "several kernels" 2 'commands contain this' "$amp" inspect --kernel conv "$job"
refuses "no architecture" 2 'arch gpu' "$amp" inspect --arch gpu "$job"
refuses "no such groups" 2 'expected work, layer, line or kernel' "$amp" inspect --by op "$job"
refuses "no such GPU" 2 'expected one of h200, ' "$amp" inspect --gpu h300 "$job"
refuses "a GPU and an architecture" 2 'cannot be combined with' "$amp" inspect --gpu h200 --arch sm_80 "$job"
refuses "a GPU and engines of cuDNN" 2 'cannot be combined with' "$amp" inspect --gpu h200 --cudnn "$job"
refuses "groups and engines of cuDNN" 2 'cannot be combined with' "$amp" inspect --by layer --cudnn "$job"
refuses "two precisions and engines of cuDNN" 2 'cannot be combined with' "$amp" inspect --cudnn --diff f32 f16 "$job"
refuses "no cuDNN of no GPU" 2 'needs --gpu' "$amp" inspect --no-cudnn "$job"
refuses "one precision" 2 'no second precision' "$amp" inspect --diff f32 "$job"
refuses "no precision" 1 'f64' "$amp" inspect --diff f32 f64 "$job"
refuses "a wrong job" 3 'nothing\.amp' "$amp" inspect nothing.amp
"$amp" inspect --arch none --json "$job" >/dev/full 2>"$work/err"
[ $? -eq 3 ] || failed "a full stdout: exit status"

# ---- without NVRTC: dlopen does not find it ----------------------------------------------------------
cat >"$work/hide.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
  void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  return name && strstr(name, "nvrtc") ? NULL : real(name, flags);
}
C
cc -shared -fPIC -o "$work/hide.so" "$work/hide.c" -ldl || failed "cannot build the test's library"
hidden() { env LD_PRELOAD="$work/hide.so" "$@"; }
hidden "$amp" inspect "$job" >"$work/out" 2>&1 || failed "without NVRTC: exit status"
grep -q '^registers.*NVRTC' "$work/out" || failed "without NVRTC: no message"
hidden "$amp" inspect --kernel "$drop" "$job" | grep -q '^no PTX: NVRTC' || failed "no PTX: no message"
refuses "an architecture without NVRTC" 4 'NVRTC is not on this machine' \
  hidden "$amp" inspect --arch sm_90 "$job"
refuses "a GPU without NVRTC" 4 'NVRTC is not on this machine' hidden "$amp" inspect --gpu h200 "$job"

# ---- with it ---------------------------------------------------------------------------------------
if "$ampc" --emit=ptx "$job" >/dev/null 2>&1; then
  export XDG_CACHE_HOME=$work/cache
  for arch in sm_80 sm_90; do
    "$ampc" --target=sm_80 -o "$work/sm_80.cubin" "$job"
    "$ampc" --target=sm_90 -o "$work/sm_90.cubin" "$job"
    "$amp" inspect --arch sm_80,sm_90 --json "$job" >"$work/json" || failed "--arch: exit status"
    python3 "$here/check_json.py" "$work/json" "$work/$arch.cubin" $arch || failed "usage on $arch"
  done
  "$amp" inspect --arch sm_80,sm_90 --json "$job" | cmp - "$work/json" || failed "cached numbers differ"
  [ "$(find "$work/cache/ampc" -name '*.txt' | wc -l)" = 2 ] || failed "numbers are not cached"
  "$amp" inspect --arch sm_20 "$job" >"$work/out" 2>"$work/err"
  [ $? -eq 4 ] && grep -q 'error.*sm_20' "$work/err" || failed "an architecture that NVRTC lacks"
  "$amp" inspect --arch sm_80 --wide --diff f32 f16 "$job" >"$work/out" || failed "--diff --arch: exit status"
  grep -Eq "$drop .*B +[0-9]+( -> [0-9]+|,|$)" "$work/out" ||
    failed "--diff --arch: no registers"
  "$amp" inspect --kernel "$drop" "$job" >"$work/out"
  for part in 'small.amp:12: ' "__global__ void $drop" "\.entry $drop" 'ld.global'; do
    grep -q -- "$part" "$work/out" || failed "--kernel lacks $part"
  done
  script -qec "stty cols 150; '$amp' inspect --kernel $drop '$job'" /dev/null >"$work/out"
  grep -q "__global__ void $drop.* | " "$work/out" || failed "not side by side at 150 columns"
  script -qec "stty cols 80; '$amp' inspect --kernel $drop '$job'" /dev/null >"$work/out" || failed "--kernel at 80 columns"
  grep -q "__global__ void $drop.* | " "$work/out" && failed "side by side at 80 columns"

  # The cost on GPUs: sums, sectors that can be counted by hand, every GPU, every width.
  "$amp" inspect --gpu h200 --json "$job" >"$work/json" && python3 "$here/check_gpu.py" "$work/json" || failed "--gpu --json"
  for by in work kernel; do groups $by --gpu h200; done
  "$amp" inspect --gpu h200 --no-cudnn --json "$job" >"$work/own" && python3 "$here/check_gpu.py" "$work/own" "$work/json" ||
    failed "--gpu --no-cudnn --json"
  "$amp" inspect --gpu h200 --no-cudnn --json tests/inspect/convolutions.amp >"$work/columns" && python3 "$here/check_gpu.py" --columns "$work/columns" ||
    failed "--gpu --no-cudnn: columns"
  "$amp" inspect --gpu h200 --json tests/inspect/unavoidable.amp >"$work/unavoidable" && python3 "$here/check_gpu.py" --unavoidable "$work/unavoidable" ||
    failed "--gpu: unavoidable bytes"
  "$amp" inspect --gpu h200 --set train.shards=4 "$job" >"$work/members" && grep -q "an exchange between" "$work/members" ||
    failed "--gpu: four members"
  "$amp" inspect --gpu h200 --json tests/inspect/residual.amp >"$work/residual" && python3 "$here/check_gpu.py" --residual "$work/residual" ||
    failed "--gpu: unavoidable bytes of a residual stream"
  "$amp" inspect --gpu h200 tests/inspect/tensor.amp | grep -q 'infer_products .* tensor ' || failed "--gpu: bound by tensor cores"
  "$amp" inspect --gpu h200 --json "$job" | cmp - "$work/json" || failed "--gpu: two runs differ"
  for gpu in h100 gh200 a100 l4 t4 rtx4090 b200 gb10 agxthor agxorin orinnx orinnano; do
    "$amp" inspect --gpu $gpu "$job" >"$work/out" 2>"$work/err" || { grep -q 'NVRTC refuses' "$work/err" || failed "--gpu $gpu: $(cat "$work/err")"; }
  done
  # Measured times: only for commands of this job, and summed if all commands of a block have one.
  python3 - "$work/json" "$work/times" <<'PY' || failed "--measured: the times"
import json, sys
with open(sys.argv[2], "w") as f:
    for c in json.load(open(sys.argv[1]))["blocks"][0]["commands"]:
        f.write(f"{c['name']}\t2.5\n")
PY
  n=$(wc -l <"$work/times")
  passes "--measured" "$amp" inspect --gpu h200 --measured "$work/times" "$job"
  [ "$(grep -c 'measured [0-9]' "$work/out")" = 1 ] && grep -q "measured $(python3 -c "print('%#.3g' % ($n * 2.5))") us" "$work/out" || failed "--measured: the sum of the train block"
  sed -i 1d "$work/times"
  passes "--measured, one is missing" "$amp" inspect --gpu h200 --measured "$work/times" "$job"
  grep -q 'measured [0-9]' "$work/out" && failed "--measured: a sum without one of the commands"
  printf 'conv_another\t2.5\n' >>"$work/times"
  refuses "--measured of another job" 3 'no command `conv_another`' "$amp" inspect --gpu h200 --measured "$work/times" "$job"
  echo 'net_drop 3' >"$work/times"
  refuses "--measured without tabs" 3 'a tab and microseconds' "$amp" inspect --gpu h200 --measured "$work/times" "$job"
  : >"$work/times"
  refuses "--measured of nothing" 3 'a tab and microseconds' "$amp" inspect --gpu h200 --measured "$work/times" "$job"
  for columns in 60 80 120; do
    script -qec "stty cols $columns; '$amp' inspect --gpu h200 '$job'" /dev/null | tr -d '\r' >"$work/out"
    awk -v most=$columns 'length > most' "$work/out" | grep -q . && failed "--gpu: too wide for $columns columns"
    grep -Eq 'name.* bytes .*predicted +bound' "$work/out" || failed "--gpu: no columns at $columns"
  done
else
  echo "skipped: NVRTC is not on this machine"
fi
finish
