/* Translates input files into the calls of the language that read them, so that every format of the
 * loader can be used, with its checks. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "compiler/base/user_text.h"
#include "infer.h"
#include "runtime/data/formats/folder.h"
#include "common/number.h"
#include "runtime/plan/types.h"

typedef struct Suffix { /* the end of a file's name, and the source that reads such files */
  const char *end, *source;
  bool key; /* FILE:KEY names one array of several */
} Suffix;

static const Suffix suffixes[] = {
    {".npy", "npy", false},   {".npy.gz", "npy", false},
    {".npz", "npz", true},    {".safetensors", "safetensors", true},
    {"-ubyte", "idx", false}, {"-ubyte.gz", "idx", false},
    {".idx", "idx", false},   {".idx.gz", "idx", false},
};
enum { N_SUFFIXES = sizeof suffixes / sizeof *suffixes };

static bool ends(const char *text, size_t n, const char *end)
{
  size_t m = strlen(end);
  return n > m && memcmp(text + n - m, end, m) == 0;
}

/* Returns the absolute path: data paths in a job are relative to its folder, data paths on a
 * command line to the working directory. */
static const char *absolute(Arena *arena, const char *file)
{
  char here[PATH_MAX];
  if (file[0] == '/' || !realpath(".", here)) return file;
  return arena_printf(arena, "%s/%s", here, file);
}

/* ---- pictures ---- */

static bool is_folder(const char *file)
{
  struct stat info;
  return stat(file, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Whether the folder itself contains pictures, instead of a folder per class. */
static bool holds_pictures(const char *folder)
{
  DIR *d = opendir(folder);
  bool found = false;
  for (struct dirent *e; d && !found && (e = readdir(d));) found = folder_is_picture(e->d_name);
  if (d) closedir(d);
  return found;
}

/* Returns the call that reads pictures. They are prepared as for the evaluation of classifiers:
 * turned upright (Exif), scaled to 8/7 of the size (256 for 224), and cropped to the centre. Pass
 * lower defines _height and _width as the sizes of the argument. */
static const char *picture_call(Arena *arena, const char *file, const Param *p)
{
  const TypeExpr *t = &p->type;
  if (!t->name || strcmp(t->name, "u8") != 0 || t->n_dims != 4)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--input %s: pictures are u8[N, 3, height, width]; `%s` has another type",
                     file, p->name.text),
           NULL;
  return arena_printf(
      arena, "images(%s, [_height, _width], resize=max(_height, _width) * 8 // 7, exif=true%s)",
      string_literal(arena, absolute(arena, file)),
      holds_pictures(file) ? ", classes=[\".\"]" : "");
}

/* Returns the call that makes an argument without axes: `tensor(0.5, dtype=f32)`; NULL after a
 * failure. */
static const char *number_call(Arena *arena, const char *text, const Param *p)
{
  ampc_dtype type = p->type.name ? ampc_dtype_by(p->type.name) : AMPC_DTYPE_COUNT;
  if (!p->type.tensor || type == AMPC_DTYPE_COUNT) return "0"; /* pass lower refuses the argument */
  bool real = ampc_is_float(type), truth = type == AMPC_BOOL;
  double v;
  int64_t whole;
  if (truth && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
    return arena_printf(arena, "tensor(%s, dtype=bool)", text);
  if (real && ampc_read_real(text, &v))
    return arena_printf(arena, "tensor(%.17g, dtype=%s)", v, p->type.name);
  if (!real && !truth && ampc_read_whole(text, &whole))
    return arena_printf(arena, "tensor(%lld, dtype=%s)", (long long)whole, p->type.name);
  return ampc_fail(AMPC_BAD_USAGE, "--input %s=%s: `%s` is %s[], %s, as --input %s=%s",
                   p->name.text, text, p->name.text, p->type.name,
                   truth  ? "true or false"
                   : real ? "a number"
                          : "a whole number",
                   p->name.text,
                   truth  ? "true"
                   : real ? "0.5"
                          : "3"),
         NULL;
}

/* Returns the call that reads a file: `npy("/tmp/x.npy")`; NULL after a failure. */
static const char *call_of(Arena *arena, const char *file, const Param *p)
{
  if (!p->type.n_dims) return number_call(arena, file, p);
  const char *slash = strrchr(file, '/');
  if (folder_is_picture(slash ? slash + 1 : file) || is_folder(file))
    return picture_call(arena, file, p);
  const char *colon = strrchr(file, ':');
  for (int i = 0; i < N_SUFFIXES; i++) {
    const Suffix *s = &suffixes[i];
    size_t n = s->key && colon ? (size_t)(colon - file) : strlen(file);
    if (!ends(file, n, s->end)) continue;
    if (s->key && (!colon || !colon[1]))
      return ampc_fail(AMPC_BAD_USAGE,
                       "--input %s: the file has several arrays; name one: --input %s:KEY", file,
                       file),
             NULL;
    const char *path = absolute(arena, arena_strndup(arena, file, n));
    const char *key = s->key ? arena_printf(arena, ", %s", string_literal(arena, colon + 1)) : "";
    return arena_printf(arena, "%s(%s%s)", s->source, string_literal(arena, path), key);
  }
  if (ends(file, strlen(file), ".csv"))
    return ampc_fail(AMPC_BAD_USAGE,
                     "--input %s: which columns? --data 'csv(\"%s\", [\"COLUMN\", ..])' names them",
                     file, file),
           NULL;
  ampc_fail(AMPC_BAD_USAGE,
            "--input %s: unknown type of file; expected .jpg, .png, a folder of them, .npy, "
            ".npz:KEY, .safetensors:KEY, -ubyte or .idx; --data takes any source",
            file);
  return NULL;
}

/* ---- which block ---- */

const Function *infer_choose_block(Compile *c, const char *wanted)
{
  const Function *found = NULL;
  const char *names = "";
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->ast->n; i++) {
    if (c->ast->at[i]->kind != DECL_infer) continue;
    const Function *f = &c->ast->at[i]->as.function;
    names = arena_printf(c->arena, "%s%s%s", names, n++ ? ", " : "", f->name.text);
    if (!wanted || strcmp(f->name.text, wanted) == 0) found = f;
  }
  const char *job = c->options.input;
  if (!n)
    ampc_fail(AMPC_BAD_USAGE, "%s has no infer block", job);
  else if (!found)
    ampc_fail(AMPC_BAD_USAGE, "%s has no infer block %s; it has %s", job, wanted, names);
  else if (!wanted && n > 1)
    ampc_fail(AMPC_BAD_USAGE, "%s has several infer blocks: %s; say which with --block", job,
              names);
  else
    return found;
  return NULL;
}

/* ---- its arguments ---- */

/* Returns the arguments' names: "image, mask". */
static const char *argument_names(Arena *arena, const Function *block)
{
  const char *text = "";
  for (uint32_t i = 0; i < block->params.n; i++)
    text = arena_printf(arena, "%s%s%s", text, i ? ", " : "", block->params.at[i].name.text);
  return text;
}

/* Returns the input for an argument; NULL if none is given. */
static const InferInput *input_for(const InferCommand *cmd, const char *name)
{
  for (uint32_t i = 0; i < cmd->n_inputs; i++)
    if (!cmd->inputs[i].name || strcmp(cmd->inputs[i].name, name) == 0) return &cmd->inputs[i];
  return NULL;
}

static bool names_fit(Compile *c, const InferCommand *cmd, const Function *block)
{
  const char *name = block->name.text, *arguments = argument_names(c->arena, block);
  for (uint32_t i = 0; i < cmd->n_inputs; i++) {
    const InferInput *in = &cmd->inputs[i];
    bool known = !in->name && block->params.n == 1;
    for (uint32_t k = 0; k < block->params.n && in->name; k++)
      known = known || strcmp(block->params.at[k].name.text, in->name) == 0;
    if (known) continue;
    if (in->name)
      ampc_fail(AMPC_BAD_USAGE, "infer `%s` has no argument %s; it has %s", name, in->name,
                arguments);
    else
      ampc_fail(AMPC_BAD_USAGE, "--input %s: infer `%s` takes %s: write NAME=FILE for each",
                in->file, name, arguments);
    return false;
  }
  return true;
}

bool infer_choose_inputs(Compile *c, const InferCommand *cmd, const Function *block)
{
  uint32_t n = block->params.n;
  const char **calls = arena_array(c->arena, const char *, n + 1);
  c->options.infer_inputs = calls;
  if (!n) {
    if (!cmd->n_inputs && !cmd->data) return true;
    ampc_fail(AMPC_BAD_USAGE, "infer `%s` takes no arguments", block->name.text);
    return false;
  }
  if (cmd->data) {
    calls[0] = cmd->data;
    c->options.n_infer_inputs = 1;
    return true;
  }
  if (!names_fit(c, cmd, block)) return false;
  for (uint32_t i = 0; i < n; i++) {
    const char *name = block->params.at[i].name.text;
    const InferInput *in = input_for(cmd, name);
    if (!in) {
      ampc_fail(AMPC_BAD_USAGE,
                "infer `%s` takes %s: %s is missing: --input %s%sFILE, or --data CALL",
                block->name.text, argument_names(c->arena, block), name, n > 1 ? name : "",
                n > 1 ? "=" : "");
      return false;
    }
    calls[i] = call_of(c->arena, in->file, &block->params.at[i]);
    if (!calls[i]) return false;
  }
  c->options.n_infer_inputs = n;
  return true;
}
