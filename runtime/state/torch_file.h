/* Files of torch.save: a pickle and the bytes of the tensors. */
#pragma once
#include "safetensors.h"

/* Reads the header of an open file into the fields of a TensorFile, as if its tensors were those of
 * a safetensors file. `old`: it is no zip archive, but a sequence of pickles. The caller frees `f`,
 * also after a failure. */
ampc_status torch_file_read(const char *path, int64_t file_size, bool old, TensorFile *f);
/* Reads bytes of a tensor that is a view, from offset `begin` on. */
ampc_status torch_view_load(const TensorFile *f, int64_t begin, void *to, int64_t bytes);
