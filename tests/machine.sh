#!/usr/bin/env bash
# machine.sh BUILD ISA: runs the tests of numbers like an older CPU. oneDNN uses no instruction set beyond ISA, and
# libm uses no FMA, so both sum and round in another order.
set -euo pipefail
cd "$(dirname "$0")/.."
export ONEDNN_MAX_CPU_ISA=$2 GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA
ctest --test-dir "$1" -R '^(torch|repl|selftest|models)\.' -LE 'nightly|weekly|gpu' -j "$(nproc)" --output-on-failure --no-tests=error
