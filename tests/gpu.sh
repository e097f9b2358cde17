#!/usr/bin/env bash
# Runs a command where there is a GPU; elsewhere, and where the command is not installed, the test is
# skipped (77).
PATH=$PATH:/usr/local/cuda/bin
nvidia-smi -L 2>/dev/null | grep -q GPU || exit 77
command -v "$1" >/dev/null || exit 77
exec "$@"
