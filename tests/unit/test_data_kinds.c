/* Pictures of other kinds than JPEG and PNG, against torchvision. */
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};

#define ARGS "size=16\nratio=0.75\nratio=1.25\nresize=18\ncorrupt=stop\nhflip=0\n"

static ampc_source source_of(const char *path, const char *args)
{
  return (ampc_source){.kind = AMPC_SOURCE_IMAGES,
                       .path = path,
                       .args = args,
                       .part_end = 1,
                       .dtype = AMPC_U8,
                       .rank = 3,
                       .dim = {3, 16, 16}};
}

/* BMP, WebP and TIFF, with alpha, palettes and greys. A library that is not installed is named,
 * with its package. */
static void check_kind(const char *class, int64_t first, int64_t n)
{
  char args[100];
  snprintf(args, sizeof args, ARGS "class=%s\n", class);
  ampc_source desc = source_of("tests/data/kinds", args),
              want = {.kind = AMPC_SOURCE_NPY,
                      .part_end = 1,
                      .dtype = AMPC_U8,
                      .rank = 3,
                      .path = "tests/data/kinds/expected.npy",
                      .dim = {3, 16, 16}};
  DataSource s, w;
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK && s.count == n);
  MUST(source_open(&program, &want, "", 1, &w) == AMPC_OK);
  for (int64_t i = 0; i < n; i++) {
    uint8_t has[768], expected[768];
    char name[64];
    int most = 0;
    ampc_status status = source_copy(&s, i, 1, 0, has);
    CHECK(source_sample_name(&s, i, name, sizeof name));
    if (status == AMPC_RUN_FAILED && strstr(ampc_last_error(), "(Debian: lib")) continue;
    CHECK_MSG(!status, "%s", ampc_last_error());
    MUST(source_copy(&w, first + i, 1, 0, expected) == AMPC_OK);
    for (int k = 0; k < 768 && !status; k++)
      if (abs(has[k] - expected[k]) > most) most = abs(has[k] - expected[k]);
    CHECK_MSG(most <= 1, "%s: %d", name, most); /* Pillow rounds once more */
  }
  source_close(&s);
  source_close(&w);
}

/* A BMP of a kind that is not read, and one that begins with its highest row. */
static void check_bmp(void)
{
  size_t size;
  char *bytes = temp_read("tests/data/kinds/bmp/true.bmp", &size), folder[512], path[512];
  uint8_t up[768], down[768];
  snprintf(folder, sizeof folder, "%s", temp_folder);
  snprintf(path, sizeof path, "%.400s/x.jpg", folder);
  ampc_source desc = source_of(folder, ARGS "class=.\n");
  DataSource s;
  temp_write(path, bytes, size);
  MUST(source_open(&program, &desc, "", 1, &s) == AMPC_OK);
  MUST(source_copy(&s, 0, 1, 0, up) == AMPC_OK);
  for (int i = 22; i < 26; i++) bytes[i] = (char)~bytes[i]; /* height = -height - 1 */
  bytes[22]++;
  temp_write(path, bytes, size);
  MUST(source_copy(&s, 0, 1, 0, down) == AMPC_OK);
  for (int c = 0; c < 48; c++)
    for (int x = 0; x < 16; x++)
      CHECK(abs(up[c * 16 + x] - down[(c / 16 * 16 + 15 - c % 16) * 16 + x]) <= 1);
  bytes[30] = 1; /* runs */
  temp_write(path, bytes, size);
  CHECK(source_copy(&s, 0, 1, 0, up) == AMPC_BAD_FILE &&
        strstr(ampc_last_error(), "is a BMP of 24 bits with compression 1; read are BMPs"));
  source_close(&s);
  free(bytes);
}

int main(void)
{
  temp_open();
  check_kind("bmp", 0, 4);
  check_kind("tif", 4, 4);
  check_kind("webp", 8, 3);
  check_bmp();
  temp_close();
  return check_done();
}
