/* The header of a safetensors file: which tensors it has, and where. */
#pragma once
#include "array.h"

/* `text`, `size` bytes of JSON, says where tensors lie in `most` bytes that follow it; finds the
 * one called `key`. All of them are checked: sizes fit shapes, none overlaps another or lies
 * outside. *out_at is where its bytes begin. */
ampc_status tensors_find(const char *path, const char *text, int64_t size, int64_t most,
                         const char *key, ampc_array *out, int64_t *out_at);
