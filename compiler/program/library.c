/* Prints the functions of a program without main() for other programs, and the header that declares
 * these functions: for weights, and one for each infer block. Names begin with the job's name, so
 * two jobs can be linked into one program. library_loop.c adds functions for training,
 * library_text.c those for texts that grow. */
#include "compiler/base/user_text.h"
#include "program.h"
#include "library.h"
#include "seal.h"
#include <ctype.h>
#include <string.h>

const char *library_job(Printer *p)
{
  return identifier(p->c->arena, p->c->program->name);
}

/* Returns the name of an infer block's function, which differs from functions of every library. */
const char *library_function(Printer *p, const ampc_block *b)
{
  static const char *const taken[] = {"open", "close", "error", "program", "classes"};
  const char *name = identifier(p->c->arena, b->call);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (strcmp(name, taken[i]) == 0) name = arena_printf(p->c->arena, "%s_", name);
  if (library_reserves(p->c->program, name)) name = arena_printf(p->c->arena, "%s_", name);
  return arena_printf(p->c->arena, "%s_%s", library_job(p), name);
}

/* Returns "out_0" for "classify.0", "out" for "classify". */
const char *library_result(Printer *p, const ampc_output_desc *o)
{
  const char *dot = strrchr(o->name, '.');
  return dot ? arena_printf(p->c->arena, "out_%s", dot + 1) : "out";
}

const char *library_argument(Printer *p, const ampc_source *s)
{
  return arena_printf(p->c->arena, "in_%s", identifier(p->c->arena, s->path));
}

const char *library_size(Printer *p, const ampc_dim_size *s)
{
  return arena_printf(p->c->arena, "size_%s", identifier(p->c->arena, s->name));
}

/* True if the block is the first of its function. A block with dims exists once for each choice of
 * dims; all choices share one function. The blocks of a decoder have other functions. */
bool library_is_first(const ampc_program *g, uint32_t block)
{
  if (g->blocks[block].kind != AMPC_INFER || library_has_text(g)) return false;
  for (uint32_t i = 0; i < block; i++)
    if (g->blocks[i].call && strcmp(g->blocks[i].call, g->blocks[block].call) == 0) return false;
  return true;
}

/* Returns "int mlp_classify(struct ampc_runtime *rt, const uint8_t *in_image, float *out)"; sizes
 * follow the runtime. */
static const char *signature(Printer *p, uint32_t block)
{
  const ampc_program *g = p->c->program;
  const ampc_block *b = &g->blocks[block];
  Text t = text_new(p->c->arena);
  text_printf(&t, "int %s(struct ampc_runtime *rt", library_function(p, b));
  for (uint32_t i = 0; i < b->n_sizes; i++)
    text_printf(&t, ", int64_t %s", library_size(p, &b->size[i]));
  for (uint32_t i = 0; i < b->n_sources; i++) {
    const ampc_source *s = &g->sources[b->first_source + i];
    text_printf(&t, ", const %s *%s", ampc_type_of(s->dtype)->c, library_argument(p, s));
  }
  for (uint32_t i = 0; i < g->n_outputs; i++)
    if (g->outputs[i].block == block)
      text_printf(&t, ", %s *%s", ampc_type_of(g->outputs[i].dtype)->c,
                  library_result(p, &g->outputs[i]));
  text_puts(&t, ")");
  return t.at;
}

static const char *open_signature(Printer *p)
{
  return arena_printf(p->c->arena,
                      "int %s_open(const char *device, const char *weights, const char *data_dir, "
                      "struct ampc_runtime **out)",
                      library_job(p));
}

/* ---- the functions ---- */

/* Prints code that finds the block with the given sizes; Returns the name of its index. */
static const char *put_choice(Printer *p, const ampc_block *b)
{
  Text t = text_new(p->c->arena);
  for (uint32_t i = 0; i < b->n_sizes; i++)
    text_printf(&t, "%s%s", i ? ", " : "", library_size(p, &b->size[i]));
  EMIT_WRAPPED(p, "    ", "const int64_t sizes[] = {%s};\n", t.at);
  EMIT(p,
       "uint32_t block;\nconst int status = (int)ampc_infer_block(&program, %s, sizes, &block);\n",
       string_literal(p->c->arena, b->call));
  EMIT(p, "if (status) return status;\n");
  return "block";
}

static void put_call(Printer *p, uint32_t block)
{
  const ampc_program *g = p->c->program;
  const ampc_block *b = &g->blocks[block];
  const char *comma = "";
  EMIT_WRAPPED(p, "    ", "%s\n", signature(p, block));
  EMIT(p, "{\n");
  p->indent++;
  if (b->n_sources) {
    Text in = text_new(p->c->arena);
    for (uint32_t i = 0; i < b->n_sources; i++)
      text_printf(&in, "%s%s", i ? ", " : "",
                  library_argument(p, &g->sources[b->first_source + i]));
    EMIT_WRAPPED(p, "    ", "const void *const in[] = {%s};\n", in.at);
  }
  Text out = text_new(p->c->arena);
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    if (g->outputs[i].block != block) continue;
    text_printf(&out, "%s%s", comma, library_result(p, &g->outputs[i]));
    comma = ", ";
  }
  EMIT_WRAPPED(p, "    ", "void *const results[] = {%s};\n", out.at);
  const char *which = arena_printf(p->c->arena, "%u", block);
  if (b->n_sizes) which = put_choice(p, b);
  EMIT(p, "return (int)ampc_infer(rt, %s, %s, results);\n", which, b->n_sources ? "in" : "NULL");
  p->indent--;
  EMIT(p, "}\n");
}

/* Returns "const char *const iris_classes[3]"; NULL: the classes have no names. */
static const char *classes_declaration(Printer *p)
{
  uint32_t n = 0;
  const char *names = p->c->program->classes;
  for (const char *at = names; at && *at; at++) n += *at == '\n';
  return n ? arena_printf(p->c->arena, "const char *const %s_classes[%u]", library_job(p), n)
           : NULL;
}

/* Prints the names of the classes as a table. */
static void put_classes(Printer *p)
{
  const char *declaration = classes_declaration(p);
  if (!declaration) return;
  EMIT(p, "extern %s;\n%s = {\n", declaration, declaration);
  for (const char *at = p->c->program->classes; *at; at = strchr(at, '\n') + 1)
    EMIT(p, "  %s,\n",
         string_literal(p->c->arena, arena_strndup(p->c->arena, at, strcspn(at, "\n"))));
  EMIT(p, "};\n");
}

/* Prints the names of the classes of other columns than that of the labels: the tables, or only
 * their declarations. */
static void put_columns(Printer *p, bool tables)
{
  Arena *a = p->c->arena;
  const char *at = p->c->program->columns, *labels = p->c->program->classes;
  for (unsigned column = 0; at && *at; column++) {
    int size = (int)strcspn(at, "\n");
    const char *name = arena_strndup(a, at + strlen("column="), (size_t)size - strlen("column="));
    Text lines = text_new(a), table = text_new(a);
    uint32_t n = 0;
    for (at += size + 1; strncmp(at, "class=", strlen("class=")) == 0; n++) {
      at += strlen("class=");
      size = (int)strcspn(at, "\n");
      text_printf(&lines, "%.*s\n", size, at);
      text_printf(&table, "  %s,\n", string_literal(a, arena_strndup(a, at, (size_t)size)));
      at += size + 1;
    }
    if (labels && strcmp(labels, lines.at) == 0) continue;
    const char *declaration = arena_printf(a, "const char *const %s_column%u_%s[%u]",
                                           library_job(p), column, identifier(a, name), n);
    if (tables)
      EMIT(p, "extern %s;\n%s = {\n%s};\n", declaration, declaration, table.at);
    else
      EMIT(p, "\n/* The classes of column %s, by number. */\nextern %s;\n", comment_of(p, name),
           declaration);
  }
}

void put_library(Printer *p)
{
  const ampc_program *g = p->c->program;
  const char *job = library_job(p);
  EMIT(p, "\n/* ---- for other programs: --emit=header declares what follows ---- */\n\n");
  EMIT(p, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  EMIT(p, "const struct ampc_program *%s_program(void);\n", job);
  EMIT_WRAPPED(p, "    ", "%s;\n", open_signature(p));
  EMIT(p, "void %s_close(struct ampc_runtime *rt);\nconst char *%s_error(void);\n", job, job);
  for (uint32_t i = 0; i < g->n_blocks; i++)
    if (library_is_first(g, i)) EMIT_WRAPPED(p, "    ", "%s;\n", signature(p, i));
  put_text_declarations(p);
  put_loop_declarations(p);
  put_classes(p);
  put_columns(p, true);
  EMIT(p, "\nconst struct ampc_program *%s_program(void)\n{\n  return &program;\n}\n", job);
  EMIT_WRAPPED(p, "    ", "%s\n", open_signature(p));
  EMIT(p, "{\n  return (int)ampc_infer_open(&program, device, weights, data_dir, NULL, NULL, "
          "out);\n}\n");
  EMIT(p, "void %s_close(struct ampc_runtime *rt)\n{\n  ampc_free(rt);\n}\n", job);
  EMIT(p, "const char *%s_error(void)\n{\n  return ampc_last_error();\n}\n", job);
  for (uint32_t i = 0; i < g->n_blocks; i++)
    if (library_is_first(g, i)) put_call(p, i);
  put_text_functions(p);
  put_loop_functions(p);
  EMIT(p, "#ifdef __cplusplus\n}\n#endif\n");
}

/* ---- the header ---- */

/* Returns "u8[1, 3, 224, 224]" */
const char *library_shape(Printer *p, ampc_dtype dtype, const int64_t *dim, uint32_t rank)
{
  Arena *a = p->c->arena;
  return arena_printf(a, "%s%s%s", ampc_dtype_name(dtype), ir_sizes_text(a, dim, rank),
                      dtype == AMPC_BOOL ? ", 0 or 1" : "");
}

/* Prints the types of arguments and results. If the block has sizes, they are printed first. */
static void put_types(Printer *p, uint32_t block)
{
  const ampc_program *g = p->c->program;
  const ampc_block *b = &g->blocks[block];
  const char *in = b->n_sizes ? "  " : "";
  for (uint32_t i = 0; i < b->n_sizes; i++)
    EMIT(p, "%s%s = %lld%s", i ? ", " : " *   ", library_size(p, &b->size[i]),
         (long long)b->size[i].size, i + 1 < b->n_sizes ? "" : ":\n");
  for (uint32_t i = 0; i < b->n_sources; i++) {
    const ampc_source *s = &g->sources[b->first_source + i];
    EMIT(p, " *   %s%s  %s\n", in, library_argument(p, s),
         library_shape(p, s->dtype, s->dim, s->rank));
  }
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const ampc_output_desc *o = &g->outputs[i];
    if (o->block == block)
      EMIT(p, " *   %s%s  %s\n", in, library_result(p, o),
           library_shape(p, o->dtype, o->dim, o->rank));
  }
}

static void put_declaration(Printer *p, uint32_t block)
{
  const ampc_program *g = p->c->program;
  const ampc_block *b = &g->blocks[block];
  EMIT(p, "\n/* infer %s, %s:%u%s\n", comment_of(p, b->call), comment_of(p, g->source), b->line,
       b->n_sizes ? ", compiled for" : "");
  for (uint32_t i = block; i < g->n_blocks; i++)
    if (g->blocks[i].call && strcmp(g->blocks[i].call, b->call) == 0) put_types(p, i);
  EMIT(p, " */\n");
  EMIT_WRAPPED(p, "    ", "%s;\n", signature(p, block));
}

static const char *guard_of(Printer *p)
{
  char *guard = arena_printf(p->c->arena, "%s_H", library_job(p));
  for (char *c = guard; *c; c++) *c = (char)toupper((unsigned char)*c);
  return guard;
}

void emit_header(Compile *c, Text *out)
{
  const ampc_program *g = c->program;
  Printer p;
  size_t from = out->n;
  printer_begin(&p, c, out);
  const char *job = library_job(&p), *guard = guard_of(&p);
  EMIT(&p, "// %s: what %s offers to other programs, made with --library. Written by ampc.\n",
       comment_of(&p, g->name), comment_of(&p, g->source));
  seal_put(&p, "//");
  EMIT(&p, "#ifndef %s\n#define %s\n#include <stdint.h>\n", guard, guard);
  EMIT(&p, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  EMIT(&p,
       "struct ampc_program;\nstruct ampc_runtime; /* the model on a device; only one thread may "
       "use it at a time */\n\n");
  EMIT(&p,
       "/* Functions return 0, or an exit status of ampc: 2 for a wrong call, 3 for a file, 5 if "
       "the run\n * failed. Then this returns the reason, until the next failure in this thread. "
       "*/\n");
  EMIT(&p, "const char *%s_error(void);\n\n", job);
  EMIT(&p,
       "/* `device`: \"cpu\", \"cuda\", \"cuda:1\" or \"auto\"; it must be that of the library's "
       "target.\n * `weights`: a checkpoint, a safetensors file or a file of torch.save, with the "
       "names of the\n * job; NULL: the files that its models load, from data_dir (NULL: the "
       "current folder). Close what\n * *out gets. */\n");
  EMIT_WRAPPED(&p, "    ", "%s;\n", open_signature(&p));
  EMIT(&p, "void %s_close(struct ampc_runtime *rt); /* NULL is fine */\n\n", job);
  EMIT(&p,
       "/* For functions of ampc_rt.h, such as ampc_memory_of. */\n"
       "const struct ampc_program *%s_program(void);\n",
       job);
  const char *classes = classes_declaration(&p);
  if (classes) EMIT(&p, "\n/* The names of the classes, by number. */\nextern %s;\n", classes);
  put_columns(&p, false);
  for (uint32_t i = 0; i < g->n_blocks; i++)
    if (library_is_first(g, i)) put_declaration(&p, i);
  put_text_header(&p);
  put_loop_header(&p);
  EMIT(&p, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  seal_close(out, from);
}
