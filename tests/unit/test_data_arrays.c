/* Arrays in files: those that NumPy and safetensors wrote, raw binary, tokens, CIFAR-10; several
 * files as one source; wrong headers; files that are truncated at every byte. */
#include <math.h>
#include <zlib.h>
#include "runtime/base/convert.h"
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};

static ampc_header probe(const ampc_format *f, const char *path, const char *args,
                         ampc_status *status)
{
  bool found;
  ampc_header h = {0};
  *status = ampc_shards_probe(f, path, args, &found, &h);
  return h;
}

static ampc_source source_of(const ampc_format *f, const char *path, const char *args,
                             const ampc_header *h)
{
  ampc_source s = {.kind = f->kind, .path = path, .args = args, .part_end = 1};
  s.dtype = h->dtype;
  s.rank = h->rank;
  s.samples = h->samples;
  memcpy(s.dim, h->dim, sizeof s.dim);
  return s;
}

/* Returns the path of a file. A name without a slash is a file of tests/data. */
static const char *place(const char *name)
{
  static char path[512];
  snprintf(path, sizeof path, "%s%s", strchr(name, '/') ? "" : "tests/data/", name);
  return path;
}

/* Checks that the file is a source of type t. Element i is `first` + i * step, or i % 2 if the type
 * is bool. With a step of 0, any values are accepted. */
static void expect(const char *format, const char *name, const char *args, ampc_dtype t,
                   int64_t samples, uint32_t rank, double first, double step)
{
  const ampc_format *f = ampc_format_find(format);
  ampc_status status;
  ampc_header h = probe(f, place(name), args, &status);
  CHECK_MSG(!status, "%s: %s", name, ampc_last_error());
  CHECK_MSG(h.dtype == t && h.samples == samples && h.rank == rank, "%s: %s, %lld samples", name,
            ampc_dtype_name(h.dtype), (long long)h.samples);
  for (int real64 = 0; real64 < 2; real64++) {
    ampc_program p = {.name = "test", .real64 = real64};
    ampc_source desc = source_of(f, place(name), args, &h);
    DataSource s;
    MUST(source_open(&p, &desc, "", 1, &s) == AMPC_OK);
    char bytes[400];
    MUST(s.sample_bytes <= (int64_t)sizeof bytes);
    for (int64_t i = s.count; i-- > 0;) {
      MUST(source_copy(&s, i, 1, AMPC_AS_STORED, bytes) == AMPC_OK);
      for (int64_t k = 0; k < s.elements; k++) {
        double has = number_load(t, real64, bytes, k), n = (double)(i * s.elements + k);
        double want = t == AMPC_BOOL ? fmod(n, 2) : first + step * n;
        CHECK_MSG(step == 0 || has == want, "%s: element %g is %g, not %g", name, n, has, want);
      }
    }
    source_close(&s);
  }
}

static void refuse(const char *format, const char *name, const char *args, const char *word)
{
  ampc_status status;
  probe(ampc_format_find(format), place(name), args, &status);
  CHECK_MSG(status == AMPC_BAD_FILE, "%s: status %d", name, status);
  CHECK_MSG(strstr(ampc_last_error(), word), "%s: no `%s` in: %s", name, word, ampc_last_error());
}

static void check_numpy(void)
{
  expect("npy", "f8.npy", NULL, AMPC_F32, 4, 2, 0, 1);
  expect("npy", "f4.npy", NULL, AMPC_F32, 4, 2, 0, 1);
  expect("npy", "f4.npy.gz", NULL, AMPC_F32, 4, 2, 0, 1);
  expect("npy", "f4_big.npy", NULL, AMPC_F32, 4, 2, 0, 1);
  expect("npy", "f2.npy", NULL, AMPC_F16, 4, 2, 0, 1);
  expect("npy", "i8.npy", NULL, AMPC_I64, 4, 2, -12, 1);
  expect("npy", "i4.npy", NULL, AMPC_I32, 4, 2, -12, 1);
  expect("npy", "i2_big.npy", NULL, AMPC_I32, 4, 2, -12, 1);
  expect("npy", "u4.npy", NULL, AMPC_I64, 4, 2, 0, 1);
  expect("npy", "u2.npy", NULL, AMPC_I32, 4, 2, 0, 1);
  expect("npy", "u1.npy", NULL, AMPC_U8, 4, 2, 0, 1);
  expect("npy", "i1.npy", NULL, AMPC_I32, 4, 2, -12, 1);
  expect("npy", "b1.npy", NULL, AMPC_BOOL, 4, 2, 0, 1);
  expect("npz", "stored.npz", "key=x\n", AMPC_F32, 4, 2, 0, 1);
  expect("npz", "stored.npz", "key=y\n", AMPC_I64, 4, 0, 10, 10);
  expect("npz", "deflated.npz", "key=x\n", AMPC_F32, 4, 2, 0, 1);
  expect("npz", "deflated.npz", "key=y\n", AMPC_I64, 4, 0, 10, 10);
  expect("npz", "zip64.npz", "key=x\n", AMPC_F32, 4, 2, 0, 1);
  expect("npz", "zip64.npz", "key=y\n", AMPC_I64, 4, 0, 10, 10);
  expect("safetensors", "tensors.safetensors", "key=x\n", AMPC_F32, 4, 2, 0, 1);
  expect("safetensors", "tensors.safetensors", "key=y\n", AMPC_I64, 4, 0, 10, 10);
  expect("safetensors", "tensors.safetensors", "key=h\n", AMPC_F16, 4, 2, 0, 1);
  expect("safetensors", "tensors.safetensors.gz", "key=x\n", AMPC_F32, 4, 2, 0, 1);
  refuse("npy", "fortran.npy", NULL, "ascontiguousarray");
  refuse("npy", "u8.npy", NULL, "u64");
  refuse("npy", "text.npy", NULL, "'<U2'");
  refuse("npy", "records.npy", NULL, "records");
  refuse("npy", "number.npy", NULL, "single number");
  refuse("npy", "stored.npz", NULL, "no NPY file");
  refuse("npz", "f4.npy", "key=x\n", "no directory");
  refuse("npz", "stored.npz", "key=z\n", "it has x, y");
  refuse("safetensors", "tensors.safetensors", "key=z\n", "no tensor z among its 3: ");
  refuse("safetensors", "f4.npy", "key=x\n", "no safetensors file");
}

/* Truncates the file at each byte and inverts each byte. Each result must be refused or read,
 * without any other error. Some bytes have no meaning. If the format has a checksum (`summed`),
 * more than half of the inversions must be refused. */
static void check_damage(const char *format, const char *name, const char *args, bool summed)
{
  size_t size;
  char *bytes = temp_read(place(name), &size), path[512];
  snprintf(path, sizeof path, "%s", temp_path("x"));
  const ampc_format *f = ampc_format_find(format);
  ampc_status status;
  ampc_header good = probe(f, place(name), args, &status);
  int64_t read = 0;
  for (size_t i = 0; i < 2 * size; i++) {
    if (i >= size) bytes[i - size] = (char)~bytes[i - size];
    temp_write(path, bytes, i < size ? i : size);
    if (i >= size) bytes[i - size] = (char)~bytes[i - size];
    ampc_source desc = source_of(f, path, args, &good);
    DataSource s;
    status = source_open(&program, &desc, "", 1, &s);
    CHECK_MSG(!status || status == AMPC_BAD_FILE, "%s, %zu: status %d", name, i, status);
    CHECK_MSG(status || i >= size, "%s cut to %zu bytes is read", name, i);
    CHECK_MSG(!status || strstr(ampc_last_error(), path), "%s, %zu: %s", name, i,
              ampc_last_error());
    char sample[200];
    for (int64_t k = 0; !status && k < s.count; k++)
      MUST(source_copy(&s, k, 1, 0, sample) == AMPC_OK);
    read += !status;
    source_close(&s);
  }
  CHECK_MSG(!summed || read < (int64_t)size / 2, "%s: %lld changes of %zu were not detected", name,
            (long long)read, size);
  free(bytes);
}

static void write_text(const char *text, int64_t size)
{
  temp_write(temp_path("x"), text, (size_t)size);
}

/* Writes an NPY file with that dict and 24 bytes of data. */
static void write_npy(const char *dict)
{
  char file[400] = "\x93NUMPY\1\0";
  int n = snprintf(file + 10, sizeof file - 34, "%s", dict);
  file[8] = (char)n;
  write_text(file, 10 + n + 24);
}

static void check_headers(void)
{
  static const struct {
    const char *dict, *word;
  } bad[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", "truncated"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "truncated"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", "empty"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,6)}", "more than 6 axes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}", "damaged"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "damaged"},
      {"{'descr': '<f4', 'shape': (6,)}", "damaged"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "damaged"},
      {"{'descr': '<f3', 'fortran_order': False, 'shape': (6,)}", "'<f3'"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", "'<c8'"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "'object'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}", "more than"},
  };
  static const char *const good[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}",
      "{\"shape\": (6, ), 'fortran_order': True, 'descr': '<f4', }   \n",
      "{'descr': '=f4', 'fortran_order': False, 'shape': (2, 3,)}",
  };
  ampc_header six = {.dtype = AMPC_F32};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    write_npy(bad[i].dict);
    ampc_source desc = source_of(&ampc_format_npy, temp_path("x"), NULL, &six);
    DataSource s;
    CHECK_MSG(source_open(&program, &desc, "", 1, &s) == AMPC_BAD_FILE, "%s", bad[i].dict);
    CHECK_MSG(strstr(ampc_last_error(), bad[i].word), "%s: %s", bad[i].dict, ampc_last_error());
    source_close(&s);
  }
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    ampc_status status;
    write_npy(good[i]);
    probe(&ampc_format_npy, temp_path("x"), NULL, &status);
    CHECK_MSG(!status, "%s: %s", good[i], ampc_last_error());
  }
}

/* Writes a safetensors file with that header and 24 bytes of data. */
static void write_tensors(const char *json)
{
  char file[600] = {0};
  int n = snprintf(file + 8, sizeof file - 32, "%s", json);
  file[0] = (char)n;
  file[1] = (char)(n >> 8);
  write_text(file, 8 + n + 24);
}

#define X(offsets) "{\"x\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":" offsets "}"

static void check_tensors(void)
{
  static const struct {
    const char *json, *word;
  } bad[] = {
      {X("[0,24]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[20,28]}}",
       "tensor y ends at byte 28; 24 bytes follow its header"},
      {X("[0,24]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[20,24]}}",
       "tensors x and y overlap at byte 20"},
      {X("[0,20]") "}", "tensor x has 20 bytes, its shape needs 24"},
      {X("[24,0]") "}", "tensor x begins at byte 24 and ends at 0"},
      {X("[9223372036854775800,9223372036854775807]") "}",
       "tensor x ends at byte 9223372036854775807; 24 bytes follow its header"},
      {X("[18446744073709551616,18446744073709551640]") "}", "not the JSON"},
      {X("[0,24,30]") "}", "not the JSON"},
      {X("[-1,23]") "}", "not the JSON"},
      {X("[0,24]") ",\"x\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
       "duplicate object key"},
      {X("[0,24]"), "not the JSON"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[3,2],\"dtype\":\"F32\",\"data_offsets\":[0,24]}}",
       "not the JSON"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24],\"shape\":[3,2]}}",
       "not the JSON"},
      {"{\"x\":{\"data_offsets\":[0,0],\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}",
       "not the JSON"},
      {"{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[3,8],\"data_offsets\":[0,24]}}", "F8_E4M3"},
      {"{\"x\":{\"dtype\":\"U64\",\"shape\":[3],\"data_offsets\":[0,24]}}", "u64"},
      {"{\"x\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
       "\"y\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[8,24]}}",
       "single number"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,2],\"data_offsets\":[0,24]}}",
       "tensor x has 24 bytes, its shape needs over 9223372036854775807"},
      {"{}", "bytes 0 to 24 after its header belong to no tensor"},
      {"[]", "it is not an object"},
      {X("[0,24]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,0],"
                   "\"data_offsets\":[24,24]}}",
       "its tensor y has 9 axes; at most 8 are read"},
  };
  ampc_status status;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    write_tensors(bad[i].json);
    probe(&ampc_format_safetensors, temp_path("x"), "key=x\n", &status);
    CHECK_MSG(status == AMPC_BAD_FILE && strstr(ampc_last_error(), bad[i].word), "%s: %s",
              bad[i].json, status ? ampc_last_error() : "read");
  }
  write_tensors(" {\"\\u0078\" : {\"shape\":[3,2], \"data_offsets\":[0,24],\"dtype\":\"F32\"} } ");
  probe(&ampc_format_safetensors, temp_path("x"), "key=x\n", &status);
  CHECK_MSG(!status, "%s", ampc_last_error());
  write_tensors(X("[0,24]") ",\"y\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,0],"
                            "\"data_offsets\":[24,24]}}");
  probe(&ampc_format_safetensors, temp_path("x"), "key=x\n", &status);
  CHECK_MSG(!status, "%s", ampc_last_error());
  temp_write(temp_path("x"), "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
  refuse("safetensors", temp_path("x"), "key=x\n", "header would have 9223372036854775807 bytes");
}

/* Checks a zip file whose members have one name: readers differ in the member that they take. */
static void check_zip_names(void)
{
  size_t size;
  char *bytes = temp_read("tests/data/stored.npz", &size);
  for (char *at = bytes; (at = memmem(at, (size_t)(bytes + size - at), "y.npy", 5)); at++)
    *at = 'x';
  temp_write(temp_path("x"), bytes, size);
  refuse("npz", temp_path("x"), "key=x\n", "two members x.npy");
  free(bytes);
}

/* Checks a zip directory whose sizes differ from those of the members. */
static void check_zip(void)
{
  size_t size;
  char *bytes = temp_read("tests/data/deflated.npz", &size);
  char *entry = memmem(bytes, size, "PK\1\2", 4);
  MUST(entry);
  uint32_t huge = 4000000000u, other = 300;
  char *copy = malloc(size);
  MUST(copy);
  memcpy(copy, bytes, size);
  memcpy(copy + (entry - bytes) + 24, &huge, 4);
  temp_write(temp_path("x"), copy, size);
  refuse("npz", temp_path("x"), "key=x\n", "cannot have 4000000000 bytes");
  memcpy(copy, bytes, size);
  memcpy(copy + (entry - bytes) + 20, &huge, 4);
  temp_write(temp_path("x"), copy, size);
  refuse("npz", temp_path("x"), "key=x\n", "outside");
  memcpy(copy, bytes, size);
  memcpy(copy + (entry - bytes) + 24, &other, 4);
  temp_write(temp_path("x"), copy, size);
  ampc_header h = {.dtype = AMPC_F32, .rank = 2, .dim = {3, 2}, .samples = 4};
  ampc_source desc = source_of(&ampc_format_npz, temp_path("x"), "key=x\n", &h);
  DataSource s;
  CHECK(source_open(&program, &desc, "", 1, &s) == AMPC_BAD_FILE);
  source_close(&s);
  copy[entry - bytes + 8] |= 1;
  temp_write(temp_path("x"), copy, size);
  refuse("npz", temp_path("x"), "key=x\n", "encrypted");
  memcpy(copy, bytes, size);
  copy[entry - bytes + 10] = 12;
  temp_write(temp_path("x"), copy, size);
  refuse("npz", temp_path("x"), "key=x\n", "method 12");
  free(copy);
  free(bytes);
}

/* Checks that a regular file that cannot be read is not called damaged. */
static void check_machine(void)
{
  refuse("npy", "/proc/self/mem", NULL, "cannot read /proc/self/mem: Input/output error");
  refuse("idx", "/proc/self/mem", NULL, "cannot read /proc/self/mem: Input/output error");
  refuse("csv", "/proc/self/mem", "column=0\nnumber=1\nscalar=0\ndtype=f32\nheader=0\nsep=,\n",
         "cannot read /proc/self/mem: Input/output error");
}

static void check_raw(void)
{
  static const float values[] = {0, 1, 2, 3, 4, 5};
  temp_write(temp_path("x"), values, sizeof values);
  expect("raw", temp_path("x"), "shape=2\ndtype=f32\n", AMPC_F32, 3, 1, 0, 1);
  expect("raw", temp_path("x"), "dtype=f32\n", AMPC_F32, 6, 0, 0, 1);
  refuse("raw", temp_path("x"), "shape=4\ndtype=f32\n",
         "24 bytes, which are not whole samples of 16");
  refuse("raw", temp_path("x"), "shape=7\ndtype=f32\n", "less than one sample");
  temp_write(temp_path("x.gz"), values, sizeof values);
  refuse("raw", temp_path("x.gz"), "shape=2\ndtype=f32\n", "not compressed with gzip");
  temp_write(temp_path("x.gz"), "\x1f\x8b\x08\0\0\0\0\0\0\0\7\7\7\7\7\7\7\7", 18);
  refuse("raw", temp_path("x.gz"), "shape=2\ndtype=f32\n", "damaged: invalid block type");
  gzFile f = gzopen(temp_path("x.gz"), "wb");
  MUST(f && gzwrite(f, values, sizeof values) == sizeof values && gzclose(f) == Z_OK);
  expect("raw", temp_path("x.gz"), "shape=2\ndtype=f32\n", AMPC_F32, 3, 1, 0, 1);
  ampc_header h;
  CHECK(ampc_format_raw.probe(&ampc_format_raw, NULL, "shape=2\ndtype=f64\n", &h) &&
        strstr(ampc_last_error(), "f64"));
  CHECK(ampc_format_raw.probe(&ampc_format_raw, NULL, "shape=0\ndtype=u8\n", &h) &&
        strstr(ampc_last_error(), "size 0"));
}

/* Checks windows. Consecutive ones overlap by one token. A random window lies within the selected
 * range of the file, and is the same in the same epoch. */
static void check_tokens(void)
{
  uint16_t ids[2][64];
  for (int i = 0; i < 64; i++) {
    ids[0][i] = (uint16_t)i;
    ids[1][i] = (uint16_t)(100 + i);
  }
  temp_write(temp_path("t0.bin"), ids[0], sizeof ids[0]);
  temp_write(temp_path("t1.bin"), ids[1], sizeof ids[1]);
  static const char args[] = "length=8\nformat=u16\nrandom=1\n";
  char path[512];
  snprintf(path, sizeof path, "%s", temp_path("t?.bin"));
  ampc_status status;
  ampc_header h = probe(&ampc_format_tokens, path, args, &status);
  MUST(!status && h.samples == 18 && h.rank == 1 && h.dim[0] == 8);
  ampc_source desc = source_of(&ampc_format_tokens, path, args, &h);
  desc.part_begin = 4.0 / 18; /* windows 4 to 17 of 18: they begin at token 28 */
  DataSource s;
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK && s.count == 14);
  int32_t window[8], again[8], begin[200];
  bool moved = false, apart = false;
  MUST(source_copy(&s, 0, 1, AMPC_AS_STORED, window) == AMPC_OK && window[0] == 28 &&
       window[7] == 35);
  MUST(source_copy(&s, 5, 1, AMPC_AS_STORED, window) == AMPC_OK && window[0] == 100);
  for (int e = 0; e < 200; e++) {
    MUST(source_copy(&s, e % 14, 1, e, window) == AMPC_OK);
    MUST(source_copy(&s, e % 14, 1, e, again) == AMPC_OK && !memcmp(window, again, sizeof again));
    for (int i = 1; i < 8; i++) CHECK(window[i] == window[0] + i);
    CHECK(window[0] >= (e % 14 < 5 ? 28 : 100) && window[0] <= (e % 14 < 5 ? 56 : 156));
    begin[e] = window[0];
    moved = moved || window[0] % 7 != 0;
  }
  CHECK(moved && begin[0] != begin[14]);
  for (int e = 0; e < 20;
       e++) { /* the same sample of both files, relative to the start of the selected range */
    MUST(source_copy(&s, 4, 1, e, window) == AMPC_OK &&
         source_copy(&s, 13, 1, e, again) == AMPC_OK);
    apart = apart || fabs((window[0] - 28) / 29.0 - (again[0] - 100) / 57.0) > 0.1;
  }
  CHECK(apart);
  source_close(&s);
  expect("tokens", temp_path("t0.bin"), "length=2\nformat=u8\n", AMPC_I32, 127, 1, 0, 0);
}

/* Checks shards in llm.c's format: a header of 256 i32, which begins with a magic number, the
 * version and the number of tokens. */
static void check_shards_of_llm_c(void)
{
  struct {
    int32_t head[256];
    uint16_t ids[33];
  } shard = {{20240520, 1, 33}, {0}};
  const int64_t size = (int64_t)sizeof shard.head + (int64_t)sizeof shard.ids;
  for (int i = 0; i < 33; i++) shard.ids[i] = (uint16_t)(50256 - i);
  const char *path = temp_path("shard.bin"), *args = "length=33\nformat=u16\n";
  temp_write(path, &shard, (size_t)size);
  expect("tokens", path, args, AMPC_I32, 1, 1, 50256, -1);
  refuse("tokens", path, "length=9\nformat=i32\n", "its tokens need `format=\"u16\"`");
  expect("tokens", path, "length=9\nformat=u8\n", AMPC_I32, (size - 1) / 8, 1, 0, 0);
  temp_write(path, &shard, (size_t)size - 2);
  refuse("tokens", path, args, "of 33 tokens, but 64 bytes follow its header, expected 66");
  temp_write(path, &shard, 1000);
  refuse("tokens", path, args, "truncated: it begins like an llm.c shard, whose header has 1024");
  shard.head[2] = 32;
  temp_write(path, &shard, (size_t)size);
  refuse("tokens", path, args, "of 32 tokens, but 66 bytes follow its header, expected 64");
  shard.head[2] = -1;
  temp_write(path, &shard, (size_t)size);
  refuse("tokens", path, args, "of -1 tokens");
  shard.head[1] = 2;
  temp_write(path, &shard, (size_t)size);
  refuse("tokens", path, args, "of version 2; only version 1");
  shard.head[0] = 20240801;
  shard.head[1] = 7;
  temp_write(path, &shard, (size_t)size);
  refuse("tokens", path, args, "with 32-bit tokens; only 16-bit tokens can be read");
  shard.head[0] = 20240521; /* tokens that resemble that header */
  temp_write(path, &shard, (size_t)size);
  expect("tokens", path, args, AMPC_I32, (size / 2 - 1) / 32, 1, 0, 0);
}

static void check_cifar10(void)
{
  static uint8_t records[2][3][3073];
  for (int b = 0; b < 2; b++)
    for (int i = 0; i < 3; i++) memset(records[b][i], 10 * b + i, 3073);
  temp_write(temp_path("data_batch_1.bin"), records[0], sizeof records[0]);
  temp_write(temp_path("data_batch_2.bin"), records[1], sizeof records[1]);
  char path[512];
  snprintf(path, sizeof path, "%s", temp_path("data_batch_*.bin"));
  for (int label = 0; label < 2; label++) {
    const char *args = label ? "of=label\n" : "of=image\n";
    ampc_status status;
    ampc_header h = probe(&ampc_format_cifar10, path, args, &status);
    MUST(!status && h.samples == 6 && h.rank == (label ? 0 : 3));
    CHECK(h.dtype == (label ? AMPC_I64 : AMPC_U8) && (label || (h.dim[0] == 3 && h.dim[2] == 32)));
    ampc_source desc = source_of(&ampc_format_cifar10, path, args, &h);
    DataSource s;
    MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK);
    static char all[6 * 3072];
    MUST(source_copy(&s, 0, 6, 0, all) == AMPC_OK); /* across a file boundary */
    for (int i = 0; i < 6; i++) {
      int want = i / 3 * 10 + i % 3;
      CHECK(label ? ((int64_t *)(void *)all)[i] == want : all[i * 3072 + 3071] == want);
    }
    source_close(&s);
  }
  temp_write(temp_path("data_batch_2.bin"), records[1], 5000);
  refuse("cifar10", path, "of=image\n", "whole records of 3073");
  unlink(temp_path("data_batch_1.bin"));
  unlink(temp_path("data_batch_2.bin"));
  bool found;
  ampc_header h;
  CHECK(!ampc_shards_probe(&ampc_format_cifar10, path, "of=image\n", &found, &h) && !found);
}

/* Checks that a large file is not copied into memory. If it was truncated meanwhile, reads fail. */
static void check_large(void)
{
  static const int64_t size = (int64_t)300 << 20;
  temp_write(temp_path("x"), "", 0);
  MUST(truncate(temp_path("x"), size) == 0);
  ampc_header h;
  MUST(ampc_format_raw.probe(&ampc_format_raw, temp_path("x"), "shape=1024\ndtype=u8\n", &h) ==
       AMPC_OK);
  ampc_source desc = source_of(&ampc_format_raw, temp_path("x"), "shape=1024\ndtype=u8\n", &h);
  DataSource s;
  uint8_t sample[1024] = {1};
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK && s.count == size / 1024);
  CHECK(source_copy(&s, s.count - 1, 1, 0, sample) == AMPC_OK && !sample[0]);
  MUST(truncate(temp_path("x"), size / 2) == 0);
  CHECK(source_copy(&s, s.count - 1, 1, 0, sample) == AMPC_BAD_FILE);
  CHECK_MSG(strstr(ampc_last_error(), "became shorter"), "%s", ampc_last_error());
  source_close(&s);
  temp_write(temp_path("x"), "", 0);
}

/* Checks that all files of a source must have one type. */
static void check_shards(void)
{
  expect("npy", "tests/data/f[48].npy", NULL, AMPC_F32, 8, 2, 0, 0);
  refuse("npy", "tests/data/[fu]4.npy", NULL, "different types");
  temp_write(temp_path("a*b.npy"), "x", 1); /* the name is first tried as it is, not as a pattern */
  refuse("npy", temp_path("a*b.npy"), NULL, "no NPY file");
}

int main(void)
{
  temp_open();
  check_numpy();
  check_headers();
  check_tensors();
  check_machine();
  check_zip();
  check_zip_names();
  check_raw();
  check_tokens();
  check_shards_of_llm_c();
  check_cifar10();
  check_shards();
  check_large();
  check_damage("npy", "f4.npy", NULL, false);
  check_damage("npy", "f4.npy.gz", NULL, true);
  check_damage("npz", "stored.npz", "key=x\n", false);
  check_damage("npz", "deflated.npz", "key=x\n", false);
  check_damage("npz", "zip64.npz", "key=x\n", false);
  check_damage("safetensors", "tensors.safetensors", "key=x\n", false);
  temp_close();
  return check_done();
}
