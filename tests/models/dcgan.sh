#!/usr/bin/env bash
# A DCGAN learns to draw clothes. The demo's CNN, trained here on real images, must find at least
# eight of the ten classes in 1,000 samples, each in at least ten samples.
#   dcgan.sh AMP [OPTION...]                    options of the DCGAN's training
set -euo pipefail
amp=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$amp" train --device cpu --set precision=bf16 --save "$work/cnn.st" -D EPOCHS=2 models/fashion_mnist/fashion_mnist.amp
"$amp" train --device cpu --set precision=bf16 --save "$work/gan.st" --log 400 "$@" models/dcgan/dcgan.amp
cat >"$work/classify.amp" <<'EOF'
import "fashion_mnist.amp"
model net = CNN()
infer classify(x: f32[500, 1, 28, 28]) -> f32[500, 10] {    # -1 to 1, the range of the generator's tanh
  return softmax(net(((x.squeeze(1) + 1.0) / 2.0 - 0.28604) / 0.35302), dim=-1)
}
EOF
"$amp" infer -q --device cpu -D BATCH=1000 --weights "$work/gan.st" --output "$work/samples.npy" models/dcgan/dcgan.amp
"$amp" infer -q --device cpu -I models/fashion_mnist --weights "$work/cnn.st" --input "$work/samples.npy" --top 1 "$work/classify.amp" |
  awk '/^  / { n[$2]++ }
       END { for (i = 0; i < 10; i++) { printf "%s%d", i ? ", " : "samples of the classes 0 to 9: ", n[i]; found += n[i] >= 10 }
             print "; " found " of 10 classes (at least 8)"; exit found < 8 }'
