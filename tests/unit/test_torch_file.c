/* Files of torch.save: names, types and numbers; views; what is refused; files that are truncated
 * or changed at every byte; hostile pickles. */
#include <fcntl.h>
#include "runtime/base/convert.h"
#include "runtime/plan/types.h"
#include "runtime/state/pickle.h"
#include "runtime/state/safetensors.h"
#include "temp.h"

#define FOLDER "tests/data/torch/"

static TensorFile open_file(const char *path)
{
  TensorFile f;
  if (tensor_file_read_any(path, &f)) {
    fprintf(stderr, "%s\n", ampc_last_error());
    exit(1);
  }
  return f;
}

/* Checks shape and type, and that element i is (first + i * step) / 8. */
static void expect(const TensorFile *f, const char *name, const char *type, double first,
                   double step)
{
  const json_t *entry = json_object_get(f->header, name);
  char text[100], bytes[400];
  CHECK_MSG(entry, "%s lacks %s", f->path, name);
  if (!entry) return;
  TensorEntry e = tensor_entry(entry);
  tensor_entry_text(entry, text, sizeof text);
  CHECK_MSG(strcmp(text, type) == 0, "%s is %s", name, text);
  MUST(e.elements * e.unit <= (int64_t)sizeof bytes);
  int64_t half = e.elements / 2 * e.unit; /* in two pieces */
  MUST(tensor_file_load(f, e.begin, bytes, half) == AMPC_OK);
  MUST(tensor_file_load(f, e.begin + half, bytes + half, e.elements * e.unit - half) == AMPC_OK);
  for (int64_t i = 0; i < e.elements && e.dtype != AMPC_DTYPE_COUNT; i++) {
    double has = number_load(e.dtype, e.wide, bytes, i), scale = ampc_is_float(e.dtype) ? 8 : 1;
    CHECK_MSG(has * scale == first + step * (double)i, "%s[%d] is %g", name, (int)i, has);
  }
}

/* The weights of a Sequential(Linear(3, 2), BatchNorm1d(2)) below `prefix`. */
static void expect_net(const TensorFile *f, const char *prefix, double factor)
{
  static const char *const floats[] = {"0.bias", "1.weight", "1.bias", "1.running_mean",
                                       "1.running_var"};
  char name[100];
  snprintf(name, sizeof name, "%s0.weight", prefix);
  expect(f, name, "F32[2, 3]", 0, factor);
  for (int i = 0; i < 5; i++) {
    snprintf(name, sizeof name, "%s%s", prefix, floats[i]);
    expect(f, name, "F32[2]", 0, factor);
  }
  snprintf(name, sizeof name, "%s1.num_batches_tracked", prefix);
  expect(f, name, "I64[]", 7 * factor, 0);
}

static void check_names(void)
{
  TensorFile f = open_file(FOLDER "state.pth");
  CHECK(json_object_size(f.header) == 7);
  expect_net(&f, "", 1);
  tensor_file_free(&f);
  f = open_file(FOLDER "training.pth");
  CHECK(json_object_size(f.header) == 7);
  expect_net(&f, "", 1);
  tensor_file_free(&f);
  f = open_file(FOLDER "old.pth"); /* the format before PyTorch 1.6 */
  CHECK(json_object_size(f.header) == 7);
  expect_net(&f, "", 1);
  tensor_file_free(&f);
  f = open_file(FOLDER "two.pth");
  CHECK(json_object_size(f.header) == 14);
  expect_net(&f, "model.", 1);
  expect_net(&f, "ema.", 2);
  tensor_file_free(&f);
}

/* Objects of any class may be beside the tensors, in pickles of each protocol. */
static void check_objects(void)
{
  static const char *const files[] = {FOLDER "objects2.pth", FOLDER "objects3.pth",
                                      FOLDER "objects5.pth"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    TensorFile f = open_file(files[i]);
    CHECK(json_object_size(f.header) == 7);
    expect_net(&f, "", 1);
    tensor_file_free(&f);
  }
  TensorFile f = open_file(FOLDER "protocol4.pth");
  expect(&f, "x", "F32[1]", 8, 0);
  tensor_file_free(&f);
}

/* A tensor that is not read has an entry, so that only its use is an error. */
static void check_strange(void)
{
  static const char *const unread[][2] = {{"sparse", "torch._utils._rebuild_sparse_tensor"},
                                          {"complex", "torch.ComplexFloatStorage"},
                                          {"wide", "torch._utils._rebuild_tensor_v3"},
                                          {"float8", "torch._utils._rebuild_tensor_v3"}};
  TensorFile f = open_file(FOLDER "strange.pth");
  CHECK(json_object_size(f.header) == 7);
  expect(&f, "w", "F32[2]", 0, 1);
  expect(&f, "named", "F32[2]", 0, 1);
  expect(&f, "buffer", "F32[2]", 0, 1);
  for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
    const json_t *entry = json_object_get(f.header, unread[i][0]);
    const char *class = json_string_value(json_object_get(entry, "dtype"));
    CHECK_MSG(class && strcmp(class, unread[i][1]) == 0 && tensor_entry(entry).unread, "%s is %s",
              unread[i][0], class);
  }
  tensor_file_free(&f);
}

static void check_kinds(void)
{
  TensorFile f = open_file(FOLDER "kinds.pth");
  CHECK(json_object_size(f.header) == 18);
  expect(&f, "int64", "I64[3]", 0, 1);
  expect(&f, "int32", "I32[3]", 0, 1);
  expect(&f, "int16", "I16[3]", 0, 1);
  expect(&f, "int8", "I8[3]", 0, 1);
  expect(&f, "uint8", "U8[3]", 0, 1);
  expect(&f, "float64", "F64[3]", 0, 1);
  expect(&f, "float16", "F16[3]", 0, 1);
  expect(&f, "bfloat16", "BF16[3]", 0, 1);
  expect(&f, "bool", "BOOL[2]", 1, -1);
  expect(&f, "scalar", "F32[]", 12, 0);
  expect(&f, "empty", "F32[0, 3]", 0, 0);
  expect(&f, "parameter", "F32[2]", 0, 1);
  expect(&f, "5", "F32[1]", 0, 0);
  expect(&f, "turned", "F32[3, 2]", 0, 1);
  expect(&f, "channels_last", "F32[2, 3, 2, 2]", 0, 1);
  expect(&f, "whole", "F32[12]", 0, 1);
  expect(&f, "rows", "F32[2, 2]", 4, 1);
  expect(&f, "every_third", "F32[4]", 1, 3);
  tensor_file_free(&f);
}

static void refuses(const char *path, const char *says)
{
  TensorFile f;
  CHECK_MSG(tensor_file_read_any(path, &f) == AMPC_BAD_FILE, "%s is read", path);
  CHECK_MSG(strstr(ampc_last_error(), path) && strstr(ampc_last_error(), says), "%s",
            ampc_last_error());
}

static void check_refused(void)
{
  refuses(FOLDER "program.pth",
          "but an object of torch.nn.modules.container.Sequential; in PyTorch");
  refuses(FOLDER "list.pth", "has no dictionary of tensors");
  refuses(FOLDER "expanded.pth", "x repeats elements of its storage");
  refuses(FOLDER "deflated.pth", "compressed; torch.save stores it");
  refuses("tests/data/stored.npz", "no file of torch.save: it is a zip archive without data.pkl");
  size_t size;
  char *bytes = temp_read(FOLDER "state.pth", &size), *order = memmem(bytes, size, "little", 6);
  MUST(order);
  memcpy(order, "middle", 6);
  temp_write(temp_path("order"), bytes, size);
  refuses(temp_path("order"), "the byte order \"middle\"");
  free(bytes);
  bytes = temp_read(FOLDER "old.pth", &size);
  char *view = memmem(bytes, size, "K\6Nt", 4); /* the end of a storage's description */
  MUST(view);
  view[2] = ')';
  temp_write(temp_path("view"), bytes, size);
  refuses(temp_path("view"), "0.weight is in a part of a storage");
  order = memmem(bytes, size, "little_endian", 13);
  MUST(order && order[15] == '\x88');
  order[15] = '\x89';
  temp_write(temp_path("order"), bytes, size);
  refuses(temp_path("order"), "big-endian");
  bytes[6] = 0;
  temp_write(temp_path("order"), bytes, size);
  refuses(temp_path("order"), "another pickle");
  free(bytes);
}

/* A damaged file is refused, or all its tensors can be read. */
static void read_all(const char *path)
{
  TensorFile f;
  const char *name;
  json_t *entry;
  if (tensor_file_read_any(path, &f)) return;
  json_object_foreach(f.header, name, entry)
  {
    TensorEntry e = tensor_entry(entry);
    char *to = malloc((size_t)(e.elements * e.unit) + 1);
    CHECK_MSG(to && tensor_file_load(&f, e.begin, to, e.elements * e.unit) == AMPC_OK, "%s: %s",
              name, ampc_last_error());
    free(to);
  }
  tensor_file_free(&f);
}

static void check_damage(const char *path)
{
  size_t size;
  char *bytes = temp_read(path, &size);
  const char *bad = temp_path("bad");
  for (size_t n = 0; n < size; n += n < 200 ? 1 : 37) {
    temp_write(bad, bytes, n);
    refuses(bad, "");
  }
  temp_write(bad, bytes, size);
  int fd = open(bad, O_WRONLY);
  MUST(fd >= 0);
  for (size_t i = 4; i < size; i++) {
    char changed = (char)(bytes[i] ^ 1 << i % 8);
    MUST(pwrite(fd, &changed, 1, (off_t)i) == 1);
    read_all(bad);
    MUST(pwrite(fd, bytes + i, 1, (off_t)i) == 1);
  }
  close(fd);
  free(bytes);
}

/* Reads a pickle: its head, `times` times the instructions, and the end. */
static ampc_status pickle(const char *head, const char *each, size_t size, int times,
                          const char *end)
{
  size_t room = strlen(head) + size * (size_t)times + strlen(end) + 3, at = 2;
  uint8_t *bytes = malloc(room);
  MUST(bytes);
  memcpy(bytes, "\x80\x02", 2);
  memcpy(bytes + at, head, strlen(head));
  at += strlen(head);
  for (int i = 0; i < times; i++, at += size) memcpy(bytes + at, each, size);
  memcpy(bytes + at, end, strlen(end) + 1);
  bytes[at + strlen(end)] = '.';
  Pickle p;
  ampc_status status = pickle_read("pickle", bytes, (int64_t)room, &p);
  pickle_free(&p);
  free(bytes);
  return status;
}

static void check_pickles(void)
{
  CHECK(pickle("N", "\x85", 1, 1 << 20, "") == AMPC_OK); /* a deep one */
  CHECK(pickle("]", "q\0h\0a", 5, 1000, "") == AMPC_OK); /* it contains itself */
  CHECK(pickle("", "(", 1, 1 << 20, "t") == AMPC_BAD_FILE);
  CHECK(pickle("N", ")R", 2, 1 << 20, "") == AMPC_OK); /* the result of a call is called */
  static const char *const right[] = {"cos\nsystem\n(U\2lst\x85R",
                                      "cos\nsystem\n)\x81}b",
                                      "(icos\nC\n",
                                      "(cos\nC\nNo",
                                      "N0N2\x86",
                                      "(NN1N",
                                      "N)R",
                                      "]Q",
                                      "NQ",
                                      "\x82\1)R",
                                      "\x8f(N\x90",
                                      "(NN\x91",
                                      "cA\nB\n)R(NNu",
                                      "cA\nB\n)RNa",
                                      "ccollections\nOrderedDict\n]](NNea\x85R",
                                      "N\x97\x98\x86",
                                      "ctorch\nFloatStorage\n)R"};
  for (size_t i = 0; i < sizeof right / sizeof *right; i++)
    CHECK_MSG(pickle(right[i], "", 0, 0, "") == AMPC_OK, "%zu: %s", i, ampc_last_error());
  static const char *const wrong[] = {"",
                                      "NN",
                                      "t",
                                      "R",
                                      "Q",
                                      "a",
                                      "s",
                                      "u",
                                      "e",
                                      "b",
                                      "(",
                                      "NNa",
                                      "NNNs",
                                      ")R",
                                      "h\5",
                                      "q\5",
                                      "\x85",
                                      "0",
                                      "2",
                                      "1",
                                      "i",
                                      "o",
                                      "(o",
                                      "icos\nC\n",
                                      "\x81",
                                      "N\x92",
                                      "NN\x93",
                                      "\x94",
                                      "C\5a",
                                      "\x95\1",
                                      "\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
                                      "\x96\xff\xff\xff\xff\xff\xff\xff\xff",
                                      "\x82",
                                      "I1\n",
                                      "i",
                                      "X\5",
                                      "ctorch\n",
                                      "\x8a\x09",
                                      "(NNu",
                                      "}(Nu",
                                      "ccollections\nOrderedDict\n(Nt",
                                      "ccollections\nOrderedDict\n]Na\x85R"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    CHECK_MSG(pickle(wrong[i], "", 0, 0, "") == AMPC_BAD_FILE, "pickle %zu is read", i);
  CHECK(strstr(ampc_last_error(), "pickle"));
}

int main(void)
{
  temp_open();
  check_names();
  check_objects();
  check_strange();
  check_kinds();
  check_refused();
  check_damage(FOLDER "state.pth");
  check_damage(FOLDER "kinds.pth");
  check_damage(FOLDER "old.pth");
  check_damage(FOLDER "objects5.pth");
  check_pickles();
  temp_close();
  return check_done();
}
