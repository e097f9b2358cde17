#!/usr/bin/env bash
# Programs without main(): the functions that --library defines and --emit=header declares, called
# from C and C++. examples/clothes is built by CMake and run. The results equal those of amp infer.
#   library.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1

# ---- the example -----------------------------------------------------------------------------------
small_data data
for split in train t10k; do
  mv data/$split-images.gz data/$split-images-idx3-ubyte.gz
  mv data/$split-labels.gz data/$split-labels-idx1-ubyte.gz
done
sed "s|^const BATCH.*|const BATCH = 1; const DIR = \"$work/data/\"|" "$source_dir/examples/clothes/clothes.amp" >clothes.amp
passes "a training" "$amp" train -q --device cpu --save clothes.safetensors clothes.amp
gunzip -c data/t10k-images-idx3-ubyte.gz >pictures-ubyte
passes "cmake" cmake -S "$source_dir/examples/clothes" -B example -Dampc_DIR="$(dirname "$ampc")"
passes "builds" cmake --build example
passes "runs" ./example/clothes clothes.safetensors pictures-ubyte 5
cp out said
"$amp" infer -q --device cpu --weights clothes.safetensors --input pictures-ubyte --top 1 clothes.amp >out 2>err
python3 - said out <<'PY' && echo "ok: amp infer says the same" || failed "amp infer says the same"
import sys
names = "T-shirt trouser pullover dress coat sandal shirt sneaker bag boot".split()
example = [line.split() for line in open(sys.argv[1])]
top = [line.split() for line in open(sys.argv[2]) if line.startswith("  ")]
assert len(example) == 5
for (_, name, p), (q, k) in zip(example, top):
    assert name == names[int(k)] and p == q, (name, p, q, k)
PY
./example/clothes pictures-ubyte pictures-ubyte 2>err
[ $? -eq 3 ] && grep -q 'pictures-ubyte is not a safetensors file' err || failed "no weights"

# ---- every type, several arguments and results, names that are not C identifiers -----------------------------
cat >my-net.amp <<'EOF'
model net = Linear(2, 2) { load("net.safetensors") }
infer open(double: f32[2], int8: u8[2], k: i64[2], h: f16[2], b: bool[2], i: i32[]) {
  return double + 1.0, int8, k, h, b, i
}
infer weights() { return net.weight }
infer apply(x: f32[1, 2]) { return net(x) }
infer draw() { return rand(2) }
infer declared(x: f32[1, 2]) -> (f32[1, 2], f16[1, 2], float[1, 2]) {
  autocast(bf16) { y = net(x) }
  return y, y, y
}
EOF
printf 'weight F32 [2,2] 1 2 3 4\nbias F32 [2] 0.5 0\n' | "$source_dir/tests/cli/weights.py" net.safetensors
passes "library" "$ampc" --library --target=cpu -o my-net.c my-net.amp
passes "header" "$ampc" -o my-net.h my-net.amp
passes "the same header for a GPU" "$ampc" --target=sm_90 --emit=header -o gpu.h my-net.amp
same "the same header for a GPU" my-net.h gpu.h
cat >call.c <<'EOF'
#include <stdio.h>
#include <string.h>
#include "my-net.h"
int main(void)
{
  struct ampc_runtime *rt = NULL, *none = NULL;
  float d[2] = {1, 2}, od[2], w[4], x[2] = {1, 1}, y[2];
  uint8_t u[2] = {3, 250}, ou[2], b[2] = {0, 1}, ob[2];
  int64_t k[2] = {-5, (int64_t)1 << 60}, ok[2];
  uint16_t h[2] = {0x3c00, 0xc000}, oh[2];
  int32_t i = -7, oi;
  if (my_net_open("cpu", "gone.safetensors", NULL, &none) != 3 || none) return 1;
  if (!strstr(my_net_error(), "gone.safetensors")) return 2;
  if (my_net_open("cpu", NULL, ".", &rt)) return puts(my_net_error()), 3;
  if (my_net_open("cpu", NULL, ".", NULL) != 2 || !*my_net_error()) return 20;
  if (my_net_open_(NULL, d, u, k, h, b, &i, od, ou, ok, oh, ob, &oi) != 2) return 21;
  if (my_net_open_(rt, NULL, u, k, h, b, &i, od, ou, ok, oh, ob, &oi) != 2) return 22;
  if (!strstr(my_net_error(), "argument double is NULL")) return puts(my_net_error()), 23;
  if (my_net_open_(rt, d, u, k, h, b, &i, od, ou, ok, oh, ob, NULL) != 2) return 24;
  if (my_net_open_(rt, d, u, k, h, b, &i, od, ou, ok, oh, ob, &oi)) return 4;
  if (od[0] != 2 || od[1] != 3 || memcmp(u, ou, 2) || memcmp(k, ok, 16) || memcmp(h, oh, 4) ||
      memcmp(b, ob, 2) || oi != i)
    return 5;
  if (my_net_weights(rt, w) || w[0] != 1 || w[3] != 4) return 6;
  if (my_net_apply(rt, x, y) || y[0] != 3.5f || y[1] != 7) return 7;
  x[0] = -1;
  if (my_net_apply(rt, x, y) || y[0] != 1.5f || y[1] != 1) return 8;
  if (!my_net_program()) return 9;
  uint16_t half[2], bf16[2];
  if (my_net_declared(rt, x, y, half, bf16) || y[0] != 1.5f || y[1] != 1) return 12;
  if (half[0] != 0x3e00 || half[1] != 0x3c00 || bf16[0] != 0x3fc0 || bf16[1] != 0x3f80) return 13;
  float first[2], second[2];
  if (my_net_draw(rt, first) || my_net_draw(rt, second)) return 10;
  if (first[0] == second[0] || first[1] == second[1] || first[0] == first[1]) return 11;
  my_net_close(rt);
  my_net_close(NULL);
  return 0;
}
EOF
line=$("$ampc" --build-line --library --target=cpu -o my-net.c my-net.amp)
passes "library: compiles without a warning" sh -c "$line -Wall -Werror"
libraries="-L$(dirname "$ampc") -lampcrt -lz -ldnnl -lgomp -ljansson -lxxhash -lpthread -ldl -lm"
# shellcheck disable=SC2086 # words
passes "C" cc -std=c11 -Wall -Wextra -Werror -pedantic -I. -o call call.c my-net.o $libraries
passes "called from C" ./call
if command -v g++ >/dev/null; then
  # shellcheck disable=SC2086
  passes "C++" g++ -Wall -Wextra -Werror -x c++ -I. -o callpp call.c -x none my-net.o $libraries
  passes "called from C++" ./callpp
fi

# ---- indices out of range ------------------------------------------------------------
cat >words.amp <<'EOF'
model net = Embedding(6, 2) { load("rows.safetensors") }
infer rows(ids: i32[2, 3]) { return net(ids) }
infer row(id: u8[]) { return net(id) }
EOF
printf 'weight F32 [6,2] 0 1 2 3 4 5 6 7 8 9 10 11\n' | "$source_dir/tests/cli/weights.py" rows.safetensors
cat >words_call.c <<'EOF'
#include <stdio.h>
#include <string.h>
#include "words.h"
int main(void)
{
  struct ampc_runtime *rt = NULL;
  int32_t ids[6] = {0, 5, 1, 2, 3, 4};
  uint8_t id = 6;
  float y[12];
  if (words_open("cpu", NULL, ".", &rt)) return puts(words_error()), 1;
  if (words_rows(rt, ids, y) || y[2] != 10 || y[11] != 9) return 2;
  ids[5] = 6;
  if (words_rows(rt, ids, y) != 2 || !strstr(words_error(), "argument ids: element [1, 2] is 6, expected 0 to 5 (rows of "
      "embedding, words.amp:2)")) return puts(words_error()), 3;
  ids[5] = 0; ids[1] = -1;
  if (words_rows(rt, ids, y) != 2 || !strstr(words_error(), "element [0, 1] is -1")) return puts(words_error()), 4;
  if (words_row(rt, &id, y) != 2 || !strstr(words_error(), "argument id is 6, expected")) return puts(words_error()), 5;
  words_close(rt);
  return 0;
}
EOF
passes "words: header" "$ampc" -o words.h words.amp
line=$("$ampc" --build-line --library --target=cpu -o words.c words.amp)
passes "words: library" "$ampc" --library --target=cpu -o words.c words.amp
passes "words: compiles" sh -c "$line"
# shellcheck disable=SC2086 # words
passes "words: C" cc -std=c11 -I. -o words words_call.c words.o $libraries
passes "words: refused where they are none" ./words

echo 'edited' >>my-net.h
refuses "an edited header stays" 3 'my-net.h' "$ampc" -o my-net.h my-net.amp
refuses "--build-line of a header" 2 'needs CUDA or C output' "$ampc" --build-line -o my.h my-net.amp
refuses "--build-line of an emitted file" 2 'ampc JOB.amp --build-line -o my-net.cu' "$ampc" --build-line my-net.cu
[ $failures -eq 0 ]
