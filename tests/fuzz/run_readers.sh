#!/usr/bin/env bash
# Fuzzes the readers of data files and checkpoints for SECONDS (60) in all, starting from small valid
# files. Each READER, as `fuzz_readers --readers` lists them (all), has its own corpus.
#   run_readers.sh [SECONDS [READER...]]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
tests/built.sh asan fuzz_readers
fuzz=build-asan/tests/fuzz_readers
corpus=build-asan/corpus-readers
seeds=build-asan/seeds-readers
rm -rf $seeds
mkdir -p build-asan/found
seed() { # seed READER NAME: writes stdin as a valid file for this reader
  mkdir -p "$seeds/$1" && cat >"$seeds/$1/$2"
}
images() { printf '\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03abcdefghijkl'; }
images | seed idx images
images | gzip -n | seed idx images_gz
printf '\0\0\x0c\x01\0\0\0\x02\0\0\0\x01\0\0\0\x02' | seed idx labels
printf '\0\0\x0d\x02\0\0\0\x01\0\0\0\x02abcdefgh' | seed idx floats
printf '\0\0\x09\x01\0\0\0\x02\xfe\x03' | seed idx signed
for f in f4.npy f4.npy.gz b1.npy fortran.npy; do seed npy $f <tests/data/$f; done
for f in stored.npz deflated.npz zip64.npz; do seed npz $f <tests/data/$f; done
for f in tensors.safetensors tensors.safetensors.gz; do seed safetensors $f <tests/data/$f; done
printf 'a,"b"\n1,"2"\n3,4\n' | seed csv plain
printf '# "x\na,b\n1,cat\n2,"a, ""b"\n3,NA\n4, cat\n' | seed csv names
printf 'a,b\nnan,<NA>\n,inf\n' | seed csv missing
printf '%024d' 0 | seed raw zeros
printf '%024d' 0 | seed tokens zeros
printf '%03073d' 0 | seed cifar10 zeros
for f in tests/data/pictures/*/* tests/data/turned/*/*g; do seed images "${f##*/}" <"$f"; done
tensors='{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"ampc.checksum":"0000000000000000"}}'
{ printf "\\x$(printf %x ${#tensors})\\0\\0\\0\\0\\0\\0\\0%s" "$tensors" && printf '%024d' 0; } | seed weights tensors
seed weights types.gguf <tests/folder/types.gguf
for f in tests/data/torch/*.pth; do seed weights "${f##*/}" <"$f"; done
for f in state training kinds; do python3 -m zipfile -e tests/data/torch/$f.pth build-asan/unzipped; done
for f in state training kinds; do seed pickle $f <build-asan/unzipped/$f/data.pkl; done

all=$($fuzz --readers)
readers=${*:2}
for reader in $all; do # a format without a valid file, or with one of another format, is not tested
  [ -d $seeds/$reader ] || { echo "run_readers.sh has no seed for $reader"; exit 1; }
  $fuzz --reader=$reader --seeds $seeds/$reader/* >/dev/null 2>build-asan/seeds.log || { tail -20 build-asan/seeds.log; exit 1; }
done
count=$(wc -w <<<"${readers:-$all}")
for reader in ${readers:-$all}; do
  mkdir -p $corpus/$reader
  echo "$reader, $((seconds / count > 0 ? seconds / count : 1)) s"
  $fuzz --reader=$reader -error_exitcode=1 -max_total_time=$((seconds / count > 0 ? seconds / count : 1)) -timeout=200 \
    -rss_limit_mb=2048 -max_len=8192 -artifact_prefix=build-asan/found/$reader- -print_final_stats=1 \
    $corpus/$reader $seeds/$reader 2>build-asan/$reader.log || { tail -60 build-asan/$reader.log; exit 1; }
  grep -E 'number_of_executed_units|cov:' build-asan/$reader.log | tail -2
done
