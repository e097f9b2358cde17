/* What the mock of NVRTC puts into an image and the mock of the driver looks for there. An image is
 * a shared library of this machine: an ELF file, as a cubin is one. */
#pragma once

typedef struct MockKernel { /* `mock_kernels` of an image; the last one has no name */
  const char *name;
  void (*run)(void *const *arguments, unsigned block, unsigned n_blocks);
  unsigned n_arguments;
  const unsigned char *align; /* of what each argument points to, or A_NUMBER */
} MockKernel;
enum { A_NUMBER = 0 }; /* an argument of 8 bytes that is no pointer */
/* and `const int mock_arch[3]`: 90 for sm_90; 1 if it stands for PTX; the version of its NVRTC */

/* The kernels that the runtime brings as PTX text; NULL: `image` is not that text. */
const MockKernel *mock_ptx_kernels(const void *image);
