/* The options of the training loop that each verb takes. The runtime parses their values, as it
 * does for emitted programs. */
#include "options.h"
#include "runtime/train/train_options.h"
#include <string.h>

const char *folder_of(Arena *arena, const char *path)
{
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  return slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path));
}

static int read_value(const OptionGiven *given)
{
  const char *name = given->row->also ? given->row->also : given->row->name;
  ampc_status status = ampc_train_option(name, given->value, given->into);
  if (status == AMPC_OK) return OPTIONS_GO_ON;
  return usage_error(given->program, "%s", ampc_last_error());
}

/* TAKE_who decides if a line of train_options.def becomes a row of the current table. */
#define ROW(name, letter, value, kind_, field_, help)                                              \
  {name, letter, value, help, .kind = OPTION_call, .read = read_value},
#define NO_ROW(name, letter, value, kind_, field_, help)
#define TAKE_all ROW

#define TAKE_fresh                  ROW
#define TAKE_eval                   ROW
#define TAKE_train                  ROW
#define TAKE_weights                ROW
#define AMPC_TRAIN_OPTION(who, ...) TAKE_##who(__VA_ARGS__)
const OptionRow train_options[] = {
#include "runtime/train/train_options.def"
    {0}};

#undef TAKE_fresh
#undef TAKE_train
#undef TAKE_weights
#define TAKE_fresh NO_ROW
#define TAKE_train NO_ROW
#define TAKE_weights(name, ...)                                                                    \
  {"weights",                                                                                      \
   0,                                                                                              \
   "FILE",                                                                                         \
   "the checkpoint with the weights",                                                              \
   .also = name,                                                                                   \
   .kind = OPTION_call,                                                                            \
   .read = read_value},
#define AMPC_TRAIN_OPTION(who, ...) TAKE_##who(__VA_ARGS__)
const OptionRow eval_options[] = {
#include "runtime/train/train_options.def"
    {0}};

#undef TAKE_fresh
#undef TAKE_eval
#undef TAKE_weights
#define TAKE_fresh                  ROW
#define TAKE_eval                   NO_ROW
#define TAKE_weights                NO_ROW
#define AMPC_TRAIN_OPTION(who, ...) TAKE_##who(__VA_ARGS__)
const OptionRow fresh_options[] = {
#include "runtime/train/train_options.def"
    {0}};
