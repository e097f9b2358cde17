/* Pictures that are stored rotated or mirrored: the Exif orientation, in any bytes; the pixels
 * against Pillow and torchvision; random crops; and the note that reports such pictures. */
#include "runtime/data/formats/exif.h"
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};

enum { BYTES = 768 };

#define SMALL "size=16\nresize=18\nratio=0.75\nratio=1.25\ncorrupt=stop\nhflip=0\n"
#define DRAWN                                                                                      \
  "size=16\nratio=0.5\nratio=2\nscale=0.2\nscale=0.9\ntrain=1\nhflip=0.5\n"                        \
  "corrupt=stop\n"

static void read_epoch(const char *path, const char *args, int64_t sample, int64_t epoch,
                       uint8_t to[BYTES])
{
  ampc_source desc = {.kind = AMPC_SOURCE_IMAGES,
                      .path = path,
                      .args = args,
                      .part_end = 1,
                      .dtype = AMPC_U8,
                      .rank = 3,
                      .dim = {3, 16, 16}};
  DataSource s;
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK);
  MUST(source_copy(&s, sample, 1, epoch, to) == AMPC_OK);
  source_close(&s);
}

/* ---- the orientation ---- */

/* Makes a TIFF file with one directory of two entries. The second one is the orientation. */
static int64_t tiff(bool big, unsigned type, unsigned count, unsigned value, uint8_t to[64])
{
  const unsigned words[][2] = {{2, 42}, {4, 8}, {2, 2},     {2, 0x10f}, {2, 3},    {4, 1},
                               {2, 7},  {2, 0}, {2, 0x112}, {2, type},  {4, count}};
  int64_t n = 2;
  memcpy(to, big ? "MM" : "II", 2);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    for (unsigned k = 0; k < words[i][0]; k++)
      to[n++] = (uint8_t)(words[i][1] >> 8 * (big ? words[i][0] - 1 - k : k));
  for (unsigned k = 0; k < (type == 3 ? 2 : 4); k++)
    to[n++] = (uint8_t)(value >> 8 * (big ? (type == 3 ? 1 : 3) - k : k));
  while (n < 8 + 2 + 24) to[n++] = 0;
  return n;
}

/* Copies the bytes to memory of exactly that size: a sanitizer then reports reads past the end. */
static int orientation_of(const uint8_t *bytes, int64_t n)
{
  uint8_t *exact = malloc(n ? (size_t)n : 1);
  MUST(exact);
  memcpy(exact, bytes, (size_t)n);
  int found = exif_orientation(exact, n);
  free(exact);
  CHECK(found >= 1 && found <= 8);
  return found;
}

static void check_number(void)
{
  uint8_t bytes[64];
  for (int big = 0; big < 2; big++) {
    for (unsigned value = 0; value < 12; value++) {
      int want = value >= 1 && value <= 8 ? (int)value : 1;
      CHECK(orientation_of(bytes, tiff(big, 3, 1, value, bytes)) == want);
      CHECK(orientation_of(bytes, tiff(big, 4, 1, value, bytes)) == want);
    }
    CHECK(orientation_of(bytes, tiff(big, 4, 1, 0x80000006, bytes)) == 1);
    CHECK(orientation_of(bytes, tiff(big, 3, 2, 6, bytes)) == 1);
    CHECK(orientation_of(bytes, tiff(big, 3, 0xffffffff, 6, bytes)) == 1);
    CHECK(orientation_of(bytes, tiff(big, 2, 1, 6, bytes)) == 1);
    int64_t size = tiff(big, 3, 1, 6, bytes);
    for (int64_t n = 0; n < size; n++) CHECK(orientation_of(bytes, n) == 1);
    for (int64_t i = 0; i < size; i++)
      for (int bit = 0; bit < 8; bit++) {
        bytes[i] ^= (uint8_t)(1 << bit);
        orientation_of(bytes, size);
        bytes[i] ^= (uint8_t)(1 << bit);
      }
    memset(bytes + 4, 0xff, 4); /* the directory lies past the end */
    CHECK(orientation_of(bytes, size) == 1);
    memset(bytes + 4, 0, 4); /* the directory is the header itself */
    CHECK(orientation_of(bytes, size) == 1);
  }
}

/* ---- the pixels ---- */

static void check_reference(void)
{
  ampc_source want = {.kind = AMPC_SOURCE_NPY,
                      .part_end = 1,
                      .dtype = AMPC_U8,
                      .rank = 3,
                      .path = "tests/data/turned/jpg/expected.npy",
                      .dim = {3, 16, 16}};
  DataSource w;
  MUST(source_open(&program, &want, "", 1, &w) == AMPC_OK && w.count == 9);
  for (int64_t i = 0; i < 9; i++) {
    uint8_t has[BYTES], expected[BYTES];
    read_epoch("tests/data/turned/jpg", SMALL "class=.\nexif=1\n", i, 0, has);
    MUST(source_copy(&w, i, 1, 0, expected) == AMPC_OK);
    int most = 0;
    for (int k = 0; k < BYTES; k++)
      if (abs(has[k] - expected[k]) > most) most = abs(has[k] - expected[k]);
    /* Pillow rounds once more. The last one is decoded at a quarter of its size by another filter:
     * its error is 4, as for the same picture stored upright. */
    CHECK_MSG(most <= (i == 8 ? 5 : 1), "picture %lld: %d", (long long)i, most);
  }
  source_close(&w);
}

/* Checks that all eight orientations give the same bytes: crops and flips apply to it upright. */
static void check_draws(void)
{
  char path[64];
  for (int64_t epoch = 0; epoch < 20; epoch++) {
    uint8_t first[BYTES], other[BYTES];
    read_epoch("tests/data/turned/png/1.png", DRAWN "exif=1\n", 0, epoch, first);
    for (int i = 2; i <= 8; i++) {
      snprintf(path, sizeof path, "tests/data/turned/png/%d.png", i);
      read_epoch(path, DRAWN "exif=1\n", 0, epoch, other);
      CHECK_MSG(memcmp(first, other, BYTES) == 0, "orientation %d, epoch %lld", i,
                (long long)epoch);
    }
  }
}

/* Checks that without `exif`, pictures are not rotated, as in torchvision's ImageFolder, and one
 * note says so. With `exif=0` or `exif=1` there is no note. */
static void check_unasked(void)
{
  uint8_t upright[BYTES], stored[BYTES], unasked[BYTES];
  char *text;
  size_t size;
  /* Here a note says, once, that the folder has other files. */
  read_epoch("tests/data/turned/png", SMALL "class=.\nexif=1\n", 5, 0, upright);
  FILE *real = stderr, *memory = open_memstream(&text, &size);
  MUST(memory);
  stderr = memory;
  read_epoch("tests/data/turned/png", SMALL "class=.\nexif=1\n", 5, 0, upright);
  read_epoch("tests/data/turned/png", SMALL "class=.\nexif=0\n", 5, 0, stored);
  read_epoch("tests/data/turned/png", SMALL "class=.\n", 0, 0, unasked);
  fflush(memory);
  CHECK_MSG(size == 0, "%s", text);
  ampc_source desc = {.kind = AMPC_SOURCE_IMAGES,
                      .path = "tests/data/turned/png",
                      .args = SMALL "class=.\n",
                      .part_end = 1,
                      .dtype = AMPC_U8,
                      .rank = 3,
                      .dim = {3, 16, 16}};
  DataSource s;
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK);
  for (int64_t i = 5; i < 8; i++) MUST(source_copy(&s, i, 1, 0, unasked) == AMPC_OK);
  MUST(source_copy(&s, 5, 1, 0, unasked) == AMPC_OK);
  source_close(&s);
  fclose(memory);
  stderr = real;
  CHECK(memcmp(stored, unasked, BYTES) == 0 && memcmp(stored, upright, BYTES) != 0);
  const char *note = strstr(text, "note: tests/data/turned/png/6.png has Exif orientation 6");
  CHECK_MSG(note && !strstr(note + 1, "note: ") && strstr(note, "exif=true"), "%s", text);
  free(text);
}

/* Inverts each byte before the pixels. The file is read or refused. */
static void check_bytes(const char *from, const char *as)
{
  size_t size;
  char *bytes = temp_read(from, &size);
  for (size_t i = 0; i < 120; i++) {
    bytes[i] = (char)~bytes[i];
    temp_write(temp_path(as), bytes, size);
    bytes[i] = (char)~bytes[i];
    ampc_source desc = {.kind = AMPC_SOURCE_IMAGES,
                        .path = as,
                        .args = SMALL "exif=1\n",
                        .part_end = 1,
                        .dtype = AMPC_U8,
                        .rank = 3,
                        .dim = {3, 16, 16}};
    DataSource s;
    uint8_t sample[BYTES];
    MUST(source_open(&program, &desc, temp_folder, 1, &s) == AMPC_OK);
    ampc_status status = source_copy(&s, 0, 1, 0, sample);
    CHECK_MSG(!status || status == AMPC_BAD_FILE, "%s, %zu: %s", from, i, ampc_last_error());
    source_close(&s);
  }
  unlink(temp_path(as));
  free(bytes);
}

int main(void)
{
  temp_open();
  check_number();
  check_reference();
  check_draws();
  check_unasked();
  check_bytes("tests/data/turned/jpg/6.jpg", "x.jpg");
  check_bytes("tests/data/turned/png/6.png", "x.png");
  temp_close();
  return check_done();
}
