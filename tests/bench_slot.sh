#!/usr/bin/env bash
# bench/slot.sh on the mock of NVIDIA's libraries, with small nets and a PyTorch that only answers: both calls, a part
# that is interrupted and goes on, one that exceeds its time, one that fails, one without its tool. The other parts
# must have their results, and the table must say what is missing and why.
#   bench_slot.sh AMPC AMP BENCH_STEPS MOCK
. "$(dirname "$0")/faults/lib.sh"
cd "$source_dir" || exit 1
steps=$(realpath "$3")
export LD_LIBRARY_PATH=$(realpath "$4") AMPC_ATTENTION_F32=1 # a block of the mock has one thread: no tensor cores
place=$work/build
mkdir -p "$place" "$work/bin" "$work/out.1" "$work/out.2"
cp "$amp" "$place/amp" && cp "$steps" "$place/bench_steps" || exit 1

cat >"$work/tiny" <<'SH'
case $1 in
gpt2*) consts+=(-D LAYERS=2 -D HEADS=2 -D C=16 -D T=16) batch=2 ;;
bert_large) consts+=(-D WIDTH=16 -D DEPTH=1 -D HEADS=2) batch=2 ;;
resnet50) consts+=(-D SIZE=32 -D WIDTH=8) batch=2 ;;
efficientnet_b7) consts+=(-D SIZE=32 -D WIDTH=0.25 -D DEPTH=0.3) batch=2 ;;
mnist_cnn) consts+=(-D "BLOCKS=[[1,8,3,1,1],[8,8,2,2,0],[8,1024,3,1,1]]") batch=4 ;;
esac
SH
# Pictures need no library here. The measurement of PyTorch takes as long as the file `slow` says.
cat >"$work/python" <<'SH'
#!/usr/bin/env python3
import os, struct, sys, time, zlib
work = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1:2] != ["bench/gpu_peer.py"] or sys.argv[2] in ("--data", "--tokens", "--texts"):
    os.execvp("python3", ["python3"] + sys.argv[1:])
if sys.argv[2] == "--pictures":
    part = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    png = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 40, 40, 8, 2, 0, 0, 0)) + part(
        b"IDAT", zlib.compress((b"\0" + bytes(range(120))) * 40)) + part(b"IEND", b"")
    for split in ("train", "val"):
        for k in range(10):
            place = os.path.join(sys.argv[3], "imagenet", split, f"class{k}")
            os.makedirs(place, exist_ok=True)
            for i in range(4):
                open(os.path.join(place, f"{i}.png"), "wb").write(png)
else:
    if os.path.exists(os.path.join(work, "slow")):
        open(os.path.join(work, "sleeper"), "w").write(str(os.getpid()))
        time.sleep(600)
    print('{"step_ms": 7.5, "first_loss": 2.5, "last_loss": 2.0, "memory_bytes": 3000000, "device": "fake"}')
SH
chmod +x "$work/python"
export RESULTS=$work/results PYTHON=$work/python TINY=$work/tiny WARM=1 STEPS=1 OP=ceil
export LIMITS="400 400 400 400 400 400 400" CALL=4000

call() { # call N: its output is in $work/out
  OUT=$work/out.$1 bench/slot.sh "$place" "$1" >"$work/out" 2>"$work/err" || failed "call $1"
}
done_parts() { [ "$(cd "$RESULTS" && echo *.done)" = "$2" ] || failed "$1: these parts are done: $(cd "$RESULTS" && echo *.done)"; }
row() { grep -Eq "$2" "$work/out" || failed "$1: the table has no row $2"; }
gone() { # gone NAME: no process of the interrupted measurement runs
  sleep 1
  kill -0 "$(cat "$work/sleeper")" 2>/dev/null && failed "$1: the measurement still runs"
  rm -f "$work/sleeper"
}

wrong() { # wrong PATTERN COMMAND...: status 2
  "${@:2}" >"$work/out" 2>"$work/err"
  [ $? -eq 2 ] && grep -q "slot.sh: $1" "$work/err" || failed "$1"
}
wrong "$work has no bench_steps and amp" bench/slot.sh "$work" prepare
wrong "unknown word repotr" bench/slot.sh "$place" repotr
wrong "no $place/slot.tar.gz" bench/slot.sh "$place" 1
passes "prepare" bench/slot.sh "$place" prepare
tar -tzf "$place/slot.tar.gz" >"$work/list"
for file in amp bench_steps lib/libdnnl data/train_ids.npy data/imagenet/val cache/ampc/.*cubin; do
  grep -q "^slot/$file" "$work/list" || failed "the archive has no $file"
done

# ---- call 1: interrupted in part 3, then continued -------------------------------------------------
rm -rf "$place/slot" # as on the other machine
tar -C "$place" -xzf "$place/slot.tar.gz"
XDG_CACHE_HOME=$place/slot/cache "$place/slot/amp" selftest --device cuda --brief --filter $OP >/dev/null 2>&1 # not in the archive
kernels=$(ls "$place/slot/cache/ampc/"*.cubin)
mv "$place/slot/bench_steps" "$place/slot/steps"
cat >"$place/slot/bench_steps" <<SH
#!/usr/bin/env bash
if [ -e "$work/slow" ] && [[ \$* == *bert_large* ]]; then echo \$\$ >"$work/sleeper"; exec sleep 600; fi
exec "$place/slot/steps" "\$@"
SH
chmod +x "$place/slot/bench_steps"
touch "$work/slow"
OUT=$work/out.1 bench/slot.sh "$place" 1 >"$work/out" 2>"$work/err" &
caller=$!
while [ ! -e "$work/sleeper" ] && kill -0 $caller 2>/dev/null; do sleep 0.2; done
kill -TERM $caller
wait $caller
gone "a call that is interrupted"
rm "$work/slow"
done_parts "interrupted" "1.done 2.done"
[ -s "$RESULTS/3.own/gpt2_dropout-bf16.ampc.json" ] || failed "the measurement before the interruption is lost"
bench/slot.sh report "$RESULTS" >"$work/out"
row "interrupted" '^\| 3 \| steps \|.*missing\*\*: interrupted \|$'
before=$(stat -c %n%Y "$RESULTS"/1.*.txt "$RESULTS"/2.*.txt "$RESULTS"/3.own/gpt2_dropout*.json)
call 1
done_parts "continued" "1.done 2.done 3.done"
[ "$before" = "$(stat -c %n%Y "$RESULTS"/1.*.txt "$RESULTS"/2.*.txt "$RESULTS"/3.own/gpt2_dropout*.json)" ] || failed "a result was measured again"
[ "$kernels" = "$(cd / && ls "$place/slot/cache/ampc/"*.cubin)" ] || failed "kernels of nets were not in the archive: $(ls "$place/slot/cache/ampc/"*.cubin | wc -l) instead of $(wc -w <<<"$kernels")"

# ---- call 2: part 4 exceeds its time, part 6 fails -------------------------------------------------
touch "$work/slow"
printf '#!/bin/sh\necho cannot find the driver >&2\nexit 3\n' >"$work/bin/compute-sanitizer" && chmod +x "$work/bin/compute-sanitizer"
mv "$place/slot/steps" "$place/slot/bench_steps"
PATH=$work/bin:$PATH LIMITS="400 400 400 8 400 400 400" call 2
gone "a part over its limit"
done_parts "two parts without results" "1.done 2.done 3.done 5.done 7.done"
row "over its limit" '^\| 4 \| torch.compile \|.*missing\*\*: over its limit of 8 s \|$'
row "failed" '^\| 6 \| memcheck \|.*missing\*\*: status 1: 6.bert_large.txt: status 3 \|$'
for net in mnist_cnn-f16 efficientnet_b7-f16 gpt2-f32 gpt2-tf32 bert_large-f32 resnet50-tf32; do
  row "part 5" "^\| 5 \| ${net/-/ }, ampc \| [0-9.]+ \| [0-9]+ \| [0-9.]+ \| [0-9.]+ \|  \|$"
done
row "part 1" '^\| 1 \| attention, selftest, r2b .* [1-9][0-9]* passed, 0 failed \|$'
row "part 2" '^\| 2 \| mnist_cnn, selftest, bf16 .* [1-9][0-9]* passed, 0 failed; jobs: at most 0\.[0-4][0-9] of the bound \|$'
row "part 3" '^\| 3 \| gpt2_dropout bf16, r1r2 \| [0-9.]+ \|'
row "part 7" '^\| 7 \| resnet50 f16, ampc \| [0-9.]+ \|'
[ -s "$RESULTS/7/resnet50-f16.tsv" ] && [ -s "$RESULTS/3.r1r2/bert_large-f16.tsv" ] || failed "no times of commands"
# The archives alone give the same table.
grep '^| [1-7]' "$work/out" >"$work/table"
bench/slot.sh report "$work/out.1" "$work/out.2" | grep '^| [1-7]' >"$work/other"
cmp -s "$work/table" "$work/other" || failed "the table of the archives: $(diff "$work/table" "$work/other")"

# ---- the rest, when nothing stops it ---------------------------------------------------------------
rm "$work/slow" "$work/bin/compute-sanitizer"
call 2
done_parts "everything" "1.done 2.done 3.done 4.done 5.done 6.done 7.done"
row "torch.compile" '^\| 4 \| gpt2 bf16, compile \| 7.500 \| 3 \| 2.5000 \| 2.0000 \|  \|$'
row "torch.compile, slow" '^\| 4 \| gpt2_dropout bf16, compile \| - \| .*out of time \|$' # kept: its file exists
row "no compute-sanitizer" '^\| 6 \| memcheck \|.* skipped: no compute-sanitizer \|$'
grep -q missing "$work/out" && failed "something is missing"
finish
