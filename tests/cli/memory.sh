#!/usr/bin/env bash
# The memory report and --memory-limit.
#   memory.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
d=$work/data
small_data "$d"
small_job "$d/job.amp"
job=$d/job.amp
train() { timeout 500 "$amp" train --device cpu "$@"; }

# ---- the report ----------------------------------------------------------------------------------
passes "the report of ampc" "$ampc" --target=cpu --emit=memory "$job"
total=$(sed -n 's/^ *\([0-9,]*\)  total.*/\1/p' "$work/out" | tr -d ,)
sum=$(grep -v '  total' "$work/out" | sed -n 's/^ *\([0-9,]*\)  .*/\1/p' | tr -d , | paste -sd+ | bc)
[ -n "$total" ] && [ "$total" = "$sum" ] || failed "the lines of the report add up to $sum, not $total"
grep -Eq '^ +[0-9,]+  batch' "$work/out" || failed "no line for the batch"
passes "the report before a run" train -v --steps 1 "$job"
grep -Eq '^ +[0-9,]+  total, [0-9]\.[0-9]+ of the [0-9,]+' "$work/err" || failed "no total before a run"
[ "$(grep -n '  total' "$work/err" | cut -d: -f1)" -lt "$(grep -n 'step' "$work/err" | head -n 1 | cut -d: -f1)" ] ||
  failed "the report does not come first"
passes "a limit shows the report" train --memory-limit 1G --steps 1 "$job"
grep -Eq '^ +[0-9,]+  total' "$work/err" || failed "no report with a limit"
passes "one line otherwise" train --steps 1 "$job"
[ "$(grep -c 'memory' "$work/err")" = 1 ] || failed "not one line of the memory"
grep -q '  total' "$work/err" && failed "more than a line"
# the same number with three digits and a unit
grep -Eq "^memory of .*job.amp on cpu: [0-9.]+ MB \(-v: details\); [a-z0-9]+, [0-9]+ threads?$" "$work/err" || failed "no line of the memory"
said=$(sed -nE 's/^memory of .*: ([0-9.]+) MB .*/\1/p' "$work/err")
OMP_NUM_THREADS=1 passes "one thread" train --steps 1 "$job" # which may need less memory
grep -q '; [a-z0-9]*, 1 thread$' "$work/err" || failed "OMP_NUM_THREADS=1: the first line"
passes "the report again" train -v --steps 1 "$job"
whole=$(sed -n 's/^ *\([0-9,]*\)  total.*/\1/p' "$work/err" | tr -d ,)
python3 -c "import sys; sys.exit(abs(float(sys.argv[1]) * 1e6 - int(sys.argv[2])) > 0.005 * int(sys.argv[2]))" "$said" "$whole" ||
  failed "the line says $said MB, the report $whole bytes"
passes "--quiet" train --quiet --steps 1 "$job"
[ -s "$work/err" ] && failed "--quiet prints something"
passes "the report of CUDA" "$ampc" --emit=memory "$job"

# The large net at its full size, with batch 128: its plan has at most 0.60 of the bytes of all its
# tensors.
large=$(cd "$(dirname "$0")/../.." && pwd)/models/mnist_cnn/mnist_cnn.amp
for precision in f32 f16 bf16; do
  passes "the report of the large net, $precision" "$ampc" --target=cpu --emit=memory --set precision=$precision "$large"
  read -r total all <<<"$(sed -n 's/^ *\([0-9,]*\)  total.* of the \([0-9,]*\) that.*/\1 \2/p' "$work/out" | tr -d ,)"
  [ -n "$total" ] && [ $((total * 100)) -le $((all * 60)) ] ||
    failed "the large net in $precision plans $total of $all bytes"
done

# ---- limits --------------------------------------------------------------------------------------
refuses "over the limit" 5 "needs [0-9]+ bytes .* is 1000000 bytes .*largest batch that fits is [0-9]+: --set" \
  train --memory-limit 1000000 --save "$work/none" "$job"
[ -e "$work/none" ] && failed "a run that was refused wrote a checkpoint"
batch=$(sed -n 's/.*that fits is \([0-9]*\):.*/\1/p' "$work/err")
settings=$(sed -n 's/.*that fits is [0-9]*: //p' "$work/err")
# shellcheck disable=SC2086 # words
passes "the batch that it names fits" train --memory-limit 1000000 --steps 1 $settings "$job"
# shellcheck disable=SC2086
refuses "one more does not" 5 "largest batch that fits is $batch" \
  train --memory-limit 1000000 --steps 1 ${settings//=$batch/=$((batch + 1))} "$job"
refuses "ampc, too" 5 "largest batch that fits" "$ampc" --target=cpu --memory-limit=500000 -o "$work/x.c" "$job"
[ -e "$work/x.c" ] && failed "a job that was refused was written"
refuses "not even a batch of 1" 5 "batch of 1 does not fit either: it needs [0-9]+ bytes" \
  train --memory-limit 100K "$job"
small_job "$d/huge.amp" 200000000
refuses "more than there is" 5 "this machine has" train --set train.batch=640 --set eval.batch=200 \
  --set precision=f32 "$d/huge.amp"
for size in 1500KB 4M 1.5MiB 2G 1TB 3000000; do
  passes "a limit of $size" train --memory-limit $size --steps 1 "$job"
done
for size in 0 -1 1e9 12Q 5GG nan '' 1.2.3 0x10 99999999999T 4Gi 0.5; do
  refuses "a limit of '$size'" 2 'expected a size' train --memory-limit "$size" "$job"
  refuses "ampc, a limit of '$size'" 2 'expected a size' "$ampc" --memory-limit="$size" "$job"
done

# ---- the memory of a run: no more than planned, also at its start and with checkpoints ------------------------------------
wide_job() { # wide_job FILE WIDTH: weights and their gradients take nearly all of its memory
  cat >"$1" <<AMP
data noise(n: int) { return synthetic(n, [$2]), synthetic(n, [], i64, 0, 10) }
module Net {
  fc1 = Linear($2, $2)
  fc2 = Linear($2, 10)
  def forward(x) { return fc2(relu(fc1(x))) }
}
model net = Net()
optimizer opt = SGD(net, lr=0.01)
precision f16
train x, y in noise(4) with batch=4 { minimize cross_entropy(net(x), y) with opt }
AMP
}
peak() { # peak ARGUMENTS...: prints the peak memory of the process in bytes, minus that of a small job
  python3 - "$amp" "$@" <<'PY'
import os, subprocess, sys
def peak(*command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    sys.exit(f"status {status}") if status else None
    return used.ru_maxrss * 1024
amp, job, *arguments = sys.argv[1:]
train = [amp, "train", "--device", "cpu", "-q"]
print(peak(*train, *arguments, job) - peak(*train, "--steps", "1", job.replace("wide", "narrow")))
PY
}
wide_job "$d/wide.amp" 3000
wide_job "$d/narrow.amp" 8
for width in wide narrow; do
  train -q --steps 1 "$d/$width.amp" >"$work/out" 2>"$work/err" || failed "the $width job" # builds kernels
done
planned=$("$ampc" --target=cpu --emit=memory "$d/wide.amp" | sed -n 's/^ *\([0-9,]*\)  total.*/\1/p' | tr -d ,)
for arguments in "--steps 1" "--steps 1 --save $work/wide" "--steps 2 --resume $work/wide --save $work/wide"; do
  # shellcheck disable=SC2086
  taken=$(peak "$d/wide.amp" $arguments) || { failed "${arguments//$work\//} does not run"; continue; }
  if [ $((taken * 100)) -le $((planned * 115)) ]; then
    echo "ok: ${arguments//$work\//} takes $taken of the planned $planned bytes"
  else
    failed "${arguments//$work\//} takes $taken bytes, planned were $planned"
  fi
done
finish
