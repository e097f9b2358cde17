/* libFuzzer's entry: any bytes are a program. The front end must answer every one with messages or
 * a graph: no bad access, no undefined arithmetic, no leak, no assert, no endless elaboration.
 *
 * The first byte chooses the target and the way of messages, so that one corpus serves all. */
#include <stdlib.h>
#include "compiler/driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 1 || size > 1 << 14) return 0;
  Options options = {.input = "fuzz.amp",
                     .target = data[0] & 1 ? "cpu" : "sm_80",
                     .optimize = data[0] & 2 ? 2 : 0,
                     .color = (data[0] & 4) != 0,
                     .json_errors = (data[0] & 8) != 0,
                     .error_limit = 20};
  Compile *c = compile_create(&options);
  compile_text(c, options.input, (const char *)data + 1, size - 1);
  compile_destroy(c);
  return 0;
}
