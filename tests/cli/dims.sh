#!/usr/bin/env bash
# Dims, the sizes of an infer block that the caller chooses: amp infer with data of many sizes, and
# the function of a library for several sizes. Each size must give the bytes of a job that has the
# number in place of the dim.
#   dims.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
infer() { timeout 60 "$amp" infer -q --device cpu "$@"; }

cat >job.amp <<'JOB'
dim N(max=4); dim S(max=32, multiple=8)
module Net {
  fc = Linear(3, 5); head = Linear(5, 2)
  def forward(x: float[N, S, 3]) -> float[N, 2] { return head(tanh(fc(x)).mean(1)) }
}
model net = Net()
infer scores(x: f32[N, S, 3]) -> f32[N, 2] { return softmax(net(x), dim=-1) if S > 8 else net(x) }
infer both(x: f32[N, S, 3], mask: bool[N, S]) { return where(mask.unsqueeze(2), x, 0.0).sum(1), x.size(1) * ones(N) }
infer longer(x: f32[N, S, 3]) -> f32[N, S + 8, 3] { return cat([x, zeros(N, 8, 3)], dim=1) }
infer picture(x: u8[N, 3, 2 * S, S]) -> f32[N] { return x.to(f32).mean([1, 2, 3]) }
JOB
python3 - <<'PY'
import struct
def npy(name, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + data)
for n, s in ((1, 8), (3, 16), (4, 32), (9, 8), (2, 12), (2, 40), (2, 4)):
    x = [((i * 7919 + s) % 1000) / 500 - 1 for i in range(n * s * 3)]
    npy(f"x{n}_{s}.npy", "<f4", (n, s, 3), struct.pack(f"<{len(x)}f", *x))
    npy(f"m{n}_{s}.npy", "|b1", (n, s), bytes(i % 3 == 0 for i in range(n * s)))
npy("flat.npy", "<f4", (3, 16), bytes(192))
npy("other.npy", "|b1", (3, 8), bytes(24))
w = [((i * 31) % 17) / 8 - 1 for i in range(32)]
print("fc.weight F32 [5,3]", *w[:15], "\nfc.bias F32 [5]", *w[15:20], "\nhead.weight F32 [2,5]", *w[20:30], "\nhead.bias F32 [2]", *w[30:], file=open("w.txt", "w"))
PY
sed 's/ *$//' w.txt | "$source_dir/tests/cli/weights.py" w.safetensors

# ---- amp infer -------------------------------------------------------------------------------------
for size in "1 8 1" "3 16 3" "4 32 4" "9 8 4"; do
  read -r n s batch <<<"$size"
  sed "s/^dim .*//; s/\bN\b/$batch/g; s/\bS\b/$s/g" job.amp >fixed.amp
  for block in scores longer; do
    passes "$block of $n x $s" infer --weights w.safetensors --block $block --input "x${n}_$s.npy" --output dim.npy job.amp
    passes "$block of $n x $s, as numbers" infer --weights w.safetensors --block $block --input "x${n}_$s.npy" --output fixed.npy fixed.amp
    same "$block of $n x $s: the same bytes" dim.npy fixed.npy
  done
  passes "two arguments of $n x $s" infer --weights w.safetensors --block both --input "x=x${n}_$s.npy" --input "mask=m${n}_$s.npy" job.amp
  [ "$(grep -c "^both.1: $s\$" out)" = "$n" ] || failed "two arguments of $n x $s: results"
done
passes "a batch that is asked for" infer --weights w.safetensors --block scores --input x3_16.npy --dim N=2 job.amp
cp out two
passes "any batch" infer --weights w.safetensors --block scores --input x3_16.npy job.amp
cp out any
same "whatever the batch" two any
run="infer --weights w.safetensors --block scores"
refuses "no multiple" 1 '`S`, axis 1 of `x`, is 12; it must be a multiple of 8, such as 16' $run --input x2_12.npy job.amp
refuses "too large" 1 '`S`, axis 1 of `x`, is 40; the maximum is 32' $run --input x2_40.npy job.amp
refuses "too small" 1 '`S`, axis 1 of `x`, is 4; the minimum is 8' $run --input x2_4.npy job.amp
refuses "not the size of --dim" 1 'declared f32\[N, S, 3\], the value is f32\[3, 16, 3\]' $run --dim S=8 --input x3_16.npy job.amp
refuses "other axes" 1 'declared f32\[N, S, 3\], the value is f32\[1, 16\]' $run --input flat.npy job.amp
refuses "two sizes at once" 1 'dim S requests 2 sizes; with data only one size is possible' $run --dim S=8,16 --input x3_16.npy job.amp
refuses "two arguments of unequal size" 1 '`mask` of infer `both` is declared bool\[N, S\], the value is bool\[3, 8\]' \
  infer --weights w.safetensors --block both --input x=x3_16.npy --input mask=other.npy job.amp

refuses "no dim of that name" 1 'dim M=4: no such dim' "$ampc" --check --dim M=4 job.amp
refuses "no sizes" 1 'dim S=8,,: expected sizes, such as 32 or 8,32' "$ampc" --check --dim S=8,, job.amp
refuses "a size that the dim has not" 1 'dim S=8,20: the size is 20; it must be a multiple of 8, such as 24' "$ampc" --check --dim S=8,20 job.amp
refuses "above the most" 1 'dim N=5: the size is 5; the maximum is 4' "$ampc" --check --dim N=5 job.amp
refuses "no name" 2 'expected NAME=SIZE' "$ampc" --check --dim 5 job.amp

# ---- a library -------------------------------------------------------------------------------------
asked="--dim N=1,4 --dim S=8 --dim S=32"
passes "library" "$ampc" --library --target=cpu $asked -o job.c job.amp
passes "header" "$ampc" $asked -o job.h job.amp
grep -q 'int job_scores(struct ampc_runtime \*rt, int64_t size_N, int64_t size_S, const float \*in_x, float \*out);' job.h ||
  failed "header: the function"
grep -q 'size_N = 4, size_S = 32:' job.h || failed "header: the sizes"
cat >call.c <<'EOF2'
#include <stdio.h>
#include <string.h>
#include "job.h"
static float x[4 * 32 * 3], y[4 * 40 * 3];
static int one(struct ampc_runtime *rt, const char *file, int64_t n, int64_t s)
{
  FILE *f = fopen(file, "rb");
  if (!f || fseek(f, 128, SEEK_SET) || fread(x, sizeof(float), (size_t)(n * s * 3), f) != (size_t)(n * s * 3)) return 9;
  fclose(f);
  int status = job_scores(rt, n, s, x, y);
  for (int64_t i = 0; i < n && !status; i++) printf("%.9g %.9g\n", (double)y[2 * i], (double)y[2 * i + 1]);
  return status;
}
int main(void)
{
  struct ampc_runtime *rt = NULL;
  if (job_open("cpu", "w.safetensors", NULL, &rt)) return puts(job_error()), 3;
  if (one(rt, "x1_8.npy", 1, 8) || one(rt, "x4_32.npy", 4, 32) || one(rt, "x1_8.npy", 1, 8)) return puts(job_error()), 4;
  if (job_scores(rt, 3, 8, x, y) != 2) return 5;
  if (strcmp(job_error(), "infer scores is not compiled for N = 3, S = 8; it is for N = 1, S = 8; N = 1, S = 32; "
                          "N = 4, S = 8; N = 4, S = 32"))
    return puts(job_error()), 6;
  if (job_longer(rt, 4, 32, x, y) || memcmp(x, y, 32 * 3 * sizeof(float)) || y[32 * 3] != 0) return 7;
  job_close(rt);
  return 0;
}
EOF2
line=$("$ampc" --build-line --library --target=cpu $asked -o job.c job.amp)
passes "library: compiles without a warning" sh -c "$line -Wall -Werror"
libraries="-L$(dirname "$ampc") -lampcrt -lz -ldnnl -lgomp -ljansson -lxxhash -lpthread -ldl -lm"
# shellcheck disable=SC2086 # words
passes "C" cc -std=c11 -Wall -Wextra -Werror -pedantic -I. -o call call.c job.o $libraries
passes "called from C" ./call
cp out called
for x in x1_8 x4_32 x1_8; do infer --weights w.safetensors --block scores --input $x.npy job.amp; done >said
same "amp infer says the same" called said
passes "the greatest size alone" "$ampc" --library --target=cpu -o most.c job.amp
passes "it is that of the numbers" "$ampc" --emit=memory job.amp
cp out most
sed "s/^dim .*//; s/\bN\b/4/g; s/\bS\b/32/g" job.amp >other.amp
mv other.amp numbers.amp
"$ampc" --emit=memory numbers.amp | sed 's/numbers\.amp/job.amp/' >fixed
same "memory is planned for the greatest size" most fixed
[ $failures -eq 0 ]
