#!/usr/bin/env bash
# The generative models and the convolutional LSTM: compiled for both targets without data; the number of parameters; a few
# steps in f16 and in each PRECISION, with the same bytes without fusion, from the emitted program and resumed;
# their infer blocks.
#   generative.sh AMPC AMP [PRECISION...]
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
models=$source_dir/models
small=(--device cpu --set train.batch=8 --set eval.batch=8 --set eval.steps=1)
nowhere=(-D DIR=/nowhere/)

for name in vae dcgan autoencoder convlstm; do
  job=$models/$name/$name.amp
  case $name in vae) total=652824 ;; dcgan) total=898304 ;; autoencoder) total=115217 ;; convlstm) total=14281 ;; esac
  [ "$("$ampc" --emit=params "${nowhere[@]}" "$job" | tail -n 1)" = "total $total parameters" ] || failed "$name: parameters"
  passes "$name: CUDA C without data" "$ampc" "${nowhere[@]}" -o $name.cu "$job"
  for precision in "" "${@:3}"; do # f16 is set in the jobs; a checkpoint records what --set changes
    passes "$name in ${precision:-f16}" "$amp" train -q "${small[@]}" ${precision:+--set precision=$precision} --steps 4 --save ${precision:-f16}.st "$job"
    grep -q nan out && failed "$name in ${precision:-f16}: nan"
  done
  passes "$name without fusion" "$amp" train -q "${small[@]}" -O0 --steps 4 --save flat.st "$job"
  same "$name without fusion" f16.st flat.st
  passes "$name: two steps" "$amp" train -q "${small[@]}" --steps 2 --save two.st "$job"
  passes "$name: two more" "$amp" train -q "${small[@]}" --steps 4 --resume two.st --save four.st "$job"
  same "$name resumed" f16.st four.st
  options=(--target=cpu --set train.batch=8 --set eval.batch=8 --set eval.steps=1)
  passes "$name: C" "$ampc" "${options[@]}" -o $name.c "$job"
  passes "$name: cc" bash -c "$("$ampc" "${options[@]}" --build-line -o $name.c "$job")"
  passes "$name: the emitted program" ./$name -q --steps 4 --save emitted.st
  same "$name: the emitted program" f16.st emitted.st
  mv f16.st $name.st
done

# ---- infer blocks: the first images of the test set, and samples -----------------------------------
gunzip -c $fashion/t10k-images-idx3-ubyte.gz 2>/dev/null | head -c $((16 + 9 * 784)) >bytes
{ printf '\0\0\x08\x03\0\0\0\x09\0\0\0\x1c\0\0\0\x1c'; tail -c +17 bytes; } >nine-ubyte
infer() { "$amp" infer -q --device cpu -D BATCH=4 --weights "$1.st" "${@:2}" "$models/$1/$1.amp"; }
passes "vae: sample" infer vae --block sample --png vae.png
passes "vae: reconstruct" infer vae --block reconstruct --input nine-ubyte --png again.png
passes "convlstm: predict" infer convlstm --block predict --input nine-ubyte --png films.png
passes "dcgan: sample" infer dcgan --png dcgan.png --range=-1,1
passes "autoencoder: encode" infer autoencoder --block encode --input nine-ubyte --output codes.npy
passes "autoencoder: decode" infer autoencoder --block decode --input codes.npy --png decoded.png
passes "autoencoder: reconstruct" infer autoencoder --block reconstruct --input nine-ubyte --png both.png
same "autoencoder: encoded and decoded" decoded.png both.png
python3 - vae.png again.png dcgan.png both.png films.png <<'PY' || failed "pictures"
import struct, sys
sizes = [struct.unpack(">II", open(path, "rb").read()[16:24]) for path in sys.argv[1:]]
assert sizes[:4] == [(122, 32), (242, 62), (122, 32), (242, 62)] and sizes[4][0] >= 2 * 288, sizes
PY
finish
