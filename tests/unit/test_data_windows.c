/* Windows of rows: which rows a sample has, in csv, npy and raw; parts that share no rows; one file
 * or two. */
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};
enum { ROWS = 23, COLUMNS = 2, MOST = 400 };

/* Writes rows [first, first + n) as a file of each format: row r is 10 r, 10 r + 1. */
static void write_files(const char *name, int first, int n)
{
  float rows[ROWS][COLUMNS];
  char text[ROWS * 20] = "a,b\n", path[40], head[128];
  for (int r = 0; r < n; r++) {
    for (int c = 0; c < COLUMNS; c++) rows[r][c] = (float)(10 * (first + r) + c);
    sprintf(text + strlen(text), "%d,%d\n", 10 * (first + r), 10 * (first + r) + 1);
  }
  size_t bytes = (size_t)n * sizeof rows[0];
  snprintf(path, sizeof path, "%s.csv", name);
  temp_write(temp_path(path), text, strlen(text));
  snprintf(path, sizeof path, "%s.raw", name);
  temp_write(temp_path(path), rows, bytes);
  snprintf(path, sizeof path, "%s.npy", name);
  memset(head, ' ', sizeof head);
  memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
  head[10 + snprintf(head + 10, 100,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", n, COLUMNS)] =
      ' ';
  head[127] = '\n';
  FILE *f = fopen(temp_path(path), "wb");
  MUST(f && fwrite(head, 1, 128, f) == 128 && fwrite(rows, 1, bytes, f) == bytes && !fclose(f));
}

static const struct {
  ampc_source_kind kind;
  const char *one, *pattern, *args;
} formats[] = {{AMPC_SOURCE_CSV, "x.csv", "x*.csv",
                "column=a\ncolumn=b\nnumber=0\nscalar=0\ndtype=f32\nheader=1\nsep=,\n"},
               {AMPC_SOURCE_NPY, "x.npy", "x*.npy", ""},
               {AMPC_SOURCE_RAW, "x.raw", "x*.raw", "shape=2\ndtype=f32\n"}};

static char args[200];
static ampc_source source_of(int format, bool pattern, int window, int stride, double begin,
                             double end)
{
  snprintf(args, sizeof args, "%swindow=%d\nstride=%d\n", formats[format].args, window, stride);
  return (ampc_source){.kind = formats[format].kind,
                       .path = pattern ? formats[format].pattern : formats[format].one,
                       .args = args,
                       .dtype = AMPC_F32,
                       .rank = 2,
                       .dim = {window, COLUMNS},
                       .part_begin = begin,
                       .part_end = end};
}

/* Reads all samples, together or one by one. used[r]: row r is in one. Returns their number. */
static int read_all(const ampc_source *desc, int window, int first[MOST], bool used[ROWS])
{
  static float at[MOST * ROWS * COLUMNS], one[ROWS * COLUMNS];
  DataSource s;
  MUST(!source_open(&program, desc, temp_folder, 1, &s));
  MUST(s.count <= MOST && !source_copy(&s, 0, s.count, 0, at));
  int n = (int)s.count, size = window * COLUMNS;
  for (int i = 0; i < n; i++) {
    const float *sample = at + i * size;
    first[i] = (int)sample[0] / 10;
    for (int k = 0; k < size; k++) CHECK(sample[k] == (float)(10 * (first[i] + k / 2) + k % 2));
    for (int r = 0; r < window; r++) used[first[i] + r] = true;
    MUST(!source_copy(&s, i, 1, 3, one));
    CHECK(memcmp(one, sample, (size_t)size * sizeof *one) == 0);
  }
  source_close(&s);
  return n;
}

static void check_windows(int format, int window, int stride)
{
  int first[MOST], want = 0, n;
  bool used[ROWS] = {0};
  ampc_source desc = source_of(format, false, window, stride, 0, 1);
  ampc_header h;
  bool found;
  n = read_all(&desc, window, first, used);
  for (int r = 0; r + window <= ROWS; r += stride, want++) CHECK(want < n && first[want] == r);
  CHECK_MSG(n == want, "%d windows of %d by %d, not %d", n, window, stride, want);
  MUST(!ampc_shards_probe(ampc_format_of(desc.kind), temp_path(desc.path), args, &found, &h));
  CHECK(h.samples == want && h.rank == 2 && h.dim[0] == window && h.dim[1] == COLUMNS);
}

/* Three parts: no row is in two, all windows of a part follow each other, and the last part ends
 * with the file. */
static void check_parts(int format, int window, int stride)
{
  static const double cut[] = {0, 0.5, 0.8, 1};
  bool used[3][ROWS] = {{0}};
  int first[MOST], n[3];
  for (int p = 0; p < 3; p++) {
    ampc_source desc = source_of(format, false, window, stride, cut[p], cut[p + 1]);
    n[p] = read_all(&desc, window, first, used[p]);
    for (int i = 1; i < n[p]; i++) CHECK(first[i] == first[i - 1] + stride);
  }
  CHECK(n[0] > 0 && n[2] > 0 && first[n[2] - 1] + window + stride > ROWS);
  for (int r = 0; r < ROWS; r++) CHECK(used[0][r] + used[1][r] + used[2][r] <= 1);
}

static void check_files(int format)
{
  int first[MOST], want[] = {0, 2, 4, 10, 12};
  bool used[ROWS] = {0};
  ampc_source desc = source_of(format, true, 5, 2, 0, 1);
  int n = read_all(&desc, 5, first, used);
  CHECK_MSG(n == 5 && memcmp(first, want, sizeof want) == 0, "%d windows of two files", n);
}

static void check_mistakes(int format)
{
  static const struct {
    int window, stride;
    const char *word;
  } bad[] = {{ROWS + 1, 1, "has 23 rows, less than one window of 24"},
             {0, 1, "`window` is 0 and `stride` 1; both are at least 1 row"},
             {3, 0, "`window` is 3 and `stride` 0"}};
  bool found;
  ampc_header h;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ampc_source desc = source_of(format, false, bad[i].window, bad[i].stride, 0, 1);
    ampc_status status =
        ampc_shards_probe(ampc_format_of(desc.kind), temp_path(desc.path), args, &found, &h);
    CHECK_MSG(status && strstr(ampc_last_error(), bad[i].word), "%s", ampc_last_error());
  }
}

int main(void)
{
  static const int sizes[][2] = {{1, 1}, {5, 1}, {5, 2}, {5, 5}, {4, 7}, {3, 100}, {ROWS, 1}};
  temp_open();
  for (int f = 0; f < 3; f++) {
    write_files("x", 0, ROWS);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      check_windows(f, sizes[i][0], sizes[i][1]);
      if (sizes[i][0] <= 5 && sizes[i][1] <= 2) check_parts(f, sizes[i][0], sizes[i][1]);
    }
    check_mistakes(f);
    write_files("x", 0, 10);
    write_files("x2", 10, 8);
    check_files(f);
    for (int k = 0; k < 3; k++) {
      char name[8];
      snprintf(name, sizeof name, "x2%s", formats[k].one + 1);
      unlink(temp_path(name));
    }
  }
  temp_close();
  return check_done();
}
