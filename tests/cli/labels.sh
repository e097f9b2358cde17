#!/usr/bin/env bash
# Labels whose order is probably a mistake: `amp train` and `amp eval` warn before the run, once, and go on.
#   labels.sh AMPC AMP
set -u
amp=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

data() { # data FORMULA: 320 samples; an awk formula of the sample's number makes the label
  awk "BEGIN { print \"x,y\"; for (i = 0; i < 320; i++) print (i % 7) / 7 \",\" int($1) }" >points.csv
}
job() { # job SETTINGS
  cat >job.amp <<JOB
data points(a: float, b: float) {
  return csv("points.csv", ["x"], part=[a, b]), csv("points.csv", "y", dtype=i64, part=[a, b])
}
model net = Linear(1, 4)
optimizer opt = SGD(net, lr=0.1)
train x, y in points(0.0, 0.75) with batch=16, save="net.safetensors"$1 { minimize cross_entropy(net(x), y) with opt }
eval x, y in points(0.75, 1.0) with batch=16 { metric acc = accuracy(net(x), y) }
JOB
}
run=train
warns() { # warns WHAT [TEXT..]: exactly these warnings
  local what=$1 text
  shift
  "$amp" $run job.amp >out 2>err || { echo "FAIL $what: status $?"; failed=1; }
  for text; do grep -qF "warning: $text" err || { echo "FAIL $what: no warning: $text"; failed=1; }; done
  [ "$(grep -c '^warning' err)" -eq $# ] || { echo "FAIL $what: not $# warnings"; cat err; failed=1; }
}
one="points.csv: all 80 labels that block \`eval\` reads are 3; \`part_seed\` with \`stratify\` gives each part all classes"
sorted="points.csv: the labels are sorted, and block \`train\` has shuffle=false"

data "i / 80"
job ", shuffle=false"
warns "sorted, no shuffle" "$sorted" "$one"
job ""
warns "sorted, shuffled" "$one"
run="eval --resume net.safetensors"
warns "amp eval" "$one"
run=train
data "i % 4"
job ", shuffle=false"
warns "mixed"
data "(i / 8) % 4"
warns "runs of classes that are not sorted"
data 1
warns "one class" "points.csv: all 240 labels that block \`train\` reads are 1" \
  "points.csv: all 80 labels that block \`eval\` reads are 1"
exit "$failed"
