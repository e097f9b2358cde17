/* See reserved_names.h. */
#include "reserved_names.h"
#include "runtime/plan/types.h"
#include <stdlib.h>
#include <string.h>

/* Names that a job cannot use in emitted text, in the order of strcmp: keywords of C, C++ and CUDA,
 * compiler macros, and variables of the emitter and the templates. */
static const char *const reserved[] = {"a",
                                       "alignas",
                                       "alignof",
                                       "and",
                                       "asm",
                                       "at",
                                       "auto",
                                       "b",
                                       "back",
                                       "back_value",
                                       "before",
                                       "begin",
                                       "best",
                                       "blockDim",
                                       "blockIdx",
                                       "blocks",
                                       "bool",
                                       "break",
                                       "buffer",
                                       "c",
                                       "case",
                                       "catch",
                                       "char",
                                       "class",
                                       "column",
                                       "concept",
                                       "const",
                                       "const_cast",
                                       "consteval",
                                       "constexpr",
                                       "constinit",
                                       "continue",
                                       "d",
                                       "decltype",
                                       "default",
                                       "delete",
                                       "do",
                                       "double",
                                       "dynamic_cast",
                                       "else",
                                       "end",
                                       "enum",
                                       "exchange",
                                       "explicit",
                                       "export",
                                       "extern",
                                       "factor",
                                       "false",
                                       "first",
                                       "float",
                                       "for",
                                       "found",
                                       "friend",
                                       "from",
                                       "front",
                                       "front_value",
                                       "given",
                                       "goto",
                                       "grad",
                                       "gridDim",
                                       "guess",
                                       "high",
                                       "i",
                                       "if",
                                       "image",
                                       "in_column",
                                       "in_row",
                                       "inline",
                                       "input",
                                       "int",
                                       "int64_t",
                                       "j",
                                       "k",
                                       "kept",
                                       "kernels",
                                       "lane",
                                       "last_block",
                                       "left",
                                       "less",
                                       "linux",
                                       "long",
                                       "low",
                                       "m",
                                       "main",
                                       "master",
                                       "mean",
                                       "metric",
                                       "metrics",
                                       "moment1",
                                       "moment2",
                                       "more",
                                       "mutable",
                                       "n",
                                       "namespace",
                                       "new",
                                       "noexcept",
                                       "not",
                                       "nullptr",
                                       "o",
                                       "of",
                                       "operator",
                                       "optimizer",
                                       "optimizers",
                                       "or",
                                       "outputs",
                                       "own",
                                       "p",
                                       "parameters",
                                       "params",
                                       "private",
                                       "program",
                                       "protected",
                                       "public",
                                       "q",
                                       "r",
                                       "real",
                                       "register",
                                       "reinterpret_cast",
                                       "requires",
                                       "rest",
                                       "restrict",
                                       "result",
                                       "return",
                                       "row",
                                       "rstd",
                                       "s",
                                       "settings",
                                       "shared",
                                       "short",
                                       "signed",
                                       "size",
                                       "sizeof",
                                       "sources",
                                       "state",
                                       "static",
                                       "static_assert",
                                       "static_cast",
                                       "step",
                                       "struct",
                                       "switch",
                                       "t",
                                       "template",
                                       "this",
                                       "threadIdx",
                                       "thread_local",
                                       "throw",
                                       "tile_row",
                                       "tile_rows",
                                       "tiles",
                                       "to",
                                       "top",
                                       "true",
                                       "try",
                                       "typedef",
                                       "typeid",
                                       "typename",
                                       "typeof",
                                       "union",
                                       "unix",
                                       "unsigned",
                                       "using",
                                       "v",
                                       "value",
                                       "virtual",
                                       "void",
                                       "volatile",
                                       "warpSize",
                                       "wchar_t",
                                       "while",
                                       "width",
                                       "work",
                                       "xor",
                                       "z"};

/* True for the name patterns of helpers and emitted variables: ampc_exp, row_sum, s_part, x_at. */
static bool has_affix(const char *s, size_t n)
{
  static const char *const prefixes[] = {"ampc_",  "row_",  "column_", "round_", "from_",  "to_",
                                         "block_", "bits_", "philox_", "float_", "vector_"};
  static const char *const suffixes[] = {"_end",      "_at",   "_tiles", "_part",
                                         "_part_sum", "_best", "_all",   "_from"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (strncmp(s, prefixes[i], strlen(prefixes[i])) == 0) return true;
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    size_t m = strlen(suffixes[i]);
    if (n > m && strcmp(s + n - m, suffixes[i]) == 0) return true;
  }
  return false;
}

static int compare(const void *name, const void *word)
{
  return strcmp(name, *(const char *const *)word);
}

#define TYPE_NAMES(KIND, name, SPACE, copy, ...) #name, "op_" #name, #copy,
static const char *const of_types[] = {AMPC_NARROW_FLOATS(TYPE_NAMES)};

/* Emitted variables for nodes have names like t14. Names in capitals may be macros. */
bool reserved_name(const char *s)
{
  size_t n = strlen(s);
  if (bsearch(s, reserved, sizeof reserved / sizeof *reserved, sizeof *reserved, compare))
    return true;
  for (size_t i = 0; i < sizeof of_types / sizeof *of_types; i++)
    if (strcmp(of_types[i], s) == 0) return true;
  if (n > 1 && s[0] == 't' && strspn(s + 1, "0123456789") == n - 1) return true; /* t14 */
  if (strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == n || s[0] == '_')
    return true; /* macros */
  return has_affix(s, n);
}
