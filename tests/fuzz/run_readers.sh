#!/usr/bin/env bash
# Fuzzes the readers of data files and checkpoints for SECONDS (60), starting from small valid files.
#   run_readers.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
cmake --preset fuzz -G Ninja --log-level=WARNING >/dev/null
cmake --build build-fuzz --target fuzz_readers
corpus=build-fuzz/corpus-readers
mkdir -p $corpus build-fuzz/found
images() { printf '\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03abcdefghijkl'; }
tensors='{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"ampc.checksum":"0000000000000000"}}'
{ printf '\x01' && images; } >$corpus/images
{ printf '\x01' && images | gzip -n; } >$corpus/images_gz
printf '\x01\0\0\x0c\x01\0\0\0\x02\0\0\0\x01\0\0\0\x02' >$corpus/labels
printf '\x01\0\0\x0d\x02\0\0\0\x01\0\0\0\x02abcdefgh' >$corpus/floats
printf '\x01\0\0\x09\x01\0\0\0\x02\xfe\x03' >$corpus/signed
{ printf "\\0\\x$(printf %x ${#tensors})\\0\\0\\0\\0\\0\\0\\0%s" "$tensors" && printf '%024d' 0; } >$corpus/tensors
file() { # file ROW NAME: writes stdin as an input for that row of AMPC_FORMATS
  { printf "\\x$(printf %x "$1")" && cat; } >"$corpus/$2"
}
for f in f4.npy f4.npy.gz b1.npy fortran.npy; do file 3 $f <tests/data/$f; done
for f in stored.npz deflated.npz zip64.npz; do file 4 $f <tests/data/$f; done
for f in tensors.safetensors tensors.safetensors.gz; do file 5 $f <tests/data/$f; done
printf 'a,"b"\n1,"2"\n3,4\n' | file 6 csv
printf '# "x\na,b\n1,cat\n2,"a, ""b"\n3,NA\n4, cat\n' | file 6 csv_names
printf 'a,b\nnan,<NA>\n,inf\n' | file 6 csv_missing
printf '%024d' 0 | file 7 raw
printf '%024d' 0 | file 8 tokens
printf '%03073d' 0 | file 9 cifar10
for f in tests/data/pictures/*/* tests/data/turned/*/*g; do file 10 "${f##*/}" <"$f"; done
for f in tests/data/torch/*.pth; do file 0 "${f##*/}" <"$f"; done
for f in state training kinds; do python3 -m zipfile -e tests/data/torch/$f.pth build-fuzz/unzipped; done
for f in state training kinds; do file 12 $f.pkl <build-fuzz/unzipped/$f/data.pkl; done
build-fuzz/tests/fuzz_readers -error_exitcode=1 -max_total_time="$seconds" -timeout=200 -rss_limit_mb=2048 \
  -max_len=8192 -artifact_prefix=build-fuzz/found/ -print_final_stats=1 $corpus
