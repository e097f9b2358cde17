/* Prints the functions of a library as a module of Fortran 2008: --emit=fortran. library.c and
 * library_loop.c print the functions themselves and their header in C.
 *
 * Functions with arrays are interfaces to C. Functions with texts are wrappers, because texts of
 * Fortran have no NUL at their end. Private names have no underscore, so they differ from all names
 * that begin with the job's. */
#include "ampc_metrics.h"
#include "compiler/base/user_text.h"
#include "compiler/diag/diag.h"
#include "library.h"
#include "program.h"
#include "seal.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WIDTH = 100, LONGEST = 63 /* characters of a name */ };

typedef struct Fortran {
  Printer p;
  VEC(const char *) names, locals; /* of the module; of the current function or type */
  bool wrong;
} Fortran;

/* The names that the module takes from iso_c_binding; the last one from the language. */
static const char *const used[] = {"c_ptr",     "c_null_ptr",  "c_loc",     "c_f_pointer",
                                   "c_char",    "c_null_char", "c_int",     "c_int8_t",
                                   "c_int16_t", "c_int32_t",   "c_int64_t", "c_size_t",
                                   "c_float",   "c_double",    "len_trim"};
enum { USED = sizeof used / sizeof *used };

/* ---- names ---- */

/* Checks a name that the user chose: Fortran's rules, and that it differs from others in more than
 * case. Returns the name. Only the first public name, the job's, may begin wrongly: others begin
 * with it. */
static const char *check_name(Fortran *f, bool local, const char *name)
{
  Compile *c = f->p.c;
  uint32_t n = local ? f->locals.n : f->names.n;
  const char *const *others = local ? f->locals.at : f->names.at, *twin = NULL;
  for (uint32_t i = 0; i < n; i++)
    if (strcasecmp(others[i], name) == 0) twin = others[i];
  bool begins = isalpha((unsigned char)*name) || (!local && n), fits = strlen(name) <= LONGEST;
  f->wrong |= twin || !begins || !fits;
  if (twin)
    diag_error(
        c, E803, (Span){0},
        "Fortran reads `%s` and `%s` as one name; rename the block, argument, metric or class "
        "of the job that has one of them",
        twin, name);
  else if (!fits)
    diag_error(c, E803, (Span){0},
               "`%s` has %zu characters, and a name of Fortran at most %d: shorten the name of the "
               "job's file, or what follows it",
               name, strlen(name), LONGEST);
  else if (!begins)
    diag_error(c, E803, (Span){0},
               "`%s` begins with `%c`, and a name of Fortran with a letter: rename it", name,
               *name);
  if (local)
    vec_push(c->arena, &f->locals, name);
  else
    vec_push(c->arena, &f->names, name);
  return name;
}

/* Makes a public name: "surrogate_step" of "step". */
static const char *public_name(Fortran *f, const char *rest)
{
  return check_name(f, false, arena_printf(f->p.c->arena, "%s_%s", library_job(&f->p), rest));
}

/* ---- lines ---- */

/* Returns text for a comment, whose line may have 132 characters. */
static const char *short_of(Printer *p, const char *text)
{
  return comment_text(p->c->arena, text, strlen(text), 32);
}

/* Prints a line, which is continued after commas if it is long. */
static void put_line(Fortran *f, const char *line)
{
  const char *next = "";
  while (strlen(line) > WIDTH) {
    size_t at = WIDTH;
    while (at > 2 && strncmp(line + at - 2, ", ", 2) != 0) at--;
    if (at == 2) break; /* a name that is too long, which is refused */
    EMIT(&f->p, "%s%.*s&\n", next, (int)at, line);
    line += at;
    next = "    ";
  }
  EMIT(&f->p, "%s%s\n", next, line);
}

/* Prints lines of a text in which @ stands for the job's name. */
static void put_text(Fortran *f, const char *text)
{
  Text t = text_new(f->p.c->arena);
  for (; *text; text++) {
    if (*text == '@')
      text_puts(&t, library_job(&f->p));
    else
      text_add(&t, text, 1);
  }
  EMIT(&f->p, "%s", t.at);
}

/* Returns "real(c_float)" for float. */
static const char *kind_of(ampc_dtype dtype)
{
  static const struct {
    const char *c, *fortran;
  } kinds[] = {{"float", "real(c_float)"},         {"double", "real(c_double)"},
               {"uint8_t", "integer(c_int8_t)"},   {"int8_t", "integer(c_int8_t)"},
               {"uint16_t", "integer(c_int16_t)"}, {"int16_t", "integer(c_int16_t)"},
               {"int32_t", "integer(c_int32_t)"},  {"int64_t", "integer(c_int64_t)"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].c, ampc_type_of(dtype)->c) == 0) return kinds[i].fortran;
  assert(!"a type without a kind in Fortran");
  return "";
}

/* Returns the declaration of an array with reversed axes. `last`: an axis after these, or "";
 * `sized` false: the axes depend on the call. */
static const char *array_of(Fortran *f, const char *intent, const char *name, ampc_dtype dtype,
                            const int64_t *dim, uint32_t rank, const char *last, bool sized)
{
  Text t = text_new(f->p.c->arena);
  text_printf(&t, "%s, intent(%s) :: %s", kind_of(dtype), intent, name);
  const char *before = "(";
  for (uint32_t i = rank; i-- > 0 && sized; before = ", ")
    text_printf(&t, "%s%lld", before, (long long)dim[i]);
  if (*last) text_printf(&t, "%s%s", before, last);
  if (!sized && rank)
    text_puts(&t, "(*)");
  else if (rank || *last)
    text_puts(&t, ")");
  return t.at;
}

/* ---- functions with arrays ---- */

typedef struct Interface {
  const char *name;
  Text arguments;
  VEC(const char *) declarations;
} Interface;

static Interface interface_of(Fortran *f, const char *name)
{
  Interface i = {.name = name, .arguments = text_new(f->p.c->arena)};
  f->locals.n = 0;
  check_name(f, true, "status");
  text_puts(&i.arguments, "rt");
  vec_push(f->p.c->arena, &i.declarations, "type(c_ptr), value :: rt");
  return i;
}

static void add_argument(Fortran *f, Interface *i, const char *name, const char *declaration)
{
  text_printf(&i->arguments, ", %s", check_name(f, true, name));
  vec_push(f->p.c->arena, &i->declarations, declaration);
}

static void put_interface(Fortran *f, const Interface *i)
{
  Arena *a = f->p.c->arena;
  EMIT(&f->p, "function %s &\n", i->name);
  put_line(f, arena_printf(a, "    (%s) &", i->arguments.at));
  EMIT(&f->p, "    result(status) bind(c, name=\"%s\")\n  import\n", i->name);
  for (uint32_t k = 0; k < i->declarations.n; k++) EMIT(&f->p, "  %s\n", i->declarations.at[k]);
  EMIT(&f->p, "  integer(c_int) :: status\nend function\n");
}

static void put_infer(Fortran *f, uint32_t block)
{
  Printer *p = &f->p;
  const ampc_program *g = p->c->program;
  const ampc_block *b = &g->blocks[block];
  const char *job = library_job(p);
  Interface x = interface_of(f, public_name(f, library_function(p, b) + strlen(job) + 1));
  EMIT(p, "\n! infer %s, %s:%u\n", short_of(p, b->call), short_of(p, g->source), b->line);
  for (uint32_t i = 0; i < b->n_sizes; i++) {
    const char *name = library_size(p, &b->size[i]);
    add_argument(f, &x, name, arena_printf(p->c->arena, "integer(c_int64_t), value :: %s", name));
  }
  for (uint32_t i = 0; i < b->n_sources; i++) {
    const ampc_source *s = &g->sources[b->first_source + i];
    const char *name = library_argument(p, s);
    EMIT(p, "!   %s  %s\n", name, library_shape(p, s->dtype, s->dim, s->rank));
    add_argument(f, &x, name, array_of(f, "in", name, s->dtype, s->dim, s->rank, "", !b->n_sizes));
  }
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const ampc_output_desc *o = &g->outputs[i];
    if (o->block != block) continue;
    const char *name = library_result(p, o);
    EMIT(p, "!   %s  %s\n", name, library_shape(p, o->dtype, o->dim, o->rank));
    add_argument(f, &x, name, array_of(f, "out", name, o->dtype, o->dim, o->rank, "", !b->n_sizes));
  }
  if (b->n_sizes) EMIT(p, "! for one choice of the sizes; the header in C lists all\n");
  put_interface(f, &x);
}

/* Prints the function for a batch; `on`: for arrays in the GPU's memory. */
static void put_batch(Fortran *f, uint32_t block, bool on)
{
  Printer *p = &f->p;
  Arena *a = p->c->arena;
  const ampc_program *g = p->c->program;
  const ampc_block *b = &g->blocks[block];
  const char *verb = library_verb(p, block);
  Interface x = interface_of(f, public_name(f, on ? arena_printf(a, "%s_on", verb) : verb));
  if (on) {
    EMIT(p, "! The same for arrays in the GPU's memory, which work of this CUDA stream writes.\n");
    add_argument(f, &x, "stream", "type(c_ptr), value :: stream");
  } else {
    bool rest = false;
    for (uint32_t i = 0; i < b->n_variants; i++) rest |= b->variant[i].batch != b->batch;
    EMIT(p, "\n! %s, %s:%u\n!   samples  %s_%s_samples%s\n", short_of(p, b->name),
         short_of(p, g->source), b->line, library_job(p), verb,
         rest ? ", or fewer at the end of an epoch" : "");
  }
  add_argument(f, &x, "samples", "integer(c_int64_t), value :: samples");
  for (uint32_t i = 0; i < b->n_sources; i++) {
    const ampc_source *s = &g->sources[b->first_source + i];
    const char *name = library_argument(p, s);
    if (!on && s->limit)
      EMIT(p, "!   %s  from 0 to %lld%s\n", name, (long long)s->limit - 1,
           s->ignored ? arena_printf(a, ", or %lld", (long long)s->ignored) : "");
    add_argument(f, &x, name,
                 on ? arena_printf(a, "type(c_ptr), value :: %s", name)
                    : array_of(f, "in", name, s->dtype, s->dim, s->rank, "samples", true));
  }
  put_interface(f, &x);
}

static void put_metrics(Fortran *f, uint32_t block)
{
  Printer *p = &f->p;
  if (!p->c->program->blocks[block].n_metrics) return;
  const char *name = public_name(f, library_get(p, block) + strlen(library_job(p)) + 1);
  EMIT(p, "! Waits, then gets the metrics since the last call, as means over their samples.\n");
  EMIT(p, "function %s(rt, out) &\n    result(status) bind(c, name=\"%s\")\n  import\n", name,
       name);
  EMIT(p, "  type(c_ptr), value :: rt\n  type(%s), intent(out) :: out\n", library_struct(p, block));
  EMIT(p, "  integer(c_int) :: status\nend function\n");
}

/* ---- the module ---- */

static const char always[] =
    "\n! The reason of the last failure in this thread.\n"
    "function @_error() result(text)\n"
    "  character(len=:), allocatable :: text\n"
    "  text = textat(callerror())\n"
    "end function\n"
    "\n! device: \"cpu\", \"cuda\", \"cuda:1\" or \"auto\". weights: a checkpoint, or a file of "
    "weights;\n"
    "! absent: the files that the models load, from data_dir (absent: the current folder).\n"
    "! Close rt with @_close.\n"
    "function @_open(device, weights, data_dir, rt) result(status)\n"
    "  character(len=*), intent(in) :: device\n"
    "  character(len=*), intent(in), optional :: weights, data_dir\n"
    "  type(c_ptr), intent(out) :: rt\n"
    "  integer(c_int) :: status\n"
    "  character(kind=c_char), allocatable, target :: room(:), room2(:), room3(:)\n"
    "  status = callopen(placeof(device, room), placeof(weights, room2), &\n"
    "    placeof(data_dir, room3), rt)\n"
    "end function\n";

static const char loops[] =
    "\n! Draws the initial weights from seed. A training begins with this function.\n"
    "function @_create(device, seed, data_dir, rt) result(status)\n"
    "  character(len=*), intent(in) :: device\n"
    "  integer(c_int64_t), intent(in) :: seed\n"
    "  character(len=*), intent(in), optional :: data_dir\n"
    "  type(c_ptr), intent(out) :: rt\n"
    "  integer(c_int) :: status\n"
    "  character(kind=c_char), allocatable, target :: room(:), room2(:)\n"
    "  status = callcreate(placeof(device, room), seed, placeof(data_dir, room2), rt)\n"
    "end function\n"
    "\n! Changes a setting from the next step on, such as \"opt.lr\". The header in C lists all.\n"
    "function @_set(rt, setting, value) result(status)\n"
    "  type(c_ptr), intent(in) :: rt\n"
    "  character(len=*), intent(in) :: setting\n"
    "  real(c_double), intent(in) :: value\n"
    "  integer(c_int) :: status\n"
    "  character(kind=c_char), allocatable, target :: room(:)\n"
    "  status = callset(rt, placeof(setting, room), value)\n"
    "end function\n"
    "\n! \"f32\", \"tf32\", \"f16\" or \"bf16\"\n"
    "function @_precision() result(text)\n"
    "  character(len=:), allocatable :: text\n"
    "  text = textat(callprecision())\n"
    "end function\n";

static const char class_name[] = "\n! The name of a class, by its number from 0 on.\n"
                                 "function @_class_name(number) result(text)\n"
                                 "  integer, intent(in) :: number\n"
                                 "  character(len=:), allocatable :: text\n"
                                 "  text = textat(@_classes(number))\n"
                                 "end function\n";

/* A function with one path, NAME and what it does. */
static const char *const paths[][2] = {
    {"save", "Waits, then writes a checkpoint. Call it after a whole step."},
    {"save_weights", "Writes the weights alone, with PyTorch's names."},
    {"load", "Continues from a checkpoint. Call @_set again after it."}};
enum { PATHS = sizeof paths / sizeof *paths };

static const char helpers[] =
    "\n! Copies a text to room, with a NUL at its end, and returns its place; absent: no place.\n"
    "function placeof(text, room) result(place)\n"
    "  character(len=*), intent(in), optional :: text\n"
    "  character(kind=c_char), allocatable, target, intent(out) :: room(:)\n"
    "  type(c_ptr) :: place\n"
    "  integer :: i\n"
    "  place = c_null_ptr\n"
    "  if (.not. present(text)) return\n"
    "  allocate(room(len_trim(text) + 1))\n"
    "  do i = 1, len_trim(text)\n"
    "    room(i) = text(i:i)\n"
    "  end do\n"
    "  room(size(room)) = c_null_char\n"
    "  place = c_loc(room)\n"
    "end function\n"
    "\nfunction textat(place) result(text)\n"
    "  type(c_ptr), intent(in) :: place\n"
    "  character(len=:), allocatable :: text\n"
    "  character(kind=c_char), pointer :: letters(:)\n"
    "  integer :: i\n"
    "  call c_f_pointer(place, letters, [lengthof(place)])\n"
    "  allocate(character(len=size(letters)) :: text)\n"
    "  do i = 1, size(letters)\n"
    "    text(i:i) = letters(i)\n"
    "  end do\n"
    "end function\n";

/* Prints an interface to a C function for a wrapper. `arguments` are passed by value, except rt of
 * the functions that make one. */
static void put_c_function(Fortran *f, const char *local, const char *name, const char *arguments,
                           const char *declarations, const char *result)
{
  EMIT(&f->p, "function %s(%s) &\n    result(got) bind(c, name=\"%s\")\n  import\n%s  %s :: got\n",
       local, arguments, name, declarations, result);
  EMIT(&f->p, "end function\n");
}

static void put_calls(Fortran *f, bool loop)
{
  Arena *a = f->p.c->arena;
  const char *job = library_job(&f->p), *integer = "integer(c_int)", *place = "type(c_ptr)";
  put_c_function(f, "lengthof", "strlen", "text", "  type(c_ptr), value :: text\n",
                 "integer(c_size_t)");
  put_c_function(f, "callerror", arena_printf(a, "%s_error", job), "", "", place);
  put_c_function(
      f, "callopen", arena_printf(a, "%s_open", job), "device, weights, data_dir, rt",
      "  type(c_ptr), value :: device, weights, data_dir\n  type(c_ptr), intent(out) :: rt\n",
      integer);
  if (!loop) return;
  put_c_function(f, "callprecision", arena_printf(a, "%s_precision", job), "", "", place);
  put_c_function(f, "callcreate", arena_printf(a, "%s_create", job), "device, seed, data_dir, rt",
                 "  type(c_ptr), value :: device, data_dir\n  integer(c_int64_t), value :: seed\n"
                 "  type(c_ptr), intent(out) :: rt\n",
                 integer);
  put_c_function(f, "callset", arena_printf(a, "%s_set", job), "rt, setting, value",
                 "  type(c_ptr), value :: rt, setting\n  real(c_double), value :: value\n",
                 integer);
  for (int i = 0; i < PATHS; i++)
    put_c_function(f, arena_printf(a, "callpath%d", i), arena_printf(a, "%s_%s", job, paths[i][0]),
                   "rt, path", "  type(c_ptr), value :: rt, path\n", integer);
}

static void put_module_types(Fortran *f)
{
  Printer *p = &f->p;
  const ampc_program *g = p->c->program;
  EMIT(p, "! steps: attempted so far. skipped: those of them in which an update was left out.\n");
  EMIT(p,
       "type, bind(c) :: %s\n  integer(c_int64_t) :: steps, skipped\n  real(c_double) :: scale\n",
       public_name(f, "state"));
  EMIT(p, "end type\n");
  for (uint32_t i = 0; i < g->n_blocks; i++) {
    const ampc_block *b = &g->blocks[i];
    if (!library_is_loop(g, i)) continue;
    const char *samples =
        public_name(f, arena_printf(p->c->arena, "%s_samples", library_verb(p, i)));
    EMIT(p, "integer(c_int64_t), parameter :: %s = %lld\n", samples, (long long)b->batch);
    if (!b->n_metrics) continue;
    EMIT(p, "type, bind(c) :: %s\n",
         public_name(f, library_struct(p, i) + strlen(library_job(p)) + 1));
    f->locals.n = 0;
    for (uint32_t k = 0; k < b->n_metrics; k++)
      EMIT(p, "  real(c_double) :: %s\n",
           check_name(f, true, identifier(p->c->arena, g->metrics[b->first_metric + k].name)));
    EMIT(p, "end type\n");
  }
}

static void put_interfaces(Fortran *f, bool loop)
{
  Printer *p = &f->p;
  const ampc_program *g = p->c->program;
  EMIT(p, "interface\n");
  p->indent++;
  put_calls(f, loop);
  put_text(f, "\nsubroutine @_close(rt) &\n    bind(c, name=\"@_close\")\n  import\n"
              "  type(c_ptr), value :: rt\nend subroutine\n"
              "! For functions of ampc_rt.h.\n"
              "function @_program() &\n    result(place) bind(c, name=\"@_program\")\n  import\n"
              "  type(c_ptr) :: place\nend function\n");
  if (loop)
    put_text(f,
             "! Waits for the device.\n"
             "function @_get_state(rt, out) &\n    result(status) bind(c, name=\"@_get_state\")\n"
             "  import\n  type(c_ptr), value :: rt\n  type(@_state), intent(out) :: out\n"
             "  integer(c_int) :: status\nend function\n");
  for (uint32_t i = 0; i < g->n_blocks; i++)
    if (library_is_first(g, i)) put_infer(f, i);
  for (uint32_t i = 0; i < g->n_blocks; i++) {
    if (!library_is_loop(g, i)) continue;
    put_batch(f, i, false);
    put_batch(f, i, true);
    put_metrics(f, i);
  }
  p->indent--;
  EMIT(p, "end interface\n");
}

/* Returns how many classes have names, which the library has as a table of C texts. */
static int count_classes(const char *at)
{
  int n = 0;
  for (; at && *at; at++) n += *at == '\n';
  return n;
}

/* Prints the head of the module, and takes the names that every module has. */
static void put_module_head(Fortran *f, bool loop)
{
  static const char *const names[] = {"error",  "open", "close",     "program",
                                      "create", "set",  "precision", "get_state"};
  enum { FIXED = 4, ALL = sizeof names / sizeof *names };
  Printer *p = &f->p;
  const ampc_program *g = p->c->program;
  Text uses = text_new(p->c->arena);
  check_name(f, false, library_job(p));
  for (int i = 0; i < USED; i++) check_name(f, false, used[i]);
  for (int i = 0; i < USED - 1; i++) text_printf(&uses, "%s%s", i ? ", " : "", used[i]);
  for (int i = 0; i < (loop ? ALL : FIXED); i++) public_name(f, names[i]);
  EMIT(p, "! %s: what %s offers to Fortran. Written by ampc.\n", short_of(p, g->name),
       short_of(p, g->source));
  seal_put(p, "!");
  EMIT(p, "! Arrays have the axes of the job in reverse order: f32[64, 3] is x(3, 64). They are "
          "the caller's.\n! u8 has the bits of integer(c_int8_t), bool is 0 or 1, f16 and bf16 are "
          "their bits.\n! Functions return 0, or an exit status of ampc: 2 for a wrong call, 3 for "
          "a file, 5 if the\n! run failed. Only one thread at a time may use rt, the model on a "
          "device.\n");
  EMIT(p, "module %s\n", library_job(p));
  p->indent++;
  put_line(f, arena_printf(p->c->arena, "use, intrinsic :: iso_c_binding, only: %s", uses.at));
  EMIT(p, "implicit none\nprivate :: lengthof, callerror, callopen, placeof, textat\n");
}

/* Prints the functions with texts. */
static void put_wrappers(Fortran *f, bool loop, bool classes)
{
  put_text(f, always);
  if (loop) put_text(f, loops);
  for (int i = 0; i < PATHS && loop; i++) {
    public_name(f, paths[i][0]);
    put_text(f, arena_printf(f->p.c->arena,
                             "\n! %s\nfunction @_%s(rt, path) result(status)\n"
                             "  type(c_ptr), intent(in) :: rt\n"
                             "  character(len=*), intent(in) :: path\n  integer(c_int) :: status\n"
                             "  character(kind=c_char), allocatable, target :: room(:)\n"
                             "  status = callpath%d(rt, placeof(path, room))\nend function\n",
                             paths[i][1], paths[i][0], i));
  }
  if (classes) public_name(f, "class_name"), put_text(f, class_name);
  put_text(f, helpers);
}

bool emit_fortran(Compile *c, Text *out)
{
  Fortran f = {.wrong = false};
  Printer *p = &f.p;
  size_t from = out->n;
  bool loop = library_has_loop(c->program);
  int classes = count_classes(c->program->classes);
  printer_begin(p, c, out);
  put_module_head(&f, loop);
  if (loop) {
    EMIT(p, "private :: callprecision, callcreate, callset, callpath0, callpath1, callpath2\n");
    put_module_types(&f);
  }
  if (classes)
    EMIT(p,
         "! The names of the classes, by number, as texts of C: see %s_class_name.\n"
         "type(c_ptr), bind(c, name=\"%s_classes\") :: %s(0:%d)\n",
         library_job(p), library_job(p), public_name(&f, "classes"), classes - 1);
  put_interfaces(&f, loop);
  p->indent--;
  EMIT(p, "contains\n");
  p->indent++;
  put_wrappers(&f, loop, classes > 0);
  p->indent--;
  EMIT(p, "end module\n");
  seal_close(out, from);
  return !f.wrong;
}
