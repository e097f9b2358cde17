/* The table of formats: each row is complete. The compiler and the loader read a header in the same
 * way, and refuse it in the same words. */
#include "compiler/driver.h"
#include "runtime/data/source.h"
#include "temp.h"

static void check_rows(void)
{
  for (ampc_source_kind kind = 0; kind < AMPC_SOURCE_ARGUMENT; kind++) {
    const ampc_format *f = ampc_format_of(kind);
    MUST(f && f->name);
    CHECK_MSG(f->kind == kind, "%s has the kind of another row", f->name);
    CHECK_MSG(ampc_format_find(f->name) == f, "two formats have the name %s", f->name);
    CHECK_MSG(f->open && f->copy && f->close, "%s lacks a function", f->name);
    CHECK_MSG(!f->probe == !f->n_types, "%s: exactly the formats of files have types", f->name);
  }
  CHECK(!ampc_format_of(AMPC_SOURCE_ARGUMENT) && !ampc_format_find("argument"));
}

/* ---- compiler and loader on one file ---- */

static const char job[] = "data d() { return idx(\"x\").to(f32) }\n"
                          "module Net {\n"
                          "  w = Parameter([])\n"
                          "  def forward(x) { return mean(x * w) }\n"
                          "}\n"
                          "model net = Net()\n"
                          "optimizer opt = SGD(net, lr=0.1)\n"
                          "train x in d() with batch=1 { minimize net(x) with opt }\n";

/* Compiles the job, whose shapes come from the file "x". The caller frees *out_text (messages). */
static Compile *compile(char **out_text)
{
  Options options = {.input = "job.amp",
                     .target = "cpu",
                     .optimize = 2,
                     .error_limit = 20,
                     .data_dir = temp_folder};
  size_t size;
  FILE *real = stderr, *memory = open_memstream(out_text, &size);
  MUST(memory);
  stderr = memory;
  Compile *c = compile_create(&options);
  compile_text(c, options.input, job, sizeof job - 1);
  fclose(memory);
  stderr = real;
  return c;
}

/* Checks that compiler and loader agree about the file "x". Returns whether they accept it. */
static bool both(const char *what)
{
  char *text;
  Compile *c = compile(&text);
  static const ampc_program any = {.name = "any"};
  static const ampc_source bytes = {
      .kind = AMPC_SOURCE_IDX, .path = "x", .part_end = 1, .dtype = AMPC_U8};
  const ampc_program *p = c->program;
  DataSource s;
  ampc_status status = source_open(p ? p : &any, p ? p->sources : &bytes, temp_folder, 1, &s);
  CHECK_MSG(!status == (p != NULL), "%s: compiled: %s; opened: status %d, %s", what,
            p ? "yes" : text, status, status ? ampc_last_error() : "");
  if (!p) {
    CHECK_MSG(strstr(text, ampc_last_error()), "%s: compiled: %s; opened: %s", what, text,
              ampc_last_error());
    CHECK_MSG(strstr(text, "error[E604]") && c->cannot_read, "%s: %s", what, text);
  }
  source_close(&s);
  compile_destroy(c);
  free(text);
  return !status;
}

/* Checks the six type codes of IDX and their neighbours, with two samples of one element. */
static void check_types(void)
{
  static const struct {
    uint8_t code, size;
  } known[] = {{0x08, 1}, {0x09, 1}, {0x0b, 2}, {0x0c, 4}, {0x0d, 4}, {0x0e, 8}};
  for (int code = 0; code < 32; code++) {
    size_t size = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
      if (known[i].code == code) size = known[i].size;
    uint8_t file[8 + 2 * 8] = {0, 0, (uint8_t)code, 1, 0, 0, 0, 2};
    temp_write(temp_path("x"), file, 8 + 2 * (size ? size : 1));
    char what[20];
    snprintf(what, sizeof what, "type %02x", (unsigned)code);
    CHECK_MSG(both(what) == (size != 0), "%s", what);
  }
}

static void check_headers(void)
{
  static const uint8_t good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
  static const struct {
    int at;
    uint8_t value;
    const char *what;
  } bad[] = {{0, 'P', "magic"},
             {1, 1, "magic"},
             {3, 0, "no axis"},
             {3, 7, "seven axes"},
             {3, 255, "255 axes"},
             {7, 0, "no sample"},
             {11, 0, "a size of 0"},
             {4, 255, "too many samples"},
             {8, 255, "too large a sample"}};
  temp_write(temp_path("x"), good, sizeof good);
  CHECK(both("a good file"));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint8_t file[sizeof good];
    memcpy(file, good, sizeof good);
    file[bad[i].at] = bad[i].value;
    temp_write(temp_path("x"), file, sizeof file);
    CHECK_MSG(!both(bad[i].what), "%s", bad[i].what);
  }
  for (size_t n = 0; n < 12; n++) {
    temp_write(temp_path("x"), good, n);
    CHECK_MSG(!both("a header that is cut"), "%zu bytes", n);
  }
  unlink(temp_path("x"));
  mkdir(temp_path("x"), 0700);
  CHECK(!both("a folder"));
  rmdir(temp_path("x"));
}

int main(void)
{
  temp_open();
  check_rows();
  check_types();
  check_headers();
  temp_close();
  return check_done();
}
