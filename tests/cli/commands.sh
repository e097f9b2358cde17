#!/usr/bin/env bash
# The command lines of ampc and amp: wrong usage, exit statuses, what is printed to which stream.
#   commands.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
job=$source_dir/models/fashion_mnist/mlp.amp
cd "$work" || exit 1

prints() { # prints NAME PATTERN COMMAND...: status 0, and PATTERN on stdout
  local name=$1 pattern=$2
  shift 2
  "$@" >"$work/out" 2>"$work/err"
  local got=$?
  if [ $got -ne 0 ]; then
    failed "$name: exit status $got"
  elif ! grep -Eq -- "$pattern" "$work/out"; then
    failed "$name: stdout lacks '$pattern'"
  else
    echo "ok: $name"
  fi
}

# ---- wrong usage ---------------------------------------------------------------------------------
refuses "no job" 2 'no job' "$ampc"
refuses "two jobs" 2 'more than one job: b' "$ampc" a.amp b.amp
refuses "unknown option" 2 'no option --emti=c; did you mean --emit' "$ampc" --emti=c "$job"
refuses "unknown letter" 2 'no option -z' "$ampc" -z "$job"
refuses "a value is missing" 2 'needs a value' "$ampc" "$job" -o
refuses "unknown kind" 2 'emit=java' "$ampc" --emit=java "$job"
refuses "unknown suffix" 2 'suffix' "$ampc" -o mlp.f95 "$job"
refuses "unknown target" 2 'target=sm_1' "$ampc" --target=sm_1 "$job"
refuses "C for a GPU" 2 'cpu' "$ampc" --target=sm_80 -o mlp.c "$job"
refuses "CUDA for the CPU" 2 'cpu' "$ampc" --target=cpu -o mlp.cu "$job"
refuses "unknown pass" 2 'no such pass' "$ampc" --dump-after=magic "$job"
refuses "unknown level" 2 'O3' "$ampc" -O3 "$job"
refuses "unknown warning" 2 'no such warning' "$ampc" -Wno-worries "$job"
refuses "unknown code" 2 'E999' "$ampc" --explain-error E999
refuses "no such line" 2 'no such line' "$ampc" --blame=9999999 "$job"
refuses "a const without a value" 2 'NAME=VALUE' "$ampc" -D HIDDEN "$job"
refuses "unknown const" 1 'error\[E207\].*EPOSCH' "$ampc" -D EPOSCH=2 "$job"
refuses "unknown setting" 1 'error\[E207\].*opt\.lrr' "$ampc" --set opt.lrr=1 "$job"
refuses "--explain in an unknown format" 2 'expected text or json' "$ampc" --explain=html "$job"
refuses "--explain for a GPU and the CPU" 2 "this machine's processor, not for --gpu h200" "$ampc" --explain --gpu h200 --target=cpu "$job"
refuses "--explain of an output" 2 'cannot be combined with' "$ampc" --explain --emit=c "$job"
refuses "--gpu without --explain" 2 'needs --explain' "$ampc" --gpu h200 "$job"
refuses "an unknown GPU" 2 'expected one of h200, h100' "$ampc" --explain --gpu h2000 "$job"
refuses "no verb" 2 'no verb' "$amp"
refuses "unknown verb" 2 'did you mean train' "$amp" trian "$job"
refuses "misspelt help" 2 'did you mean help' "$amp" hlep
refuses "a job without a verb" 2 'no verb was given; type amp train job\.amp' "$amp" job.amp
refuses "a model without a verb" 2 "'amp import a/x\.gguf -o net\.amp' writes a job, then 'amp chat net\.amp' works" "$amp" a/x.gguf
for one in "chat x.gguf" "infer x.onnx" "train x.gguf"; do
  refuses "$one" 2 "'amp import ${one#* } -o net\.amp' writes a job, then 'amp ${one% *} net\.amp' works" "$amp" $one
done
refuses "ampc x.gguf" 2 "then 'ampc net\.amp' works" "$ampc" x.gguf
for help in -h help 'train -h' 'help train'; do prints "amp $help" '^usage: amp' "$amp" $help; done
refuses "the rate as in Python" 2 'no option --lr; type --set lr=0\.1$' "$amp" train --lr 0.1 "$job"
refuses "epochs as in Python" 2 'no option --epochs; type --set train\.epochs=3$' "$amp" train --epochs=3 "$job"
refuses "a batch as in Python" 2 'no option --batch-size; type --set train\.batch=64$' "$amp" train --batch-size 64 "$job"
refuses "weights for a training" 2 'no option --weights; type --resume w$' "$amp" train --weights w "$job"
refuses "a GPU" 2 'no option --gpu; type --device cuda or --device cuda:1$' "$amp" train --gpu "$job"
prints "the end of a setting's name" 'setting f32\[\] opt\.lr' "$ampc" --set lr=0.1 --emit=graph "$job"
refuses "the end of two names" 1 'several such settings' "$ampc" --set batch=64 "$job"
refuses "nothing like a setting" 1 '`:set` at the prompt, `amp repl [^ ]*`, lists the settings$' "$ampc" --set foo=3 "$job"
refuses "the last part of a setting" 1 'did you mean `opt.lr`' "$ampc" --set lrr=3 "$job"
refuses "a setting as in Keras" 1 'write `lr`' "$ampc" --set learning_rate=0.1 "$job"
refuses "amp without a job" 2 'no job' "$amp" train
refuses "amp, unknown option" 2 'no option --spteps' "$amp" train --spteps 3 "$job"
refuses "amp, no number" 2 'steps -3' "$amp" train --steps -3 "$job"
refuses "amp, too large a number" 2 'seed' "$amp" train --seed 99999999999999999999 "$job"
refuses "amp, unknown device" 2 'device tpu' "$amp" train --device tpu "$job"
refuses "eval without weights" 2 'give --weights FILE' "$amp" eval "$job"
mkdir no_log && printf 'a,b\n1,2\n' >no_log/metrics.csv
refuses "a report of another table" 3 'not a table that --log-dir writes' "$amp" report --log no_log -o page.html "$job"
refuses "a constant of the wrong type" 1 'EPOCHS' "$ampc" -D EPOCHS=many "$job"

# ---- files ---------------------------------------------------------------------------------------
refuses "no such job" 3 'no\.amp' "$ampc" no.amp
refuses "a folder as a job" 3 'directory' "$ampc" "$work"
printf 'import "none.amp"\n' >importing.amp
refuses "no such import" 3 'importing\.amp:1:.*none\.amp' "$ampc" importing.amp
refuses "output over the job" 2 'this command reads' "$ampc" --emit=ast -o importing.amp importing.amp
same "the job is as it was" importing.amp <(printf 'import "none.amp"\n')
refuses "output in no folder" 3 'no/such' "$ampc" -o no/such/mlp.cu "$job"
printf 'old\n' >kept.cu
printf 'model net = Nothing()\n' >wrong.amp
refuses "errors keep the old output" 1 'Nothing' "$ampc" -o kept.cu wrong.amp
same "the old output is there" kept.cu <(printf 'old\n')
passes "a new output replaces it" "$ampc" --force -o kept.cu "$job"
[ "$(find . -name 'kept.cu?*')" = "" ] || failed "a temporary file is left over"
passes "--check writes nothing" "$ampc" --check -o checked.cu "$job"
[ -e checked.cu ] && failed "--check wrote a file"
passes "--check writes nothing, --dump-after prints" "$ampc" --check -o checked.cu --dump-after=precision "$job"
grep -q '= linear f16' out || failed "--check --dump-after prints nothing"
[ -e checked.cu ] && failed "--check --dump-after wrote a file"
passes "output to a device" "$ampc" -o /dev/null --emit=cuda "$job"
passes "output to a device, its kind by the target" "$ampc" -o /dev/null "$job"
passes "C to a device" "$ampc" -o /dev/null --target=cpu "$job"
refuses "a folder as output" 2 'suffix' "$ampc" -o "$work" "$job"
"$ampc" --emit=c "$job" >/dev/full 2>err
[ $? -eq 3 ] || failed "a full stdout: exit status"

# ---- what is printed -----------------------------------------------------------------------------
prints "--help" '^usage: ampc' "$ampc" --help
prints "--help-on" '^Linear\(in_features' "$ampc" --help-on Linear
refuses "unknown name of the language" 2 "did you mean .Linear" "$ampc" --help-on Linea
prints "amp --help" '^usage: amp' "$amp" --help
prints "amp train --help" '--resume' "$amp" train --help
prints "--version" '^ampc [0-9]' "$ampc" --version
prints "--version, the build" '^built by [A-Z].* [0-9.]+, [A-Z]' "$amp" --version
prints "--version, the defaults" '^defaults: --target=sm_80, --march=native$' "$amp" --version
prints "--list-passes" '^gradient +typed +diffed' "$ampc" --list-passes
prints "--list-ops" '^softmax +f32' "$ampc" --list-ops
prints "--explain-error" 'Conv2d' "$ampc" --explain-error E201
prints "--emit=ast" '[Mm]odule' "$ampc" --emit=ast "$job"
prints "--emit=graph" '= linear' "$ampc" --emit=graph "$job"
prints "--emit=plan" 'gemm' "$ampc" --emit=plan "$job"
prints "--emit=params" '^total 535818 parameters$' "$ampc" --emit=params "$job"
prints "--emit=cuda" '__global__' "$ampc" --emit=cuda "$job"
prints "CUDA is the default" '__global__' "$ampc" "$job"
prints "-o -" 'ampc_main' "$ampc" --emit=c -o - "$job"
prints "--dump-after" 'f16\[128, 512\]' "$ampc" --dump-after=precision "$job"
prints "--blame" 'written by (compiler/(kernel|program)|templates)/[a-z_]*\.[a-z]+:[0-9]+' "$ampc" --blame=120 "$job"
prints "--build-line, CUDA" '^nvcc --fmad=false -lineinfo -arch=sm_90 .*-o m m\.cu -L.* -l:libampcrt\.a ' \
  "$ampc" --target=sm_90 --build-line -o m.cu "$job"
prints "--build-line --library, CUDA" '^nvcc -c .*-arch=sm_90 .*-o m\.o m\.cu$' \
  "$ampc" --target=sm_90 --library --build-line -o m.cu "$job"
prints "--build-line, C" '^cc .* -o '"'"'a m'"'"' '"'"'a m\.c'"'" "$ampc" --build-line -o 'a m.c' "$job"
passes "--deps" "$ampc" --deps=m.d -o m.cu "$job"
same "what --deps writes" m.d <(echo "m.cu: $job")
passes "--deps, -D and --set" "$ampc" --deps=m.d -o m.cu -v -D EPOCHS=3 --set opt.lr=0.5 "$job"
grep -qE 'read (-D|--set)' err && failed "-v calls an option a file"
same "what --deps writes with -D and --set" m.d <(echo "m.cu: $job")
passes "--library" "$ampc" --library --emit=c "$job"
grep -q 'int main' out && failed "--library has a main"
"$ampc" --color=always wrong.amp 2>err
grep -q $'\e\\[1;31m' err || failed "--color=always: no colours"
"$ampc" --error-format=json wrong.amp 2>err
[ $? -eq 1 ] && python3 -c 'import json
lines = [json.loads(line)["line"] for line in open("err")]
assert lines and set(lines) == {1}, lines' || failed "--error-format=json"

# The same job gives the same bytes in every folder, and the text contains no path of this machine.
"$ampc" --emit=cuda "$job" >one.cu || failed "--emit=cuda to stdout"
(cd / && "$ampc" --emit=cuda "$job") >two.cu || failed "--emit=cuda from /"
same "the same bytes again" one.cu two.cu
cp "$job" mlp.amp
passes "--emit=c of a job in this folder" "$ampc" --emit=c mlp.amp
grep -nF "$work" out && failed "an absolute path in the emitted text"

# ---- the kernel cache ----------------------------------------------------------------------------
small_data data
small_job data/job.amp
refuses "a text as a checkpoint" 3 'job\.amp is not a checkpoint' \
  "$amp" train --device cpu --resume data/job.amp data/job.amp
run() { # run [NAME=VALUE...]: trains in the given environment, final checkpoint in `run`
  rm -f "$work/run"
  env "$@" "$amp" train --device cpu --steps 3 --save "$work/run" data/job.amp >"$work/out" 2>"$work/err"
}
again() { # again NAME [NAME=VALUE...]: must write the same checkpoint as the first run
  local name=$1
  shift
  if ! run "$@"; then failed "$name: exit status"; else same "$name" first run; fi
}
cache=$work/cache/ampc
export XDG_CACHE_HOME=$work/cache
run || failed "a first run"
cp run first
entry=$(echo "$cache"/*.so)
[ -f "$entry" ] || failed "nothing was cached"
[ "$(stat -c %a "$cache")" = 700 ] || failed "others may look into the cache"
again "cached kernels"
before=$(stat -c %Y.%i "$entry")
again "cached kernels again"
[ "$(stat -c %Y.%i "$entry")" = "$before" ] || failed "the cache was not used"
printf X | dd of="$entry" bs=1 seek=5000 conv=notrunc 2>/dev/null
again "a damaged entry is built anew"
[ -f "$entry" ] && [ "$(stat -c %Y.%i "$entry")" != "$before" ] || failed "the damaged entry is still there, or none"
truncate -s 1000 "$entry"
again "a truncated entry"
"$amp" train --device cpu --steps 1 --set precision=f32 data/job.amp >out 2>err || failed "another job"
for other in "$cache"/*.so; do [ "$other" = "$entry" ] || cp "$other" "$entry"; done
again "another job's entry in its place"
chmod g+w "$entry"
again "an entry that others may write"
[ "$(stat -c %a "$entry")" = 700 ] || failed "the entry that others may write is still there"
rm "$entry" && ln -s /bin/true "$entry"
again "a link in place of an entry"
[ -L "$entry" ] && failed "the link is still there"
chmod 777 "$cache"
again "a cache that others may write"
run && grep -q 'other users may write to it' err || failed "no note says that the cache is not used"
chmod 700 "$cache"
again "no place for a cache" XDG_CACHE_HOME=/proc/none
again "no home" -u XDG_CACHE_HOME HOME=/proc/none
[ "$(find /tmp -maxdepth 1 -name 'amp-kernels-*' -newer "$entry" -user "$(id -u)")" = "" ] ||
  failed "a temporary folder is left over"
refuses "no cc" 4 'no C compiler' env PATH=/nonexistent "$amp" train --device cpu data/job.amp
mkdir bin && printf '#!/bin/sh\necho broken >&2\nexit 1\n' >bin/cc && chmod +x bin/cc
refuses "a cc that fails" 4 'bin/cc cannot compile' env PATH="$work/bin" "$amp" train --device cpu data/job.amp
[ "$(find "$cache" -name 'new.*')" = "" ] || failed "a part of an entry is left over"

# A full disk: the compiler cannot write to the cache, or its own files in /tmp.
real=$(command -v cc)
compiler() { # compiler LINES: makes bin/cc, which runs LINES; $out is the path of the library
  printf '#!/bin/bash\n[ "$1" = --version ] && exec %s --version\nfor a; do [ "$last" = -o ] && out=$a; last=$a; done\n%s\n' \
    "$real" "$1" >bin/cc
}
no_room='{ echo "ld: final link failed: No space left on device" >&2; exit 1; }'
compiler "case \$out in $cache/*) $no_room ;; esac; exec $real \"\$@\""
again "a full disk under the cache" PATH="$work/bin:$PATH"
run PATH="$work/bin:$PATH" && grep -q '^note: nothing is cached in .*No space left' err || failed "a full disk under the cache: no note is printed"
compiler "case \$TMPDIR in /dev/shm/*) exec $real \"\$@\" ;; *) $no_room ;; esac"
again "full disks, space in memory" PATH="$work/bin:$PATH"
compiler "$no_room"
refuses "no space anywhere" 5 'cannot store the kernels: .*No space left' env PATH="$work/bin:$PATH" \
  "$amp" train --device cpu data/job.amp
[ "$(find /tmp /var/tmp /dev/shm -maxdepth 1 -name 'amp-kernels-*' -newer bin/cc -user "$(id -u)")" = "" ] ||
  failed "no space anywhere: a temporary folder is left over"
if unshare -rm true 2>/dev/null; then
  XDG_CACHE_HOME=$work/tiny unshare -rm bash -c 'mkdir "$0/tiny" && mount -t tmpfs -o size=8k tmpfs "$0/tiny" &&
    "$1" train --device cpu --steps 3 --save "$0/run" data/job.amp' "$work" "$amp" >out 2>err || failed "a full disk"
  same "a full disk" first run
fi

# A compiler that reports success without a usable library: nothing is cached.
broken() { # broken NAME LINES
  compiler "$2"
  rm -rf "$work/broken"
  refuses "$1" 4 'cannot be loaded' env PATH="$work/bin:$PATH" XDG_CACHE_HOME="$work/broken" \
    "$amp" train --device cpu data/job.amp
  [ "$(ls "$work/broken/ampc")" = "" ] || failed "$1: a file of it is cached"
}
broken "a cc that writes nothing" "exit 0"
broken "a cc that writes no library" 'echo junk >"$out"'
broken "a cc whose library is truncated" "$real \"\$@\"; truncate -s 9000 \"\$out\""
broken "a cc that writes another library" "echo 'int x;' | $real -shared -x c - -o \"\$out\""
broken "a cc whose library lacks a function" \
  "echo 'extern int f(void); int (*g)(void) = f;' | $real -shared -fPIC -x c - -o \"\$out\""

# ---- a small stack: refused with the smallest size that is enough, before a crash ---------------------------------
cp data/job.amp data/stack.amp
for kb in 64 512 1023; do
  for command in "$ampc --emit=plan" "$amp train --device cpu"; do
    # shellcheck disable=SC2086
    refuses "$command with $kb KiB of stack" 5 "limited to $kb KiB.*ulimit -s 1024" prlimit --stack=$((kb * 1024)) $command data/stack.amp
  done
done
passes "1024 KiB of stack" prlimit --stack=1048576 "$ampc" --emit=plan --data-dir data -o stack.plan data/stack.amp
finish
