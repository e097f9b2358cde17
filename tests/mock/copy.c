/* Copies and fills. The host must not access pinned memory between the call and the copy. If a
 * source has changed, the program ends; a destination holds nonsense until the copy runs. Pageable
 * memory is read during the call. A copy to pageable memory waits for the device. */
#include "mock.h"
#include <stdlib.h>
#include <string.h>

enum { NONSENSE = 0xeb };

static uint64_t checksum(const void *bytes, size_t n)
{
  const unsigned char *b = bytes;
  uint64_t sum = n, word;
  for (; n >= 8; n -= 8, b += 8) {
    memcpy(&word, b, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  while (n--) sum = (sum ^ *b++) * 0x9e3779b97f4a7c15u;
  return sum;
}

static void in_queued(Op *op)
{
  const void *from = (const void *)op->as.copy.from;
  if (!op->as.copy.staged) op->as.copy.checksum = checksum(from, op->as.copy.bytes);
}

static CuResult run_in(const Op *op)
{
  const void *from = op->as.copy.staged ? op->as.copy.staged : (const void *)op->as.copy.from;
  size_t n = op->as.copy.bytes;
  void *to = mock_device_bytes(op->as.copy.to, n, op->label);
  if (!to) return MOCK_ILLEGAL_ADDRESS;
  if (!op->as.copy.staged &&
      (!mock_is_pinned(from, n) || checksum(from, n) != op->as.copy.checksum))
    mock_misuse("%s: pinned memory changed before its %zu bytes were copied", op->label, n);
  memcpy(to, from, n);
  free(op->as.copy.staged);
  return CUDA_SUCCESS;
}

CuResult cuMemcpyHtoDAsync_v2(CuPointer to, const void *from, size_t bytes, CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  mock_add(COUNT_copies, 1);
  if (!mock_device_bytes(to, bytes, "copy to the device")) return MOCK_INVALID_VALUE;
  Op op = {.run = run_in,
           .queued = in_queued,
           .label = "copy to the device",
           .as.copy = {.to = to, .from = (uint64_t)from, .bytes = bytes}};
  if (!mock_is_pinned(from, bytes)) {
    CuResult status = mock_not_while_capturing("copy from pageable memory");
    if (status) return status;
    mock_add(COUNT_pageable_copies, 1);
    op.as.copy.staged = malloc(bytes + 1);
    if (!op.as.copy.staged) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(op.as.copy.staged, from, bytes);
  }
  return mock_queue(stream, &op);
}

static void out_queued(Op *op)
{
  memset((void *)op->as.copy.to, NONSENSE, op->as.copy.bytes);
}

static CuResult run_out(const Op *op)
{
  const void *from = mock_device_bytes(op->as.copy.from, op->as.copy.bytes, op->label);
  if (!from) return MOCK_ILLEGAL_ADDRESS;
  memcpy((void *)op->as.copy.to, from, op->as.copy.bytes);
  return CUDA_SUCCESS;
}

CuResult cuMemcpyDtoHAsync_v2(void *to, CuPointer from, size_t bytes, CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  mock_add(COUNT_copies, 1);
  if (!mock_device_bytes(from, bytes, "copy to the host")) return MOCK_INVALID_VALUE;
  bool pinned = mock_is_pinned(to, bytes);
  CuResult status = pinned ? CUDA_SUCCESS : mock_not_while_capturing("copy to pageable memory");
  if (status) return status;
  Op op = {.run = run_out,
           .queued = out_queued,
           .label = "copy to the host",
           .as.copy = {.to = (uint64_t)to, .from = from, .bytes = bytes}};
  status = mock_queue(stream, &op);
  if (status || pinned) return status;
  mock_add(COUNT_pageable_copies, 1);
  return mock_drain();
}

static CuResult run_inside(const Op *op)
{
  size_t n = op->as.copy.bytes;
  const unsigned char *from = mock_device_bytes(op->as.copy.from, n, op->label);
  unsigned char *to = mock_device_bytes(op->as.copy.to, n, op->label);
  if (!from || !to) return MOCK_ILLEGAL_ADDRESS;
  if (n && from < to + n && to < from + n)
    mock_misuse("%s: the %zu bytes overlap: in which order is not known", op->label, n);
  memcpy(to, from, n);
  return CUDA_SUCCESS;
}

CuResult cuMemcpyDtoDAsync_v2(CuPointer to, CuPointer from, size_t bytes, CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  mock_add(COUNT_copies, 1);
  if (!mock_device_bytes(to, bytes, "copy") || !mock_device_bytes(from, bytes, "copy"))
    return MOCK_INVALID_VALUE;
  Op op = {.run = run_inside,
           .label = "copy on the device",
           .of_step = true,
           .as.copy = {.to = to, .from = from, .bytes = bytes}};
  return mock_queue(stream, &op);
}

static size_t fill_bytes(const Op *op)
{
  return op->as.fill.pitch * (op->as.fill.height - 1) + op->as.fill.width;
}

static CuResult run_fill(const Op *op)
{
  char *row = mock_device_bytes(op->as.fill.to, fill_bytes(op), op->label);
  if (!row) return MOCK_ILLEGAL_ADDRESS;
  for (size_t k = 0; k < op->as.fill.height; k++, row += op->as.fill.pitch)
    for (size_t i = 0; i < op->as.fill.width; i += op->as.fill.each)
      memcpy(row + i, &op->as.fill.value, op->as.fill.each);
  return CUDA_SUCCESS;
}

/* Fills rows with the low `each` bytes of the value. */
static CuResult fill(Op op, CuStream stream)
{
  MOCK_ENTER(NEEDS_CONTEXT);
  op.run = run_fill;
  op.label = "fill";
  op.of_step = true;
  if (op.as.fill.to % op.as.fill.each || !op.as.fill.height || !op.as.fill.width ||
      (op.as.fill.height > 1 && op.as.fill.pitch < op.as.fill.width) ||
      !mock_device_bytes(op.as.fill.to, fill_bytes(&op), "fill"))
    return MOCK_INVALID_VALUE;
  return mock_queue(stream, &op);
}

CuResult cuMemsetD8Async(CuPointer to, unsigned char value, size_t bytes, CuStream stream)
{
  return fill((Op){.as.fill = {to, bytes, bytes, 1, 1, value}}, stream);
}

CuResult cuMemsetD2D8Async(CuPointer to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CuStream stream)
{
  return fill((Op){.as.fill = {to, pitch, width, height, 1, value}}, stream);
}

CuResult cuMemsetD32Async(CuPointer to, unsigned value, size_t n, CuStream stream)
{
  return fill((Op){.as.fill = {to, n * sizeof value, n * sizeof value, 1, sizeof value, value}},
              stream);
}
