#!/bin/bash
# iris.sh AMPC AMP: examples/iris learns the species from a CSV file with names, and its checkpoint
# keeps what the training part has taught: means, deviations and the names of the classes. `amp infer`
# and a library in C give the same scores, also for a file with a single flower. An emitted program
# and a resumed run write the same bytes.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
from=$(realpath "$(dirname "$0")/../../examples/iris")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$from"/iris.amp "$from"/iris.csv .
infer() { "$amp" infer -q --device cpu --weights iris.safetensors "$@"; }

"$amp" train -q --json --device cpu --save iris.safetensors iris.amp | python3 -c '
import json, sys
told = [line["metrics"] for line in map(json.loads, sys.stdin) if line["event"] == "eval"][-1]
print("accuracy", told["acc"])
sys.exit(told["acc"] < 0.9)'

# The statistics are those of the training part, which an infer block without a net prints.
cat >part.amp <<'JOB'
const columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
data all(part) {
  return csv("iris.csv", columns, part=part, part_seed=1),
         csv("iris.csv", "species", classes=true, part=part, part_seed=1, stratify=true)
}
infer same(x: f32[6, 4], y: i64[6]) { return cat([x, y.unsqueeze(1).to(f32)], dim=1) }
JOB
"$amp" infer -q --device cpu --data 'all([0.0, 0.8])' part.amp >train.txt
"$amp" infer -q --device cpu --data 'all([0.8, 1.0])' part.amp >eval.txt
python3 - <<'PY'
import csv, json, math, statistics, struct
rows = lambda name: [tuple(map(float, line.split())) for line in open(name)]
train, rest = rows("train.txt"), rows("eval.txt")
names = ["setosa", "versicolor", "virginica"]
all = [tuple(map(float, r[:4])) + (float(names.index(r[4])),) for r in list(csv.reader(open("iris.csv")))[1:]]
near = lambda a: sorted(tuple(round(v, 4) for v in r) for r in a)
assert near(train + rest) == near(all), "the parts are not the whole"
assert [sum(r[4] == c for r in train) for c in range(3)] == [40, 40, 40], "not stratified"
bytes = open("iris.safetensors", "rb").read()
size = struct.unpack("<Q", bytes[:8])[0]
head = json.loads(bytes[8:8 + size])
assert head["__metadata__"]["ampc.classes"].split() == names, head["__metadata__"]
begin, end = head["0.statistics"]["data_offsets"]
kept = struct.unpack("<8f", bytes[8 + size + begin:8 + size + end])
for i in range(4):
    column = [r[i] for r in train]
    for has, want in (kept[i], statistics.fmean(column)), (kept[4 + i], statistics.pstdev(column)):
        assert math.isclose(has, want, rel_tol=2e-6), (i, has, want)
PY

infer --block species --data 'iris([0.0, 1.0])' iris.amp >species
cut -d, -f5 iris.csv | tail -n +2 | paste -d' ' - species | awk '$1 == $2 { n++ } END { print n " right"; exit n < 135 }'
infer --block scores --data 'iris([0.0, 1.0])' iris.amp >scores
sed -n '1p;100p' iris.csv >one.csv
infer --block scores --data 'csv("one.csv", columns)' iris.amp | cmp - <(sed -n 99p scores)
infer --block scores --top 1 --data 'csv("one.csv", columns)' iris.amp | grep -q '  1  versicolor$'

printf ':train 210\n:infer species csv("one.csv", columns)\n' | "$amp" repl iris.amp 2>/dev/null | tail -n 1 | grep -qx versicolor

# ---- the same in C --------------------------------------------------------------------------------
"$ampc" --library --target=cpu -o iris.c iris.amp
"$ampc" --library -o iris.h iris.amp
cat >call.c <<'C'
#include <stdio.h>
#include <string.h>
#include "iris.h"
int main(void)
{
  struct ampc_runtime *rt;
  float x[4], y[3];
  if (iris_open("cpu", "iris.safetensors", NULL, &rt)) return puts(iris_error()), 1;
  if (strcmp(iris_classes[2], "virginica")) return 2;
  while (scanf("%f,%f,%f,%f,%*s", &x[0], &x[1], &x[2], &x[3]) == 4) {
    if (iris_scores(rt, x, y)) return puts(iris_error()), 3;
    printf("%.9g %.9g %.9g\n", (double)y[0], (double)y[1], (double)y[2]);
  }
  iris_close(rt);
}
C
eval "$("$ampc" --library --target=cpu --build-line -o iris.c iris.amp | tail -n 1)"
cc -std=c11 -Wall -Werror -o call call.c iris.o -L"$(dirname "$ampc")" -lampcrt -lz -ldnnl -lgomp -ljansson -lxxhash \
  -lpthread -ldl -lm
tail -n +2 iris.csv | ./call | cmp - scores

# ---- the same bytes -------------------------------------------------------------------------------
"$ampc" --target=cpu --poison -o emitted.c iris.amp
eval "$("$ampc" --target=cpu --poison --build-line -o emitted.c iris.amp | tail -n 1)"
./emitted -q --save emitted.safetensors >/dev/null
cmp emitted.safetensors iris.safetensors
"$amp" train -q --device cpu --steps 100 --save half.safetensors iris.amp >/dev/null
sed -i 's/4.9,3.0/9.4,3.0/' iris.csv # a resumed run keeps its statistics, whatever the file says now
"$amp" train -q --device cpu --steps 101 --resume half.safetensors --save more.safetensors iris.amp >/dev/null
python3 - <<'PY'
def kept(name):
    import json, struct
    bytes = open(name, "rb").read()
    size = struct.unpack("<Q", bytes[:8])[0]
    begin, end = json.loads(bytes[8:8 + size])["0.statistics"]["data_offsets"]
    return bytes[8 + size + begin:8 + size + end]
assert kept("half.safetensors") == kept("more.safetensors"), "the statistics have changed"
PY
sed -i 's/9.4,3.0/4.9,3.0/' iris.csv
sed -i.kept 's/setosa/zetosa/' iris.csv # which changes the numbers of all classes
{ "$amp" train -q --device cpu --resume half.safetensors iris.amp 2>&1 || true; } |
  grep -q 'half.safetensors has the class `setosa` where iris.amp has `versicolor`: list the names in the order of the checkpoint'
mv iris.csv.kept iris.csv
"$amp" train -q --device cpu --resume half.safetensors --save rest.safetensors iris.amp >/dev/null
cmp rest.safetensors iris.safetensors

# ---- another part ---------------------------------------------------------------------------------
sed 's/part_seed=1/part_seed=2/g' iris.amp >seed.amp
told='warning: iris.safetensors was trained on samples of part=\[0, 0.8\], part_seed=1, which differ from'
for job in seed iris; do
  for run in "eval" "train -q --steps 251"; do
    "$amp" $run --device cpu --resume iris.safetensors $job.amp 2>&1 >/dev/null | grep -c "$told" >>told || true
  done
done
[ "$(tr '\n' ' ' <told)" = "1 1 0 0 " ]

# ---- a copy, and given statistics -----------------------------------------------------------------
{ sed '/^train/,$d' iris.amp && cat; } >copy.amp <<'JOB'
model target = copy(net)
train x, y in iris([0.0, 0.8]) with batch=16, epochs=1 {
  follow(target, net, decay=0.9, buffers=true)
  given = functional_call(net, [["0.statistics", stack([2.0 * ones(4), 3.0 * ones(4)])]], x)
  metric apart = (target[0](x) - net[0](x)).abs().max()
  metric off = (given - net[3](net[2](net[1]((x - 2.0) / 3.0)))).abs().max()
  minimize cross_entropy(net(x), y) + mse_loss(net(x), target(x)) with opt
}
eval x, y in iris([0.8, 1.0]) with batch=30 { metric differs = (target[0](x) - net[0](x)).abs().max() }
JOB
"$amp" train --json --device cpu copy.amp 2>/dev/null | python3 -c '
import json, sys
told = [line["metrics"] for line in map(json.loads, sys.stdin) if "metrics" in line]
assert {name for m in told for name in m} >= {"apart", "off", "differs"}, told
assert all(m[name] < 1e-6 for m in told for name in m if name != "loss"), told'

for precision in f16 bf16; do
  "$amp" train -q --device cpu --set precision=$precision iris.amp | awk 'BEGIN { bad = 1 } /eval acc/ { print; bad = $3 < 0.9 } END { exit bad }'
done
echo "the same scores in C, the same bytes emitted and resumed"
