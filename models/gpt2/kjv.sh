#!/usr/bin/env bash
# Writes the King James text as bytes, for kjv.amp. Every twentieth chapter is in kjv_val.bin, the others are in
# kjv_train.bin. The text is that of Debian's bible-kjv, which is in the public domain.
#   kjv.sh [FOLDER]
set -euo pipefail
folder=${1-.}
if ! command -v bible >/dev/null; then
  echo "kjv.sh: there is no \`bible\`; on Debian: sudo apt-get install bible-kjv" >&2
  exit 1
fi
mkdir -p "$folder"
# A line is a verse: "Ge1:1 In the beginning God created the heaven and the earth."
bible -f 'gen1:1-rev22:21' | awk -v train="$folder/kjv_train.bin" -v val="$folder/kjv_val.bin" '
  { chapter = $1; sub(/:.*/, "", chapter) }
  chapter != last { last = chapter; n++ }
  { print substr($0, length($1) + 2) > (n % 20 ? train : val) }'
wc -c "$folder/kjv_train.bin" "$folder/kjv_val.bin"
