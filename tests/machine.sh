#!/usr/bin/env bash
# machine.sh BUILD ISA: the tests that compare numbers, as on a machine whose oneDNN goes no further
# than ISA and whose libm has no FMA. Both sum in another order there.
set -euo pipefail
cd "$(dirname "$0")/.."
export ONEDNN_MAX_CPU_ISA=$2 GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA
ctest --test-dir "$1" -R '^(torch|repl|selftest|models)\.' -LE 'nightly|weekly|gpu' -j "$(nproc)" --output-on-failure --no-tests=error
