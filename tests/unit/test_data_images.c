/* Folders of pictures: results against torchvision, random crops and flips, damaged pictures. The
 * number of threads and the place where a run resumes change nothing. */
#include <math.h>
#include <sys/resource.h>
#include <zlib.h>
#include "ampc_rt.h"
#include "runtime/data/formats/folder.h"
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};

#define ARGS(size, more) "size=" #size "\nratio=0.75\nratio=1.25\n" more
#define PLAIN            ARGS(16, "resize=18\ncorrupt=stop\nhflip=0\n")

static ampc_source source_of(const char *path, const char *args)
{
  ampc_source s = {.kind = AMPC_SOURCE_IMAGES, .path = path, .args = args, .part_end = 1};
  ampc_header h;
  MUST(ampc_format_images.probe(&ampc_format_images, NULL, args, &h) == AMPC_OK);
  s.dtype = h.dtype;
  s.rank = h.rank;
  memcpy(s.dim, h.dim, sizeof s.dim);
  return s;
}

/* ---- against torchvision ---- */

static void check_reference(void)
{
  ampc_source desc = source_of("tests/data/pictures", PLAIN),
              label = source_of("tests/data/pictures", PLAIN "of=label\n"),
              want = {.kind = AMPC_SOURCE_NPY,
                      .part_end = 1,
                      .dtype = AMPC_U8,
                      .rank = 3,
                      .path = "tests/data/pictures/expected.npy",
                      .dim = {3, 16, 16}};
  DataSource s, l, w;
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK && s.count == 8);
  MUST(source_open(&program, &label, "", 1, &l) == AMPC_OK && l.count == 8);
  MUST(source_open(&program, &want, "", 1, &w) == AMPC_OK && w.count == 8);
  static const int64_t labels[8] = {0, 1, 0, 0, 1, 0, 1, 0};
  for (int64_t i = 0; i < 8; i++) {
    uint8_t has[768], expected[768];
    int64_t class;
    MUST(source_copy(&s, i, 1, 0, has) == AMPC_OK);
    MUST(source_copy(&w, i, 1, 0, expected) == AMPC_OK);
    MUST(source_copy(&l, i, 1, 0, &class) == AMPC_OK);
    int most = 0;
    for (int k = 0; k < 768; k++)
      if (abs(has[k] - expected[k]) > most) most = abs(has[k] - expected[k]);
    /* Pillow rounds once more. Picture 5 is large: another filter decodes it at half its size. */
    CHECK_MSG(most <= (i == 5 ? 8 : 1), "picture %lld: %d", (long long)i, most);
    CHECK(class == labels[i]);
  }
  source_close(&s);
  source_close(&l);
  source_close(&w);
}

/* ---- random crops and flips ---- */

static void put_chunk(FILE *f, const char *type, const uint8_t *bytes, uLong size)
{
  uLong sum = crc32(crc32(0, NULL, 0), (const uint8_t *)type, 4);
  if (size) sum = crc32(sum, bytes, (uInt)size);
  for (int i = 3; i >= 0; i--) fputc((int)(size >> 8 * i & 255), f);
  fwrite(type, 1, 4, f);
  if (size) fwrite(bytes, 1, size, f);
  for (int i = 3; i >= 0; i--) fputc((int)(sum >> 8 * i & 255), f);
}

/* Writes a PNG in which red is the column and green is the row, both below 256. */
static void write_ramp(const char *path, unsigned width, unsigned height)
{
  uint8_t header[13] = {0, 0, 0, (uint8_t)width, 0, 0, 0, (uint8_t)height, 8, 2};
  uLong row = 1 + 3 * width, size = compressBound(row * height);
  uint8_t *pixels = calloc(height, row), *packed = malloc(size);
  MUST(pixels && packed);
  for (unsigned i = 0; i < width * height; i++) {
    uint8_t *p = pixels + i / width * row + 1 + 3 * (i % width);
    p[0] = (uint8_t)(i % width);
    p[1] = (uint8_t)(i / width);
  }
  MUST(compress(packed, &size, pixels, row * height) == Z_OK);
  FILE *f = fopen(path, "wb");
  MUST(f && fwrite("\x89PNG\r\n\x1a\n", 1, 8, f) == 8);
  put_chunk(f, "IHDR", header, sizeof header);
  put_chunk(f, "IDAT", packed, size);
  put_chunk(f, "IEND", NULL, 0);
  MUST(fclose(f) == 0);
  free(pixels);
  free(packed);
}

static void in_folder(char to[512], const char *name)
{
  snprintf(to, 512, "%s/%s", temp_folder, name);
}

static void check_draws(void)
{
  char path[512];
  in_folder(path, "ramp");
  mkdir(path, 0700);
  in_folder(path, "ramp/a");
  mkdir(path, 0700);
  in_folder(path, "ramp/a/0.png");
  write_ramp(path, 200, 100);
  in_folder(path, "ramp");
  ampc_source desc =
      source_of(path, ARGS(40, "corrupt=stop\ntrain=1\nscale=0.25\nscale=0.5\nhflip=0.5\n"));
  DataSource s;
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK && s.count == 1);
  enum { N = 1600, DRAWS = 400 };
  static uint8_t a[3 * N], b[3 * N];
  int turned = 0, same = 0;
  double least = 1, most = 0;
  for (int e = 0; e < DRAWS; e++) {
    MUST(source_copy(&s, 0, 1, e, a) == AMPC_OK && source_copy(&s, 0, 1, e, b) == AMPC_OK);
    CHECK(memcmp(a, b, sizeof a) == 0);
    MUST(source_copy(&s, 0, 1, e + 1, b) == AMPC_OK);
    same += memcmp(a, b, sizeof a) == 0;
    turned += a[0] > a[39];
    /* The centres of 40 pixels lie half a pixel inside the edges: they span 39 of 40. */
    double width = fabs((double)a[39] - a[0]) * 40 / 39, height = (a[N + N - 1] - a[N]) * 40.0 / 39;
    double area = width * height / 20000, ratio = width / height;
    CHECK_MSG(area > 0.22 && area < 0.54 && ratio > 0.7 && ratio < 1.33, "area %g, ratio %g", area,
              ratio);
    least = fmin(least, area);
    most = fmax(most, area);
  }
  CHECK_MSG(abs(turned - DRAWS / 2) < 50 && same == 0, "%d turned, %d alike", turned, same);
  CHECK_MSG(least < 0.28 && most > 0.46, "areas from %g to %g", least, most);
  MUST(source_copy(&s, 0, 1, AMPC_AS_STORED, a) == AMPC_OK);
  CHECK(abs(a[0] - 51) <= 2 && abs(a[39] - 149) <= 2); /* the centre of the picture */
  source_close(&s);
}

/* ---- mistakes ---- */

static void copy_file(const char *from, const char *to, size_t most)
{
  size_t size;
  char *bytes = temp_read(from, &size);
  temp_write(to, bytes, most && most < size ? most : size);
  free(bytes);
}

/* Writes three good pictures, and one that is truncated. */
static void make_damaged(void)
{
  char path[512];
  in_folder(path, "bad");
  mkdir(path, 0700);
  in_folder(path, "bad/a");
  mkdir(path, 0700);
  in_folder(path, "bad/a/0.jpg");
  copy_file("tests/data/pictures/cat/colour.jpg", path, 0);
  in_folder(path, "bad/a/1.jpg");
  copy_file("tests/data/pictures/cat/colour.jpg", path, 1000);
  in_folder(path, "bad/a/2.png");
  copy_file("tests/data/pictures/dog/clear.png", path, 0);
  in_folder(path, "bad/a/3.jpg");
  copy_file("tests/data/pictures/cat/grey.jpg", path, 0);
  in_folder(path, "bad/a/.hidden.jpg");
  copy_file("tests/data/pictures/cat/grey.jpg", path, 10);
}

static void refuse_folder(const char *name, const char *args, const char *word)
{
  ampc_header h;
  char path[512];
  in_folder(path, name);
  ampc_status status = ampc_format_images.probe(&ampc_format_images, path, args, &h);
  CHECK_MSG(status == AMPC_BAD_FILE && strstr(ampc_last_error(), word), "%s: no `%s` in: %s", name,
            word, status ? ampc_last_error() : "read");
}

static void check_damaged(void)
{
  char path[512];
  make_damaged();
  in_folder(path, "bad");
  ampc_source stop = source_of(path, PLAIN),
              skip = source_of(path, ARGS(16, "corrupt=skip\nhflip=0\n"));
  DataSource s;
  uint8_t a[768], b[768];
  MUST(source_open(&program, &stop, "", 1, &s) == AMPC_OK && s.count == 4);
  CHECK(source_copy(&s, 0, 1, 0, a) == AMPC_OK && source_copy(&s, 1, 1, 0, a) == AMPC_BAD_FILE);
  CHECK_MSG(strstr(ampc_last_error(), "bad/a/1.jpg is damaged") &&
                strstr(ampc_last_error(), "corrupt=\"skip\""),
            "%s", ampc_last_error());
  source_close(&s);
  char *text;
  size_t size;
  FILE *real = stderr, *memory = open_memstream(&text, &size);
  MUST(memory);
  stderr = memory;
  MUST(source_open(&program, &skip, "", 1, &s) == AMPC_OK);
  for (int e = 0; e < 3; e++) {
    MUST(source_copy(&s, 1, 1, e, a) == AMPC_OK && source_copy(&s, 2, 1, e, b) == AMPC_OK);
    CHECK(memcmp(a, b, sizeof a) == 0); /* the next picture of its class */
  }
  char name[64];
  CHECK(source_sample_name(&s, 1, name, sizeof name) && strcmp(name, "a/2.png") == 0);
  source_close(&s);
  for (int i = 0; i < 4; i++) {
    static const char *const names[] = {"bad/a/0.jpg", "bad/a/2.png", "bad/a/3.jpg", "bad/a/1.jpg"};
    in_folder(path, names[i]);
    temp_write(path, "x", (size_t)(i % 2));
  }
  in_folder(path, "bad");
  MUST(source_open(&program, &skip, "", 1, &s) == AMPC_OK);
  CHECK(source_copy(&s, 1, 1, 0, a) == AMPC_BAD_FILE);
  CHECK_MSG(strstr(ampc_last_error(), "all 4 pictures of class a"), "%s", ampc_last_error());
  source_close(&s);
  fclose(memory);
  stderr = real;
  CHECK_MSG(strstr(text, "note: left out 1 of 4 pictures: ") && strstr(text, "left out 4 of 4"),
            "%s", text);
  CHECK_MSG(strstr(text, "it begins like no picture") && strstr(text, "it is empty"), "%s", text);
  free(text);
}

/* Checks that a lack of resources or a missing file is not damage: no picture is left out. */
static void check_machine(void)
{
  char path[512], one[512], away[512];
  struct rlimit before, none;
  DataSource s;
  uint8_t a[768], b[768];
  make_damaged();
  in_folder(path, "bad");
  ampc_source skip = source_of(path, ARGS(16, "corrupt=skip\nhflip=0\n"));
  MUST(source_open(&program, &skip, "", 1, &s) == AMPC_OK);
  MUST(source_copy(&s, 0, 1, 0, a) == AMPC_OK); /* loads the decoder's library */
  MUST(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none = before;
  none.rlim_cur = 0;
  MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
  ampc_status status = source_copy(&s, 0, 1, 0, b);
  MUST(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_MSG(status == AMPC_BAD_FILE && strstr(ampc_last_error(), "Too many open files") &&
                !strstr(ampc_last_error(), "skip"),
            "%s", status ? ampc_last_error() : "copied");
  in_folder(one, "bad/a/0.jpg");
  in_folder(away, "bad/away");
  MUST(rename(one, away) == 0);
  CHECK(source_copy(&s, 0, 1, 0, b) == AMPC_BAD_FILE && strstr(ampc_last_error(), "0.jpg"));
  MUST(rename(away, one) == 0);
  CHECK(source_copy(&s, 0, 1, 0, b) == AMPC_OK && memcmp(a, b, sizeof a) == 0);
  source_close(&s);
}

static void check_folders(void)
{
  char path[512];
  refuse_folder("nothing", PLAIN, "cannot open the folder");
  in_folder(path, "empty");
  mkdir(path, 0700);
  refuse_folder("empty", PLAIN, "has no folders");
  in_folder(path, "empty/b");
  mkdir(path, 0700);
  refuse_folder("empty", PLAIN, "class b is empty");
  bool found;
  ampc_header many;
  in_folder(path, "[er]*");
  CHECK(ampc_shards_probe(&ampc_format_images, path, PLAIN, &found, &many) == AMPC_BAD_FILE);
  CHECK_MSG(strstr(ampc_last_error(), "images reads only one"), "%s", ampc_last_error());
  refuse_folder("ramp", PLAIN "class=a\nclass=c\n", "ramp/c: No such file");
  static const struct {
    const char *args, *word;
  } bad[] = {{"size=0\ncorrupt=stop\n", "`size`"},
             {"size=1.5\ncorrupt=stop\n", "`size`"},
             {"size=8\nsize=9\nsize=10\ncorrupt=stop\n", "`size`"},
             {"size=8\nresize=7\ncorrupt=stop\n", "`resize` of images is 7"},
             {"size=8\ncorrupt=stop\nscale=0\nratio=1\n", "`scale`"},
             {"size=8\ncorrupt=stop\nscale=0.5\nscale=0.2\nratio=1\n", "`scale`"},
             {"size=8\ncorrupt=stop\nscale=0.5\nratio=0\n", "`ratio`"}};
  ampc_header h;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_MSG(ampc_format_images.probe(&ampc_format_images, NULL, bad[i].args, &h) &&
                  strstr(ampc_last_error(), bad[i].word),
              "%s: %s", bad[i].args, ampc_last_error());
}

/* Folders within the folder of a class, in the order of torchvision's ImageFolder; other files are
 * counted; hidden ones are not. */
static void check_inner_folders(void)
{
  static const char *const folders[] = {"deep",   "deep/a",        "deep/a/more", "deep/a/more/x",
                                        "deep/b", "deep/a/more-b", "deep/a/zoo",  "deep/a/.git"};
  static const char *const files[] = {
      "a/z.png",        "a/more/b.PNG", "a/more/a.jpg", "a/more/x/q.jpeg", "a/zoo/y.png",
      "a/more-b/c.png", "a/B.png",      "b/1.png",      "a/notes.txt",     "a/more/x/t.TXT",
      "readme",         "b/1.gif",      "a/.git/h.png", "b/.DS_Store"};
  static const char *const want[] = {"B.png",        "z.png",         "more/a.jpg", "more/b.PNG",
                                     "more-b/c.png", "more/x/q.jpeg", "zoo/y.png"};
  char path[512], root[512], others[100];
  Folder f;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    in_folder(path, folders[i]);
    MUST(mkdir(path, 0700) == 0);
  }
  in_folder(root, "deep");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%.400s/%s", root, files[i]);
    temp_write(path, "x", 1);
  }
  MUST(!folder_list(root, "", &f));
  CHECK(f.n == 8 && f.classes == 2 && f.size[0] == 7 && f.size[1] == 1);
  for (int64_t i = 0; i < 7; i++)
    CHECK_MSG(strcmp(f.files[f.members[0][i]].name, want[i]) == 0, "%s",
              f.files[f.members[0][i]].name);
  CHECK_MSG(folder_others(&f, others, sizeof others) == 4 &&
                strcmp(others, "1 without an ending, 1 .gif, 2 .txt") == 0,
            "%s", others);
  folder_free(&f);
  snprintf(path, sizeof path, "%.400s/a/zoo/back", root);
  MUST(symlink("../..", path) == 0);
  refuse_folder("deep", PLAIN, "a/zoo/back/a is a link to a folder that contains it");
  MUST(unlink(path) == 0 && symlink("..", path) == 0);
  refuse_folder("deep", PLAIN, "a/zoo/back is a link to a folder that contains it");
}

/* Checks files of other formats with the name of a JPEG. */
static void check_kinds(void)
{
  static const struct {
    const char *bytes, *word;
  } kinds[] = {
      {"GIF89a......", "is a GIF despite its name; JPEG, PNG, BMP, WebP and TIFF are read"},
      {"BM..........", "is damaged: its header is cut off"},
      {"\1\1\1\1ftypheic", "is a HEIC"},
      {"\1\1\1\1ftypavif", "is an AVIF"},
      {"RIFF\1\1\1\1WAVE", "it begins like no picture"},
      {"B", "it begins like no picture"}};
  char folder[512], path[512];
  in_folder(folder, "kinds");
  mkdir(folder, 0700);
  in_folder(path, "kinds/x.jpg");
  ampc_source desc = source_of(folder, PLAIN "class=.\n");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    DataSource s;
    uint8_t sample[768];
    temp_write(path, kinds[i].bytes, strlen(kinds[i].bytes));
    MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK);
    CHECK(source_copy(&s, 0, 1, 0, sample) == AMPC_BAD_FILE);
    CHECK_MSG(strstr(ampc_last_error(), kinds[i].word), "%s", ampc_last_error());
    source_close(&s);
  }
}

/* Inverts each byte of a picture, and truncates it at each length. It is read or refused. */
static void check_bytes(const char *name, const char *as)
{
  char path[512], file[600];
  size_t size;
  snprintf(path, sizeof path, "tests/data/pictures/%s", name);
  char *bytes = temp_read(path, &size);
  in_folder(path, "one");
  mkdir(path, 0700);
  in_folder(path, "one/a");
  mkdir(path, 0700);
  snprintf(file, sizeof file, "%s/%s", path, as);
  in_folder(path, "one");
  ampc_source desc = source_of(path, PLAIN);
  int refused = 0;
  for (size_t i = 0; i < 2 * size; i += 3) {
    if (i >= size) bytes[i - size] = (char)~bytes[i - size];
    temp_write(file, bytes, i < size ? i : size);
    if (i >= size) bytes[i - size] = (char)~bytes[i - size];
    DataSource s;
    uint8_t sample[768];
    MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK);
    ampc_status status = source_copy(&s, 0, 1, 0, sample);
    bool lacks = status == AMPC_RUN_FAILED && strstr(ampc_last_error(), "(Debian: lib");
    CHECK_MSG(!status || status == AMPC_BAD_FILE || lacks, "%s, %zu: %s", name, i,
              ampc_last_error());
    refused += status != AMPC_OK;
    source_close(&s);
  }
  unlink(file);
  CHECK_MSG(refused > (int)(size / 6), "%s: only %d were refused", name, refused);
  free(bytes);
}

/* ---- names ---- */

static void has_name(const char *path, const char *args, int64_t sample, const char *want)
{
  ampc_source desc = source_of(path, args);
  DataSource s;
  char name[64] = "";
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK);
  bool found = source_sample_name(&s, sample, name, sizeof name);
  CHECK_MSG(found == (*want != 0) && strcmp(name, want) == 0, "%s, %lld: %s", path,
            (long long)sample, name);
  source_close(&s);
}

static void check_names(void)
{
  has_name("tests/data/pictures", PLAIN, 1, "dog/clear.png");
  has_name("tests/data/pictures", PLAIN, 7, "cat/progressive.JPG");
  has_name("tests/data/pictures", PLAIN "of=label\n", 1, "");
  has_name("tests/data/pictures/dog", PLAIN "class=.\n", 1, "one_bit.png");
  has_name("tests/data/pictures/dog/palette.png", PLAIN, 0, "palette.png");
  ampc_source part = source_of("tests/data/pictures", PLAIN),
              numbers = {.kind = AMPC_SOURCE_NPY,
                         .part_end = 1,
                         .dtype = AMPC_U8,
                         .rank = 3,
                         .path = "tests/data/pictures/expected.npy",
                         .dim = {3, 16, 16}};
  char name[64];
  DataSource s;
  part.part_begin = 0.5;
  MUST(source_open(&program, &part, "", 1, &s) == AMPC_OK && s.count == 4);
  CHECK(source_sample_name(&s, 0, name, sizeof name) && strcmp(name, "dog/one_bit.png") == 0);
  source_close(&s);
  MUST(source_open(&program, &numbers, "", 1, &s) == AMPC_OK);
  CHECK(!source_sample_name(&s, 0, name, sizeof name));
  source_close(&s);
}

/* ---- the loader ---- */

typedef struct Job {
  ampc_program program;
  ampc_source sources[2];
  ampc_block block;
} Job;

static void job(Job *j, const char *path, const char *images, const char *labels, int64_t batch)
{
  *j = (Job){.sources = {source_of(path, images), source_of(path, labels)}};
  j->sources[1].offset = 1 << 16;
  j->block = (ampc_block){.name = "train",
                          .batch = batch,
                          .shuffle = true,
                          .drop_last = true,
                          .n_sources = 2,
                          .n_variants = 1};
  j->program = (ampc_program){
      .name = "job", .sources = j->sources, .blocks = &j->block, .n_sources = 2, .n_blocks = 1};
}

enum { BATCHES = 8, BATCH = 3 * 768 };

static int count_threads(void)
{
  DIR *d = opendir("/proc/self/task");
  int n = 0;
  MUST(d);
  for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static int others; /* threads that are not a loader's: the first; qemu has one more */

/* True if least..most other threads run. An ended thread may stay for a moment. */
static bool has_threads(int least, int most)
{
  int n = 0;
  for (int tries = 0; tries < 1000; tries++) {
    n = count_threads() - others;
    if (n >= least && n <= most) return true;
    usleep(1000);
  }
  printf("%d threads\n", n);
  return false;
}

/* Reads batches from `first` on with a loader of that many threads. */
static void read_batches(const Job *j, int first, int threads, uint8_t to[][BATCH])
{
  ampc_use_data_threads(threads);
  ampc_batches *b;
  MUST(ampc_data.open(&j->program, 0, "", 7, &b) == AMPC_OK);
  CHECK(has_threads(threads ? threads : 1, threads ? threads : 16));
  int64_t per = ampc_data.per_epoch(b), n;
  ampc_data_position at = {first / per, first % per, 0};
  const void *base;
  MUST(ampc_data.seek(b, at) == AMPC_OK);
  for (int i = first; i < BATCHES; i++) {
    MUST(ampc_data.next(b, &base, &n, &at) == AMPC_OK && n == 3);
    memcpy(to[i], base, BATCH);
  }
  ampc_data.close(b);
}

static void check_loader(void)
{
  static uint8_t one[BATCHES][BATCH], many[BATCHES][BATCH];
  static const char args[] =
      ARGS(16, "resize=18\ncorrupt=skip\ntrain=1\nscale=0.5\nscale=1\nhflip=0.5\n");
  Job j;
  job(&j, "tests/data/pictures", args, ARGS(16, "corrupt=skip\nof=label\n"), 3);
  read_batches(&j, 0, 1, one);
  static const int other[] = {0 /* as many threads as processors */, 2, 7, 128};
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
    read_batches(&j, 0, other[i], many);
    CHECK_MSG(memcmp(one, many, sizeof one) == 0, "%d threads", other[i]);
  }
  for (int first = 1; first < BATCHES; first += 2) {
    memset(many, 0, sizeof many);
    read_batches(&j, first, 0, many);
    CHECK_MSG(memcmp(one[first], many[first], (size_t)((BATCHES - first) * BATCH)) == 0, "from %d",
              first);
  }
}

/* Checks that the loader returns the batches before the damaged picture, then always its
 * message. */
static void check_failure(void)
{
  char path[512];
  make_damaged();
  in_folder(path, "bad");
  Job j;
  job(&j, path, PLAIN, PLAIN "of=label\n", 1);
  j.block.shuffle = false;
  ampc_batches *b;
  MUST(ampc_data.open(&j.program, 0, "", 7, &b) == AMPC_OK);
  const void *base;
  int64_t n;
  ampc_data_position at;
  for (int i = 0; i < 50; i++) {
    CHECK(ampc_data.next(b, &base, &n, &at) == AMPC_OK && at.batch == 0);
    for (int k = 0; k < 2; k++)
      CHECK(ampc_data.next(b, &base, &n, &at) == AMPC_BAD_FILE &&
            strstr(ampc_last_error(), "bad/a/1.jpg is damaged"));
    CHECK(ampc_data.seek(b, (ampc_data_position){0, 2, 0}) == AMPC_OK);
    CHECK(ampc_data.next(b, &base, &n, &at) == AMPC_OK && at.batch == 2);
    CHECK(ampc_data.seek(b, (ampc_data_position){0, 0, 0}) == AMPC_OK);
  }
  ampc_data.close(b);
}

int main(void)
{
  others = count_threads();
  temp_open();
  check_reference();
  check_draws();
  check_damaged();
  check_machine();
  check_folders();
  check_inner_folders();
  check_kinds();
  check_bytes("cat/colour.jpg", "x.jpg");
  check_bytes("cat/progressive.JPG", "x.jpg");
  check_bytes("dog/clear.png", "x.png");
  check_bytes("../kinds/bmp/palette.bmp", "x.bmp");
  check_bytes("../kinds/webp/lossy.webp", "x.webp");
  check_bytes("../kinds/tif/grey.tif", "x.tif");
  check_names();
  check_loader();
  check_failure();
  char command[600];
  snprintf(command, sizeof command, "cd %s && rm -r ramp bad empty one kinds deep", temp_folder);
  MUST(system(command) == 0);
  temp_close();
  return check_done();
}
