/* The contents of an image, which the mock of NVRTC writes and the mock of the driver reads. An
 * image is a shared library of this machine. Like a cubin, it is an ELF file. */
#pragma once

typedef struct MockKernel { /* elements of `mock_kernels`; the last one has no name */
  const char *name;
  void (*run)(void *const *arguments, unsigned block, unsigned n_blocks);
  unsigned n_arguments;
  const unsigned char *align; /* alignment of each argument's memory, or A_NUMBER */
} MockKernel;
enum { A_NUMBER = 0 }; /* an argument of 8 bytes that is not a pointer */
/* An image also has `const int mock_arch[3]`: 90 for sm_90; 1 if it is PTX; NVRTC's version. */

/* Returns the kernels of a PTX text of the runtime; NULL if `image` is not such a text. */
const MockKernel *mock_ptx_kernels(const void *image);
