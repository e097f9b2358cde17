/* CSV files: columns by name and by number, quotes, types; messages with line numbers. */
#include <math.h>
#include <zlib.h>
#include "runtime/data/formats/fields.h"
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};

#define AB "number=0\nscalar=0\ndtype=f32\nheader=1\nsep=,\n"

/* Opens the text with those arguments. The caller closes *s if the status is AMPC_OK. */
static ampc_status open_text(const char *text, size_t size, const char *args, DataSource *s)
{
  static ampc_source desc;
  ampc_header h = {0}, probed;
  bool found;
  temp_write(temp_path("x"), text, size);
  ampc_status status = ampc_format_csv.probe(&ampc_format_csv, NULL, args, &h);
  MUST(!status);
  desc = (ampc_source){.kind = AMPC_SOURCE_CSV,
                       .path = "x",
                       .args = args,
                       .part_end = 1,
                       .dtype = h.dtype,
                       .rank = h.rank};
  memcpy(desc.dim, h.dim, sizeof desc.dim);
  ampc_status seen = ampc_shards_probe(&ampc_format_csv, temp_path("x"), args, &found, &probed);
  status = source_open(&program, &desc, temp_folder, 1, s);
  CHECK_MSG(!status || status == AMPC_BAD_FILE, "status %d", status);
  CHECK_MSG(status || (!seen && probed.samples == s->count), "the compiler refuses %s", text);
  if (status) source_close(s);
  return status;
}

/* Checks that the file has these values, in the order of the samples. */
static void expect(const char *text, const char *args, int64_t samples, const double *values)
{
  DataSource s;
  if (open_text(text, strlen(text), args, &s)) {
    CHECK_MSG(false, "%s: %s", text, ampc_last_error());
    return;
  }
  CHECK_MSG(s.count == samples, "%s: %lld samples", text, (long long)s.count);
  char bytes[256];
  for (int64_t i = 0; i < s.count; i++) {
    MUST(source_copy(&s, i, 1, 0, bytes) == AMPC_OK);
    for (int64_t k = 0; k < s.elements; k++) {
      ampc_dtype t = s.desc->dtype;
      double has = t == AMPC_F32   ? (double)((float *)(void *)bytes)[k]
                   : t == AMPC_I32 ? (double)((int32_t *)(void *)bytes)[k]
                                   : (double)((int64_t *)(void *)bytes)[k];
      double want = values[i * s.elements + k];
      CHECK_MSG(has == want || (isnan(has) && isnan(want)), "%s: %g, not %g", text, has, want);
    }
  }
  source_close(&s);
}

static void refuse(const char *text, const char *args, const char *word)
{
  DataSource s;
  ampc_status status = open_text(text, strlen(text), args, &s);
  CHECK_MSG(status && strstr(ampc_last_error(), word), "%s: no `%s` in: %s", text, word,
            status ? ampc_last_error() : "read");
  if (!status) source_close(&s);
}

static void check_reading(void)
{
  static const double two[] = {1, 2, 3, 4}, swapped[] = {2, 1, 4, 3}, one[] = {2, 4};
  static const double odd[] = {-0.5, INFINITY, 1e10, 0.5, -0.5, 5, -INFINITY, INFINITY, -INFINITY};
  static const double filled[] = {7.5, 1, 7.5, 7.5, 2};
  static const double lost[] = {NAN, 1}, whole_filled[] = {-1, 3}, skipped[] = {3, 4};
  static const double ints[] = {9007199254740993.0, -7};
  expect("a,b\n1,2\n3,4\n", "column=a\ncolumn=b\n" AB, 2, two);
  expect("a,b\r\n1,2\r\n\r\n3,4", "column=b\ncolumn=a\n" AB, 2, swapped);
  expect("\xef\xbb\xbf\"a\",\"b\"\n\"1\", 2 \n+3,\"4\"\n\n", "column=a\ncolumn=b\n" AB, 2, two);
  expect("\"x, \"\"y\"\"\nz\",b\n0,2\n0,4\n",
         "column=b\nscalar=1\nnumber=0\ndtype=i64\nheader=1\nsep=,\n", 2, one);
  expect("1;2\n3;4\n", "column=0\ncolumn=1\nscalar=0\nnumber=1\ndtype=i32\nheader=0\nsep=;\n", 2,
         two);
  expect("x\ty\n1\t2\n3\t4\n", "column=1\nscalar=1\nnumber=1\ndtype=f32\nheader=1\nsep=\t\n", 2,
         one);
  expect("a\n-0.5\nInf\n1e10\n.5\n-.5\n+5.\n-Infinity\n1e999\n-1e40\n", "column=a\n" AB, 9, odd);
  expect("a\nnan\n1\n NA \n\"\"\n2\n", "column=a\nmissing=7.5\n" AB, 5, filled);
  expect("a\nNULL\n1\n", "column=a\nmissing=nan\n" AB, 2, lost);
  expect("a\nn/a\n3\n", "column=a\nnumber=0\nscalar=1\ndtype=i32\nheader=1\nsep=,\nmissing=-1\n", 2,
         whole_filled);
  expect("# \"by hand\n2,2,x\n3\n4\n",
         "column=0\nnumber=1\nscalar=1\ndtype=f32\nheader=0\nsep=,\nskip=2\n", 2, skipped);
  expect(" a , b\n1,2\n3,4\n", "column=a\ncolumn=b\n" AB, 2, two);
  expect("a,  \"b \"\n1,2\n3,4\n", "column=a \ncolumn=  \"b \"\n" AB, 2, two);
  expect("# by hand\n\xef\xbb\xbf\"a\",\"b\"\n1,2\n3,4\n", "column=a\ncolumn=b\nskip=1\n" AB, 2,
         two);
  DataSource s;
  int64_t whole[2];
  static const char big[] = "a\n9007199254740993\n-7\n";
  MUST(!open_text(big, strlen(big), "column=a\nscalar=1\nnumber=0\ndtype=i64\nheader=1\nsep=,\n",
                  &s));
  MUST(source_copy(&s, 0, 2, 0, whole) == AMPC_OK);
  CHECK(whole[0] == 9007199254740993 && whole[1] == (int64_t)ints[1]);
  source_close(&s);
}

/* Lines that end in \n, \r\n or \r alone, as "CSV (Macintosh)" of spreadsheets. */
static void check_line_ends(void)
{
  static const double six[] = {1, 2, 3, 4, 5, 6};
  static const char ab[] = "column=a\ncolumn=b\n" AB;
  expect("a,b\r1,2\r3,4\r5,6\r", ab, 3, six);
  expect("a,b\r1,2\n3,4\r\n5,6", ab, 3, six);
  expect("\ra,b\r\r\n1,2\r\r3,4\n\r5,6\r\r", ab, 3, six);
  expect("\"a\",\"b\"\r\"1\",\"2\"\r3,\"4\"\r\n5,6\r", ab, 3, six);
  expect("# \"by hand\rx\r\na,b\r1,2\r3,4\r5,6\r", "column=a\ncolumn=b\nskip=2\n" AB, 3, six);
  expect("x,\"a\r\",b\r0,1,2\r0,3,4\r0,5,6",
         "column=1\ncolumn=2\nnumber=1\nscalar=0\ndtype=f32\nheader=1\nsep=,\n", 3, six);
  refuse("a,b\r1,2\r3,x\r", ab, "line 3, column b: `x` is no number");
  refuse("a,b\r1,2\r\n3,x\r", ab, "line 3, column b: `x` is no number");
  refuse("a,b\r1,\"2\r3\"\r", ab, "line 2, column b: `2\\r3` is no number");
  refuse("a,b\r1,2\r\"\r\r\n\n\",4\r3,x\r", "column=b\n" AB, "line 7, column b: `x` is no number");
  refuse("a,b\n1\r2,3\n", ab, "line 2: 1 field, the first line has 2");
}

/* The end of a line at each place around the end of the reader's buffer, also gzipped. */
static void check_pieces(void)
{
  enum { EVERY = 8 };
  static const char *const ends[] = {"\r", "\r\n", "\n"};
  static char text[2 * FIELDS_PIECE];
  for (int kind = 0; kind < 3; kind++)
    for (int shift = 0; shift < EVERY; shift++) {
      DataSource s;
      float last[2] = {0};
      size_t size = (size_t)sprintf(text, "%-*s,b%s", shift + 1, "a", ends[kind]);
      int64_t lines = 0;
      for (; size < FIELDS_PIECE + 100; lines++)
        size += (size_t)sprintf(text + size, "%05d,2%s", (int)lines, ends[kind]);
      temp_write(temp_path("x.csv"), text, size);
      gzFile zipped = gzopen(temp_path("x.gz"), "wb");
      MUST(zipped && gzwrite(zipped, text, (unsigned)size) == (int)size && !gzclose(zipped));
      for (int gz = 0; gz < 2; gz++) {
        const ampc_source desc = {.kind = AMPC_SOURCE_CSV,
                                  .path = gz ? "x.gz" : "x.csv",
                                  .args = "column=a\ncolumn=b\n" AB,
                                  .part_end = 1,
                                  .dtype = AMPC_F32,
                                  .rank = 1,
                                  .dim = {2}};
        MUST(!source_open(&program, &desc, temp_folder, 1, &s));
        CHECK_MSG(s.count == lines, "%lld of %lld", (long long)s.count, (long long)lines);
        MUST(!source_copy(&s, s.count - 1, 1, 0, last));
        CHECK((int64_t)last[0] == lines - 1 && last[1] == 2);
        source_close(&s);
      }
    }
}

static void check_mistakes(void)
{
  static const char ab[] = "column=a\ncolumn=b\n" AB;
  refuse("a,b\n1,2\n\n3\n", ab, "line 4: 1 field, the first line has 2");
  refuse("a,b\n1,2\n3,4,5\n", ab, "line 3: 3 fields, the first line has 2");
  refuse("a,b\n1,2\n3,x\n", ab, "line 3, column b: `x` is no number");
  refuse("a,b\n1,\n", ab, "line 2, column b: the field is empty; missing=0.0 reads it as 0.0");
  refuse("a,b\n1,2\n1,NA\n", ab, "line 3, column b: `NA` is a missing value; missing=0.0");
  refuse("a,b\n1,<NA>\n", ab, "line 2, column b: `<NA>` is a missing value");
  refuse("a,b\n1,?\n", ab, "line 2, column b: `?` is no number");
  refuse("a,b\n1,x y\n", ab,
         "`x y` is no number; to read a column of names, call csv for it alone");
  static const char *const bad[] = {"0x1F", "-0x1p3", ".",   "-",   "e5",   "1e",     "+-5",
                                    "--5",  "1.5f",   "1 2", "1_0", "5.5.", "nan(1)", "?"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[32], ends[32];
    snprintf(text, sizeof text, "a,b\n1,%s\n", bad[i]);
    snprintf(ends, sizeof ends, "`%s` is no number", bad[i]);
    refuse(text, ab, ends);
    bool word = bad[i][0] == 'e' || bad[i][0] == 'n';
    CHECK_MSG(word == !!strstr(ampc_last_error(), "names"), "%s", ampc_last_error());
  }
  refuse("a\n+-5\n", "column=a\nnumber=0\nscalar=1\ndtype=i64\nheader=1\nsep=,\n",
         "`+-5` is no whole number");
  refuse("a,b\n1,\"2\n3,4\n", ab, "line 2: a quote is not closed");
  refuse("a,b\n1,\"2\"3\n", ab, "line 2: characters follow a closing quote");
  refuse("a,b\n", ab, "empty");
  refuse("", ab, "empty");
  refuse("a,c\n1,2\n", ab, "no column `b`: with `sep` \",\" its first line has 2 fields: a, c");
  refuse("a,b,b\n1,2,3\n", ab, "two columns `b`");
  refuse("1,2\n", "column=2\nnumber=1\nscalar=1\ndtype=f32\nheader=0\nsep=,\n", "no column 2");
  refuse("a\n1.5\n", "column=a\nnumber=0\nscalar=1\ndtype=i64\nheader=1\nsep=,\n",
         "column a: `1.5` is no whole number; dtype=f32 reads it");
  refuse("a\nsetosa\n", "column=a\nnumber=0\nscalar=1\ndtype=i64\nheader=1\nsep=,\n",
         "column a: `setosa` is no whole number; to read a column of names, call csv for it alone");
  refuse("a\n\"\"\n", "column=a\nnumber=0\nscalar=1\ndtype=i64\nheader=1\nsep=,\n",
         "line 2, column a: the field is empty");
  refuse("1,2\n3,x\n", "column=1\nnumber=1\nscalar=1\ndtype=f32\nheader=0\nsep=,\n",
         "line 2, column 1: `x` is no number");
  refuse("a;b\n1;2\n", ab,
         "with `sep` \",\" its first line has 1 field: a;b; is the separator `sep=\";\"`?");
  refuse("a\tb\n1\t2\n", ab, "is the separator `sep=\"\\t\"`?");
  refuse("1;2\n3;4\n", "column=1\nnumber=1\nscalar=1\ndtype=f32\nheader=0\nsep=,\n",
         "1 field, which count from 0; is the separator `sep=\";\"`?");
  refuse("1;2\n3;4\n", "column=0\nnumber=1\nscalar=1\ndtype=f32\nheader=0\nsep=,\n",
         "`1;2` is no number; is the separator `sep=\";\"`?");
  refuse(
      "0.5,x\n1,y\n", ab,
      "its first line has 2 fields: 0.5, x; skip=1 leaves out one line at the beginning; without "
      "a header line: header=false and column numbers");
  refuse("a\n3000000000\n", "column=a\nnumber=0\nscalar=1\ndtype=i32\nheader=1\nsep=,\n",
         "`3000000000` is no whole number of 32 bits; dtype=i64 reads it");
  refuse("178,13,c\n1,2,3,4\n", "column=1\nnumber=1\nscalar=1\ndtype=f32\nheader=1\nsep=,\n",
         "line 2: 4 fields, the first line has 3; skip=1 leaves out one line at the beginning");
  refuse("178,13,c\n1,2,3,4\n", "column=3\nnumber=1\nscalar=1\ndtype=f32\nheader=1\nsep=,\n",
         "its first line has 3 fields, which count from 0; skip=1 leaves out one line");
  refuse("178,13,c\n1,2,3,4\n",
         "column=3\nnumber=1\nscalar=1\ndtype=f32\nheader=1\nsep=,\nskip=1\n",
         "line 2: instead of names this line has numbers; header=false reads them");
  refuse("a\n1\n", "column=a\nskip=5\n" AB, "empty");
  static char wide[(4 << 20) + 4];
  memset(wide, '1', sizeof wide - 1);
  wide[0] = 'a';
  wide[1] = '\n';
  refuse(wide, "column=a\n" AB, "line 2: a field of more than 4 MiB");
  static const char zero[] = "a\n1\0002\n";
  DataSource s;
  CHECK(open_text(zero, sizeof zero - 1, "column=a\n" AB, &s) &&
        strstr(ampc_last_error(), "line 2"));
}

#define SPECIES "column=s\nnumber=0\nscalar=1\ndtype=i64\nheader=1\nsep=,\nlabels=1\n"

/* Checks that the file has these names, as lines of arguments. */
static void expect_classes(const char *text, const char *args, const char *want)
{
  char *lines = NULL;
  temp_write(temp_path("x"), text, strlen(text));
  ampc_status status = ampc_format_csv.classes(temp_path("x"), args, &lines);
  CHECK_MSG(!status && lines && strcmp(lines, want) == 0, "%s: %s", text,
            status ? ampc_last_error() : lines);
  free(lines);
}

static void refuse_classes(const char *text, const char *args, const char *word)
{
  char *lines = NULL;
  temp_write(temp_path("x"), text, strlen(text));
  ampc_status status = ampc_format_csv.classes(temp_path("x"), args, &lines);
  CHECK_MSG(status && !lines && strstr(ampc_last_error(), word), "%s: %s", text, ampc_last_error());
}

static void check_classes(void)
{
  static const double order[] = {1, 0, 1}, other[] = {0, 2, -100}, real[] = {1, 0};
  expect_classes("s\nb\na\nb\n", SPECIES, "class=a\nclass=b\n");
  expect_classes("x,s\n1,\"b, c\"\n2, a \n", SPECIES, "class=a\nclass=b, c\n");
  expect_classes("s\nb\n", SPECIES "class=z\nclass=a\n", "class=a\nclass=b\nclass=z\n");
  expect_classes("s\nNA\nb\n", SPECIES "missing=-1\n", "class=b\n");
  expect("s\nb\na\nb\n", SPECIES "class=a\nclass=b\n", 3, order);
  expect("s\n b\na\nNA\n", SPECIES "class=b\nclass=c\nclass=a\nmissing=-100\n", 3, other);
  expect("s\nNA\na\n", SPECIES "class=a\nclass=NA\n", 2, real); /* a name, if it is listed */
  expect("s\nb\na\n",
         "column=s\nnumber=0\nscalar=1\ndtype=f32\nheader=1\nsep=,\nlabels=1\nclass=a\nclass=b\n",
         2, real);
  refuse("s\na\nc\n", SPECIES "class=a\nclass=b\n",
         "line 3, column s: `c` is none of the 2 classes; list it in `classes`");
  refuse("s\na\n\"\"\n", SPECIES "class=a\n", "line 3, column s: the field is empty; missing=-100");
  refuse_classes("s\na\n\"b\nc\"\n", SPECIES, "line 3: the name of a class is not printable UTF-8");
  refuse_classes("s\na\n\xff\n", SPECIES,
                 "line 3: the name of a class is not printable UTF-8: \\xff");
  refuse_classes("s\na\nnull\n", SPECIES, "line 3, column s: `null` is a missing value");
  static char many[8 << 14] = "s\n";
  for (int i = 0; i <= 1 << 14; i++) snprintf(many + strlen(many), 16, "%d\n", i);
  refuse_classes(many, SPECIES, "line 16386: more than 16384 different names");
}

static void check_arguments(void)
{
  ampc_header h;
  static const struct {
    const char *args, *word;
  } bad[] = {{"number=0\nscalar=0\ndtype=f32\nheader=1\nsep=,\n", "0 columns"},
             {"column=a\nnumber=0\nscalar=0\ndtype=f32\nheader=0\nsep=,\n", "without a header"},
             {"column=a\nnumber=0\nscalar=0\ndtype=f16\nheader=1\nsep=,\n", "not f16"},
             {"column=a\nnumber=0\nscalar=0\ndtype=f32\nheader=1\nsep=,,\n", "`sep`"},
             {"column=a\nnumber=0\nscalar=0\ndtype=f32\nheader=1\nsep=\n", "`sep`"},
             {"column=a\nmissing=x\n" AB, "`missing` of csv is x, expected a number"},
             {SPECIES "missing=0.5\n", "`missing` of csv is 0.5, expected a whole number"},
             {"column=a\nlabels=1\n" AB, "`classes` reads one column"},
             {SPECIES "class=a\nclass=a\n", "`classes` lists a twice"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_MSG(ampc_format_csv.probe(&ampc_format_csv, NULL, bad[i].args, &h) &&
                  strstr(ampc_last_error(), bad[i].word),
              "%s: %s", bad[i].args, ampc_last_error());
}

int main(void)
{
  temp_open();
  check_reading();
  check_line_ends();
  check_pieces();
  check_mistakes();
  check_classes();
  check_arguments();
  temp_close();
  return check_done();
}
