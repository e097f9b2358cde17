#!/usr/bin/env bash
# Neovim as a client of `amp lsp`: nvim.lua. Skipped without Neovim.
#   nvim.sh AMP
set -euo pipefail
command -v nvim >/dev/null || { echo "SKIPPED: nvim is not installed"; exit 77; }
here=$(realpath "$(dirname "$0")")
AMP=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
JOB=$dir/job.amp
cat >"$JOB" <<'AMP'
precision f16
infer f(x: f16[2, 8]) {
  a = linear(x, zeros(8, 8))
  s = "é😀"; h = rel(a)
  return h
}
AMP
export AMP JOB
timeout 60 nvim --headless -u NONE -i NONE -n -c "luafile $here/nvim.lua" 2>"$dir/log" || { cat "$dir/log"; exit 1; }
! grep FAILED "$dir/log"
echo ok
