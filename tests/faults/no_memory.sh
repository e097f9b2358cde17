#!/usr/bin/env bash
# If memory runs out, in the compiler, the runtime or a library, the program exits with status 5 and
# one sentence. The test limits the address space to a little more than the program needs to start,
# and raises the limit until a run succeeds.
#   no_memory.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
limited() { # limited KB COMMAND...
  local kb=$1
  shift
  (ulimit -c 0 && ulimit -v "$kb" && exec "$@") >"$work/out" 2>"$work/err"
}

limited 4000000 "$amp" --version || { echo "skipped: does not run with limited memory"; exit 77; }

# starts COMMAND...: prints the smallest limit, in steps of 2 MB, with which the command succeeds
starts() {
  local kb
  for ((kb = 8000; kb < 4000000; kb += 2000)); do
    limited "$kb" "$@" && break
  done
  echo "$kb"
}

# runs_out NAME START COMMAND...: with each limit from START on, the command exits with status 5 and
# one sentence, until it succeeds
runs_out() {
  local name=$1 start=$2 more=1000 refused=0 status
  shift 2
  while :; do
    limited $((start + more)) "$@"
    status=$?
    [ "$status" = 0 ] && break
    if [ "$status" != 5 ] || [ "$(grep -c . "$work/err")" != 1 ] ||
      ! grep -qE 'error: .*(memory|cannot start)' "$work/err"; then
      failed "$name with $((start + more)) kB exits with status $status"
    fi
    cat "$work/err" >>"$work/said"
    refused=$((refused + 1))
    more=$((more + 1000 + more / 8))
    [ "$more" -lt 4000000 ] || { failed "$name needs more than $more kB"; return; }
  done
  [ "$refused" -gt 0 ] || failed "$name never ran out of memory"
  echo "ok: $name: refused $refused times"
}

small_data "$work/data"
small_job "$work/data/job.amp"
cd "$work/data" || exit 1
"$amp" train --device cpu -q --steps 3 job.amp >"$work/out" 2>"$work/err" || failed "amp train" # builds kernels
runs_out "amp train" "$(starts "$amp" --version)" "$amp" train --device cpu -q --steps 3 job.amp
"$ampc" --target=cpu -o job.c job.amp && "$ampc" --target=cpu --build-line -o job.c job.amp >line
sh line >"$work/out" 2>"$work/err" || failed "the emitted program does not build"
runs_out "an emitted program" "$(starts ./job --help)" ./job -q --steps 3
cat >conv.amp <<'AMP'
data numbers(n: int) { return synthetic(n, [8, 16, 16]), synthetic(n, [], dtype=i64, low=0, high=4) }
module Net() {
  c1 = Conv2d(8, 32, 3, padding=1)
  c2 = Conv2d(32, 32, 3, padding=1)
  fc = Linear(32, 4)
  def forward(x) { return fc(mean(relu(c2(relu(c1(x)))), (2, 3))) }
}
model net = Net()
optimizer opt = SGD(net, lr=0.001)
train x, y in numbers(512) with batch=64 { minimize cross_entropy(net(x), y) with opt }
AMP
"$amp" train --device cpu -q --steps 3 conv.amp >"$work/out" 2>"$work/err" || failed "amp train of convolutions"
start=$(starts "$amp" --version)
runs_out "convolutions" "$start" "$amp" train --device cpu -q --steps 3 conv.amp
grep -q 'memory for a convolution' "$work/said" || failed "no convolution ran out of memory"
# The prompt reports the error and continues; if it cannot continue, it exits with status 5.
printf ':train 2\n1 + 2\n' >inputs
went_on=0
for ((more = 1000; more < 4000000; more += 1000 + more / 8)); do
  limited $((start + more)) "$amp" repl --device cpu conv.amp <inputs
  status=$?
  [ $status = 0 ] && break
  grep -qE 'memory|cannot start' "$work/err" || failed "the prompt with $((start + more)) kB: no message about memory"
  case $status in
  1) grep -q '^int 3$' "$work/out" && went_on=$((went_on + 1)) || failed "the prompt with $((start + more)) kB does not continue" ;;
  5) ;;
  *) failed "the prompt with $((start + more)) kB exits with status $status" ;;
  esac
done
[ $status = 0 ] && [ $went_on -gt 0 ] || failed "the prompt never continues"
echo "ok: the prompt: continues $went_on times"
# a large model, because the compiler needs little memory
runs_out "ampc" "$(starts "$ampc" --version)" "$ampc" -o job.cu "$source_dir/models/mnist_cnn/mnist_cnn.amp"
finish
