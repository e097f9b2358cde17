#!/usr/bin/env bash
# --march: the processors that kernels are compiled for, in build lines and in the JIT with its cache. A program that
# was compiled for a better processor than this one is refused.
#   march.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
root=$(realpath "$(dirname "$0")/../..")
cd "$work" || exit 1
small_data data
small_job data/job.amp
refuses "an unknown level" 2 'expected native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, armv8-a, .* or armv8.2-a' "$amp" train --march=i386 data/job.amp
refuses "another architecture's level" 5 'for processors of level armv8-a, and this one has ' "$amp" train --device cpu \
  --march=armv8-a data/job.amp
refuses "--march for a GPU" 2 'needs --target=cpu' "$ampc" --march=x86-64-v2 data/job.amp
line() { "$ampc" --target=cpu --build-line -o job.c "$@" data/job.amp; }
line | grep -q ' -march=native ' || failed "the build line is not for this processor"
line --march=x86-64-v3 --library | grep -q ' -march=x86-64-v3 ' || failed "the build line has no --march"

levels=$(sed -nE 's/^(X86|ARM)\("([^"]*)", true.*/\2/p' "$root/common/levels.def")
[ "$(wc -l <<<"$levels")" -ge 10 ] || failed "common/levels.def has no rows"
for level in $levels; do
  compiler=cc
  [ "${level#arm}" = "$level" ] || compiler=aarch64-linux-gnu-gcc
  command -v $compiler >/dev/null || continue
  told=$(printf '#include "ampc_values.h"\nAMPC_PROCESSOR\n' |
    $compiler -march="$level" -I "$root/runtime/plan" -E -P - | tail -n 1 | tr -d '" ')
  [ "$told" = "$level" ] || failed "-march=$level is compiled with AMPC_PROCESSOR $told"
done

mkdir bin
real=$(command -v cc)
printf '#!/bin/sh\necho "$@" >>"%s/log"\nexec "%s" "$@"\n' "$work" "$real" >bin/cc && chmod +x bin/cc
export XDG_CACHE_HOME=$work/cache
trains() { PATH=$work/bin:$PATH "$amp" train --device cpu -q --steps 2 "$@" data/job.amp >out 2>err || failed "amp train $*"; }
trains --march=x86-64-v2
trains
trains --march=x86-64-v2
grep -o -- '-march=[^ ]*' log >built
same "each level is compiled once" built <(printf -- '-march=x86-64-v2\n-march=native\n')

"$ampc" --emit=c -o job.c data/job.amp || failed "ampc"
passes "a program for all processors is built" sh -c "$(line --march=x86-64)"
passes "a program for all processors trains" ./job -q --steps 2 --data-dir data
sed -i 's/= AMPC_PROCESSOR/= "x86-64-v9"/' job.c
passes "a program for other processors is built" sh -c "$(line --march=x86-64)"
refuses "a program for other processors" 5 'for processors of level x86-64-v9, and this one has .*--march=x86-64' ./job --data-dir data
finish
