/* IDX files: every element type, plain and gzipped; truncated at every byte; wrong headers. */
#include <math.h>
#include <zlib.h>
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};

static ampc_source source(ampc_dtype t, uint32_t rank, int64_t a, int64_t b)
{
  return (ampc_source){.path = "x", .dtype = t, .rank = rank, .dim = {a, b}, .part_end = 1};
}

/* Opens the file "x" of the folder. The caller closes *s if the status is AMPC_OK. */
static ampc_status read_source(const ampc_program *p, const ampc_source *desc, DataSource *s)
{
  ampc_status status = source_open(p, desc, temp_folder, 1, s);
  if (status) source_close(s);
  return status;
}

static void expect_refused(const ampc_source *desc, const char *word, const char *what)
{
  DataSource s;
  ampc_status status = read_source(&program, desc, &s);
  CHECK_MSG(status == AMPC_BAD_FILE, "%s: status %d", what, status);
  CHECK_MSG(strstr(ampc_last_error(), word) && strstr(ampc_last_error(), temp_folder),
            "%s: message without `%s`: %s", what, word, ampc_last_error());
  if (!status) source_close(&s);
}

static void write_gz(const void *bytes, size_t size)
{
  gzFile f = gzopen(temp_path("x"), "wb");
  MUST(f && gzwrite(f, bytes, (unsigned)size) == (int)size && gzclose(f) == Z_OK);
}

static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2,  0,   0,
                                 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255, 12};

static void check_images(const ampc_source *desc)
{
  DataSource s;
  MUST(read_source(&program, desc, &s) == AMPC_OK);
  CHECK(s.count == 3 && s.sample_bytes == 4);
  uint8_t sample[4];
  source_copy(&s, 2, 1, 0, sample);
  CHECK(memcmp(sample, images + 24, 4) == 0);
  source_close(&s);
}

static void check_plain_and_gz(void)
{
  ampc_source desc = source(AMPC_U8, 2, 2, 2);
  temp_write(temp_path("x"), images, sizeof images);
  check_images(&desc);
  desc.samples = 3;
  check_images(&desc);
  write_gz(images, sizeof images);
  check_images(&desc);
  desc.samples = 4;
  expect_refused(&desc, "3 samples", "another number of samples");
}

/* Checks a type: a file with two samples of one element, -2 (254 if unsigned) and 3. */
static void check_type(uint8_t code, const uint8_t *elements, size_t size, ampc_dtype t, double a,
                       double b)
{
  uint8_t file[24] = {0, 0, code, 1, 0, 0, 0, 2};
  memcpy(file + 8, elements, size);
  temp_write(temp_path("x"), file, 8 + size);
  for (int real64 = 0; real64 < 2; real64++) {
    ampc_program p = {.name = "test", .real64 = real64};
    ampc_source desc = source(t, 0, 0, 0);
    DataSource s;
    MUST(read_source(&p, &desc, &s) == AMPC_OK);
    for (int i = 0; i < 2; i++) {
      double want = i ? b : a, d = 0;
      float f = 0;
      int32_t n = 0;
      uint8_t u = 0;
      source_copy(&s, i, 1, 0, t == AMPC_U8 ? &u : t == AMPC_I32 ? &n : real64 ? (void *)&d : &f);
      CHECK_MSG((double)u + n + (double)f + d == want, "type %02x", code);
    }
    source_close(&s);
  }
  if (t == AMPC_U8) return;
  char word[32]; /* a source with shape= alone has bytes */
  snprintf(word, sizeof word, "shape=[], dtype=%s", ampc_dtype_name(t));
  ampc_source of_bytes = source(AMPC_U8, 0, 0, 0);
  expect_refused(&of_bytes, word, "another type");
}

static void check_types(void)
{
  check_type(0x08, (uint8_t[]){254, 3}, 2, AMPC_U8, 254, 3);
  check_type(0x09, (uint8_t[]){254, 3}, 2, AMPC_I32, -2, 3);
  check_type(0x0b, (uint8_t[]){255, 254, 1, 3}, 4, AMPC_I32, -2, 259);
  check_type(0x0c, (uint8_t[]){255, 255, 255, 254, 1, 0, 0, 3}, 8, AMPC_I32, -2, 16777219);
  check_type(0x0d, (uint8_t[]){0xc0, 0, 0, 0, 0x40, 0x40, 0, 0}, 8, AMPC_F32, -2, 3);
  check_type(0x0e, (uint8_t[]){0xc0, 0, 0, 0, 0, 0, 0, 0, 0x40, 8, 0, 0, 0, 0, 0, 0}, 16, AMPC_F32,
             -2, 3);
}

static void check_truncation(void)
{
  ampc_source desc = source(AMPC_U8, 2, 2, 2);
  for (size_t n = 0; n < sizeof images; n++) {
    temp_write(temp_path("x"), images, n);
    expect_refused(&desc, "truncated", "cut");
  }
  write_gz(images, sizeof images);
  size_t size;
  char *gz = temp_read(temp_path("x"), &size);
  for (size_t n = 0; n < size; n++) {
    temp_write(temp_path("x"), gz, n);
    DataSource s;
    CHECK_MSG(read_source(&program, &desc, &s) == AMPC_BAD_FILE, "gzip cut to %zu bytes", n);
  }
  gz[size - 6] ^= 1; /* the gzip checksum */
  temp_write(temp_path("x"), gz, size);
  expect_refused(&desc, "damaged", "checksum");
  free(gz);
}

static void check_lies(void)
{
  ampc_source desc = source(AMPC_U8, 2, 2, 2);
  uint8_t file[sizeof images + 1] = {0};
  memcpy(file, images, sizeof images);
  temp_write(temp_path("x"), file, sizeof file);
  expect_refused(&desc, "more than the 28 bytes that its header promises", "trailing byte");
  write_gz(file, sizeof file);
  expect_refused(&desc, "more than the 28 bytes that its header promises",
                 "trailing byte, gzipped");
  static const struct {
    int at, value;
    const char *word;
  } lies[] = {{0, 'P', "no IDX"},
              {2, 0x0a, "type 0x0a, expected 0x08 (u8), 0x09 (i8)"},
              {3, 0, "0 axes; 1 to 6"},
              {3, 9, "9 axes; 1 to 6"},
              {3, 2, "[2]"},
              {7, 4, "truncated"},
              {4, 255, "truncated"},
              {7, 0, "empty"},
              {11, 3, "u8[3, 2]"},
              {2, 0x0c, "i32[2, 2]"},
              {7, 2, "more than the 24 bytes"}};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    memcpy(file, images, sizeof images);
    file[lies[i].at] = (uint8_t)lies[i].value;
    temp_write(temp_path("x"), file, sizeof images);
    expect_refused(&desc, lies[i].word, lies[i].word);
  }
  unlink(temp_path("x"));
  expect_refused(&desc, "No such file", "missing");
  mkdir(temp_path("x"), 0700);
  expect_refused(&desc, "folder", "a folder");
  rmdir(temp_path("x"));
}

static void check_limits_and_parts(void)
{
  static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12};
  temp_write(temp_path("x"), labels, sizeof labels);
  ampc_source desc = source(AMPC_U8, 0, 0, 0);
  desc.limit = 10;
  desc.limit_why = "classes of cross_entropy, mlp.amp:14";
  expect_refused(&desc, "sample 9 is 12, expected 0 to 9 (classes of cross_entropy, mlp.amp:14)",
                 "limit");
  desc.part_end = 0.9;
  DataSource s;
  MUST(read_source(&program, &desc, &s) == AMPC_OK);
  CHECK(s.first == 0 && s.count == 9);
  source_close(&s);
  desc.part_begin = 0.9;
  desc.part_end = 1;
  desc.limit = 13;
  MUST(read_source(&program, &desc, &s) == AMPC_OK);
  uint8_t label;
  source_copy(&s, 0, 1, 0, &label);
  CHECK(s.first == 9 && s.count == 1 && label == 12);
  source_close(&s);
}

/* Checks that adjacent ranges (`part=`) neither overlap nor leave a gap. */
static void check_part_edges(void)
{
  for (int64_t n = 0; n < 300; n++) {
    int64_t at = 0;
    for (int i = 0; i < 7; i++) {
      int64_t first, count;
      ampc_part(n, i / 7.0, (i + 1) / 7.0, &first, &count);
      CHECK(first == at);
      at += count;
    }
    CHECK(at == n);
  }
}

static void check_synthetic(void)
{
  enum { N = 5000 };
  ampc_source desc = {.kind = AMPC_SOURCE_SYNTHETIC,
                      .dtype = AMPC_F32,
                      .rank = 1,
                      .dim = {2},
                      .samples = N,
                      .part_end = 1,
                      .low = 2,
                      .high = 4,
                      .stream = 3};
  DataSource s;
  MUST(read_source(&program, &desc, &s) == AMPC_OK);
  double mean = 0, least = 9, most = 0;
  for (int i = 0; i < N; i++) {
    float x[2];
    source_copy(&s, i, 1, 0, x);
    mean += ((double)x[0] + (double)x[1]) / 2 / N;
    least = fmin(least, (double)x[0]);
    most = fmax(most, (double)x[0]);
  }
  CHECK(fabs(mean - 3) < 0.03 && least >= 2 && least < 2.01 && most < 4 && most > 3.99);
  source_close(&s);
  desc.dtype = AMPC_U8;
  desc.rank = 0;
  desc.low = 0;
  desc.high = 3;
  desc.limit = 3;
  MUST(read_source(&program, &desc, &s) == AMPC_OK);
  int seen[256] = {0};
  for (int i = 0; i < N; i++) {
    uint8_t x;
    source_copy(&s, i, 1, 0, &x);
    seen[x]++;
  }
  for (int i = 0; i < 256; i++) CHECK(i < 3 ? abs(seen[i] - N / 3) < 200 : seen[i] == 0);
  source_close(&s);
  desc.limit = 2;
  CHECK(read_source(&program, &desc, &s) == AMPC_BAD_FILE);
}

int main(void)
{
  temp_open();
  check_plain_and_gz();
  check_types();
  check_truncation();
  check_lies();
  check_limits_and_parts();
  check_part_edges();
  check_synthetic();
  temp_close();
  return check_done();
}
