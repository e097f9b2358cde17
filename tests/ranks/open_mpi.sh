#!/usr/bin/env bash
# Builds the library for ranks against Open MPI, in a folder of its own, and runs the tests of ranks with it. Debian's
# openmpi-bin and libopenmpi-dev can be installed beside MPICH.
#   open_mpi.sh CHECK
set -euo pipefail
here=$(dirname "$(realpath "$0")")
if ! command -v mpicc.openmpi mpirun.openmpi >/dev/null; then
  echo "skipped: no mpicc.openmpi and mpirun.openmpi"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake -S "$here/../.." -B "$work" -G Ninja --log-level=WARNING -DMPI_C_COMPILER=mpicc.openmpi \
  -DMPIEXEC_EXECUTABLE="$(command -v mpirun.openmpi)" >/dev/null
cmake --build "$work" --target ampcmpi short_mpi
for part in calls faults; do
  "$here/run.sh" mpirun.openmpi "$1" "$work/libampcmpi.so" "$work/tests/libshort_mpi.so" $part
done
