#!/usr/bin/env bash
# Runs a command if there is a GPU. Without a GPU or without the command, the test is skipped (77).
PATH=$PATH:/usr/local/cuda/bin
nvidia-smi -L 2>/dev/null | grep -q GPU || exit 77
command -v "$1" >/dev/null || exit 77
exec "$@"
