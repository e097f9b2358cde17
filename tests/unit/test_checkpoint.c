/* Checkpoints. A load restores what was saved, and equal states give equal bytes. Every damaged,
 * truncated, hostile or foreign file is refused and leaves the runtime as it was. A writer that is
 * killed damages nothing. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "runtime/runtime.h"
#include "runtime/state/safetensors.h"
#include "small_program.h"
#include "temp.h"

static SmallProgram job;

static ampc_runtime *start(SmallProgram *s, uint64_t seed)
{
  ampc_runtime *rt;
  MUST(ampc_create(&s->program, "cpu", &rt) == AMPC_OK && ampc_init_params(rt, seed) == AMPC_OK);
  return rt;
}

static void run(ampc_runtime *rt, int bodies)
{
  ampc_state state;
  for (int i = 0; i < bodies; i++) {
    MUST(ampc_get_state(rt, &state) == AMPC_OK);
    float x[SMALL_BATCH * SMALL_IN];
    for (int k = 0; k < SMALL_BATCH * SMALL_IN; k++) x[k] = (float)(state.body * 3 + k);
    MUST(ampc_write(rt, (ampc_ref){AMPC_INPUT, 0}, x, sizeof x) == AMPC_OK);
    MUST(ampc_run_step(rt, 0, 0) == AMPC_OK);
  }
}

static const ampc_data_position here = {3, 4, 0};

static void save(ampc_runtime *rt, const char *path)
{
  if (ampc_checkpoint_save(rt, path, here)) {
    fprintf(stderr, "%s\n", ampc_last_error());
    exit(1);
  }
}

static bool same_files(const char *a, const char *b)
{
  size_t n, m;
  char *x = temp_read(a, &n), *y = temp_read(b, &m);
  bool same = n == m && memcmp(x, y, n) == 0;
  free(x);
  free(y);
  return same;
}

static void check_round_trip(void)
{
  ampc_runtime *rt = start(&job, 3), *other = start(&job, 8);
  run(rt, 7);
  save(rt, temp_path("a"));
  save(rt, temp_path("b"));
  CHECK(same_files(temp_path("a"), temp_path("b")));
  run(other, 2);
  ampc_data_position at = {0};
  CHECK(ampc_set(other, "opt.lr", 0.25) == AMPC_OK);
  CHECK(ampc_checkpoint_load(other, temp_path("a"), &at) == AMPC_OK);
  CHECK(at.epoch == 3 && at.batch == 4 && at.block == 0);
  for (int space = AMPC_MASTER; space <= AMPC_BUFFER; space++) {
    if (space == AMPC_COPY16 || space == AMPC_COPYBF || space == AMPC_GRAD) continue;
    if (!job.program.space_bytes[space]) continue;
    CHECK_MSG(memcmp(ampc_spaces(rt)[space], ampc_spaces(other)[space],
                     (size_t)job.program.space_bytes[space]) == 0,
              "space %d differs", space);
  }
  ampc_state a, b;
  CHECK(ampc_get_state(rt, &a) == AMPC_OK && ampc_get_state(other, &b) == AMPC_OK);
  CHECK(a.body == b.body && a.scale == b.scale && a.inv_scale == b.inv_scale && a.seed == b.seed);
  CHECK(a.growth == b.growth && a.skipped == b.skipped && b.epoch == 3 && b.body == 7);
  run(rt, 5);
  run(other, 5);
  save(rt, temp_path("a"));
  save(other, temp_path("b"));
  CHECK(same_files(temp_path("a"), temp_path("b")));
  run(other, 1);
  save(other, temp_path("b"));
  CHECK(!same_files(temp_path("a"), temp_path("b")));
  CHECK(temp_count() == 2);
  ampc_free(rt);
  ampc_free(other);
}

/* All state that a load may change. Tests check with it that a refused load changed nothing. */
typedef struct Snapshot {
  char bytes[4096];
  size_t size;
} Snapshot;

static Snapshot snapshot(ampc_runtime *rt)
{
  Snapshot s = {.size = 0};
  for (int space = AMPC_STATE; space <= AMPC_BUFFER; space++) {
    size_t n = (size_t)job.program.space_bytes[space];
    MUST(s.size + n <= sizeof s.bytes);
    if (n) memcpy(s.bytes + s.size, ampc_spaces(rt)[space], n);
    s.size += n;
  }
  return s;
}

static void expect_refused(ampc_runtime *rt, const Snapshot *before, const char *what, long where)
{
  ampc_data_position at = {-1, -1, -1};
  ampc_status status = ampc_checkpoint_load(rt, temp_path("bad"), &at);
  CHECK_MSG(status == AMPC_BAD_FILE, "%s %ld: status %d", what, where, status);
  CHECK_MSG(strstr(ampc_last_error(), temp_path("bad")), "%s: %s", what, ampc_last_error());
  CHECK_MSG(at.epoch == -1, "%s %ld: position changed", what, where);
  Snapshot after = snapshot(rt);
  CHECK_MSG(memcmp(before->bytes, after.bytes, after.size) == 0, "%s %ld: runtime changed", what,
            where);
}

static void check_damage(void)
{
  ampc_runtime *rt = start(&job, 3);
  run(rt, 4);
  save(rt, temp_path("a"));
  run(rt, 2);
  Snapshot before = snapshot(rt);
  size_t size;
  char *bytes = temp_read(temp_path("a"), &size);
  for (size_t i = 0; i < size; i++) {
    bytes[i] = (char)(bytes[i] ^ (1 << (i % 8)));
    temp_write(temp_path("bad"), bytes, size);
    expect_refused(rt, &before, "flipped bit in byte", (long)i);
    bytes[i] = (char)(bytes[i] ^ (1 << (i % 8)));
  }
  for (size_t n = 0; n < size; n++) {
    temp_write(temp_path("bad"), bytes, n);
    expect_refused(rt, &before, "cut to", (long)n);
  }
  bytes = realloc(bytes, size + 1);
  bytes[size] = 0;
  temp_write(temp_path("bad"), bytes, size + 1);
  expect_refused(rt, &before, "byte behind", (long)size);
  free(bytes);
  unlink(temp_path("bad"));
  expect_refused(rt, &before, "missing", 0);
  mkdir(temp_path("bad"), 0700);
  expect_refused(rt, &before, "a folder", 0);
  rmdir(temp_path("bad"));
  ampc_free(rt);
}

static void write_header(const char *json, uint64_t claimed)
{
  char bytes[2048] = {0};
  size_t n = strlen(json), data = 16;
  uint64_t length = claimed ? claimed : n;
  for (int i = 0; i < 8; i++) bytes[i] = (char)(length >> (8 * i));
  memcpy(bytes + 8, json, n);
  temp_write(temp_path("bad"), bytes, 8 + n + data);
}

static void check_hostile(void)
{
  ampc_runtime *rt = start(&job, 3);
  Snapshot before = snapshot(rt);
  static const char *const headers[] = {
      "",
      "[]",
      "7",
      "{",
      "{\"a\":1}",
      "{\"a\":{}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,17]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[-16,0]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16,32]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,1.6e1]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[9223372036854775807,0]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[-4],\"data_offsets\":[0,16]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,16]}}",
      "{\"a\":{\"dtype\":\"X32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
      "{\"a\":{\"dtype\":7,\"shape\":[4],\"data_offsets\":[0,16]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},\"__metadata__\":3}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
      "\"__metadata__\":{\"ampc.checksum\":\"00\"}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
      "\"__metadata__\":{\"ampc.checksum\":\"0000000000000000\"}}",
  };
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    write_header(headers[i], 0);
    expect_refused(rt, &before, "header", (long)i);
  }
  static const uint64_t lengths[] = {1, 17, 1 << 20, 1ull << 32, 1ull << 63, UINT64_MAX};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    write_header("{}", lengths[i]);
    expect_refused(rt, &before, "header length", (long)i);
  }
  char deep[2000];
  memset(deep, '[', sizeof deep);
  deep[sizeof deep - 1] = 0;
  write_header(deep, 0);
  expect_refused(rt, &before, "deep header", 0);
  ampc_free(rt);
}

/* Saves a checkpoint of `s`. The usual program must refuse it with a message that has `word`. */
static void expect_foreign(SmallProgram *s, const char *word)
{
  ampc_runtime *rt = start(&job, 3), *other = start(s, 3);
  unlink(temp_path("bad"));
  save(other, temp_path("bad"));
  Snapshot before = snapshot(rt);
  expect_refused(rt, &before, word, 0);
  CHECK_MSG(strstr(ampc_last_error(), word), "no `%s` in: %s", word, ampc_last_error());
  ampc_free(rt);
  ampc_free(other);
}

static void check_other_models(void)
{
  SmallProgram s;
  small_program(&s);
  s.params[0].dim[0] = 2;
  s.params[0].elements = 4;
  expect_foreign(&s, "fc.weight is F32[2, 2] there and F32[3, 2] in small.amp");
  small_program(&s);
  s.params[1].path = "fc.bios";
  expect_foreign(&s, "lacks fc.bias F32[2] of small.amp");
  small_program(&s);
  s.params[2].optimizer = 0;
  expect_foreign(&s, "has optimizer.opt.moment1/temperature, but no optimizer of small.amp trains");
  small_program(&s);
  s.params[3].dtype = AMPC_F32;
  expect_foreign(&s, "seen is F32[]");
  small_program(&s);
  s.program.model_hash = 5;
  expect_foreign(&s, "other optimizers update them");
  small_program(&s);
  s.program.real64 = true;
  for (int space = AMPC_MASTER; space <= AMPC_MOMENT2; space++) s.program.space_bytes[space] *= 2;
  expect_foreign(&s, "F64[3, 2]");
}

/* Writes a file that was read and then changed, with the checksum of its new contents. */
static void write_again(TensorFile *f, const char *path)
{
  TensorWriter w;
  char *data = malloc((size_t)f->size);
  unlink(path);
  MUST(data && tensor_file_load(f, 0, data, f->size) == AMPC_OK);
  MUST(tensor_write_begin(&w, f, path, &file_checkpoint) == AMPC_OK &&
       tensor_write(&w, data, f->size) == AMPC_OK && tensor_write_end(&w) == AMPC_OK);
  free(data);
}

typedef struct Forged {
  const char *key, *value;
} Forged;

/* Replaces one entry of the run's checkpoint "a" at a time. Each such file must be refused. */
static void expect_forged_refused(ampc_runtime *rt, const Forged *forged, size_t n)
{
  Snapshot before = snapshot(rt);
  for (size_t i = 0; i < n; i++) {
    TensorFile f;
    MUST(tensor_file_read(temp_path("a"), &f) == AMPC_OK);
    MUST(tensor_file_set(&f, forged[i].key, forged[i].value));
    write_again(&f, temp_path("bad"));
    tensor_file_free(&f);
    expect_refused(rt, &before, forged[i].key, (long)i);
    CHECK_MSG(strstr(ampc_last_error(), forged[i].key) && strstr(ampc_last_error(), ", expected "),
              "%s", ampc_last_error());
  }
}

/* Checks complete files with a correct checksum, but with metadata that no run writes. */
static void check_forged(void)
{
  static const Forged forged[] = {
      {"ampc.scale", "12abc"},
      {"ampc.scale", "nan"},
      {"ampc.scale", "inf"},
      {"ampc.scale", "-1"},
      {"ampc.scale", "1e39"},
      {"ampc.scale", "0"},
      {"ampc.scale", "1e-44"},
      {"ampc.scale", "0x1p4"},
      {"ampc.scale", ""},
      {"ampc.scaler", "on"},
      {"ampc.growth", "-1"},
      {"ampc.growth", "9223372036854775807"},
      {"ampc.seed", "1 "},
      {"ampc.seed", "9223372036854775808"},
      {"ampc.step", "-1"},
      {"ampc.step", "10"},
      {"ampc.body", "-1"},
      {"ampc.body", "4.0"},
      {"ampc.body", "9223372036854775807"},
      {"ampc.skipped", "5"},
      {"ampc.optimizer.opt.taken", "5"},
      {"ampc.optimizer.opt.taken", "18446744073709551617"},
      {"ampc.position.block", "77"},
      {"ampc.position.block", "4294967296"},
      {"ampc.position.epoch", "4611686018427387904"},
      {"ampc.position.epoch", " 3"},
      {"ampc.position.batch", "-2"},
      {"ampc.position.batch", "9223372036854775807"},
  };
  ampc_runtime *rt = start(&job, 3);
  run(rt, 4);
  save(rt, temp_path("a"));
  expect_forged_refused(rt, forged, sizeof forged / sizeof *forged);
  ampc_free(rt);
}

/* Checks optimizers that have scales of their own: the keys of these scales are checked too. */
static void check_own_scales(void)
{
  static const Forged forged[] = {{"ampc.optimizer.opt.scale", "1e39"},
                                  {"ampc.optimizer.opt.scale", "0"},
                                  {"ampc.optimizer.opt.growth", "-1"},
                                  {"ampc.optimizer.opt.spared", "1.5"}};
  SmallProgram s;
  small_program(&s);
  s.program.scaler.per_optimizer = true;
  ampc_runtime *rt = start(&s, 3);
  run(rt, 4);
  save(rt, temp_path("a"));
  expect_forged_refused(rt, forged, sizeof forged / sizeof *forged);
  ampc_free(rt);
}

/* Makes a program that lowers a setting on a plateau of a metric. */
static void with_plateau(SmallProgram *s)
{
  static const ampc_plateau plateau = {.setting = 0, .metric = 1, .patience = 3, .factor = 0.5};
  small_program(s);
  s->program.plateaus = &plateau;
  s->program.n_plateaus = 1;
}

static ampc_status load(ampc_runtime *rt, const char *path)
{
  ampc_data_position at;
  return ampc_checkpoint_load(rt, path, &at);
}

static float setting_of(ampc_runtime *rt)
{
  float value;
  MUST(runtime_read_setting(rt, 0, &value) == AMPC_OK);
  return value;
}

static void check_plateau(void)
{
  SmallProgram s;
  with_plateau(&s);
  ampc_runtime *rt = start(&s, 3), *other = start(&s, 5);
  run(rt, 4);
  save(rt, temp_path("a")); /* before the first evaluation */
  rt->plateau[0] = (PlateauState){true, true, 0.25, 0.1 + 0.2, 2, 1, 3};
  MUST(runtime_write_setting(rt, 0, 0.1) == AMPC_OK);
  save(rt, temp_path("b"));
  CHECK(load(other, temp_path("b")) == AMPC_OK && setting_of(other) == 0.1f);
  const PlateauState *at = &other->plateau[0];
  CHECK(at->any && at->found && at->start == 0.25 && at->best == 0.1 + 0.2 && at->bad == 2);
  CHECK(at->cooling == 1 && at->step == 3);
  CHECK(load(other, temp_path("a")) == AMPC_OK && setting_of(other) == 0.25f && !at->any);
  rt->plateau[0].found = false; /* no evaluation returned a finite number */
  save(rt, temp_path("b"));
  CHECK(load(other, temp_path("b")) == AMPC_OK && at->any && !at->found);
  CHECK(ampc_init_params(other, 5) == AMPC_OK && setting_of(other) == 0.25f && !at->any);
  ampc_free(rt);
  ampc_free(other);
}

static void check_forged_plateau(void)
{
  static const struct {
    const char *key, *value;
  } forged[] = {{"value", "-1"},  {"value", "nan"}, {"value", "0.1x"}, {"best", "inf"},
                {"best", ""},     {"bad", "-2"},    {"bad", "5"},      {"cooldown", "-1"},
                {"cooldown", ""}, {"step", "5"},    {"step", "0.5"},   {"cooldown", "1e400"}};
  SmallProgram s;
  with_plateau(&s);
  ampc_runtime *rt = start(&s, 3);
  run(rt, 4);
  rt->plateau[0] = (PlateauState){true, true, 0.25, 0.5, 2, 1, 3};
  save(rt, temp_path("a"));
  Snapshot before = snapshot(rt);
  for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
    TensorFile f;
    char key[64];
    snprintf(key, sizeof key, "ampc.plateau.opt.lr.%s", forged[i].key);
    MUST(tensor_file_read(temp_path("a"), &f) == AMPC_OK);
    MUST(tensor_file_set(&f, key, forged[i].value));
    write_again(&f, temp_path("bad"));
    tensor_file_free(&f);
    expect_refused(rt, &before, key, (long)i);
    CHECK_MSG(strstr(ampc_last_error(), key) && strstr(ampc_last_error(), ", expected "), "%s",
              ampc_last_error());
  }
  ampc_free(rt);
}

/* Checks that two optimizers whose names share a long prefix have a counter each. */
static void check_long_names(void)
{
  enum { LONG = 400 };
  char names[2][LONG + 2], settings[2][LONG + 8];
  for (int i = 0; i < 2; i++) {
    memset(names[i], 'o', LONG);
    names[i][LONG] = (char)('a' + i);
    names[i][LONG + 1] = 0;
    snprintf(settings[i], sizeof settings[i], "%s.lr", names[i]);
  }
  SmallProgram s;
  small_program(&s);
  const ampc_optimizer_desc two[] = {{.name = names[0], .kind = "SGD", .count = 32},
                                     {.name = names[1], .kind = "SGD", .first = 32}};
  const ampc_setting rates[] = {{settings[0], 0.25, AMPC_NOT_NEGATIVE, 0, 0},
                                {settings[1], 0.5, AMPC_NOT_NEGATIVE, 0, 0}};
  s.program.optimizers = two;
  s.program.n_optimizers = 2;
  s.program.settings = rates;
  s.program.space_bytes[AMPC_STATE] += (int64_t)sizeof(ampc_optimizer);
  ampc_runtime *rt = start(&s, 3), *other = start(&s, 3);
  ampc_state state;
  MUST(ampc_get_state(rt, &state) == AMPC_OK);
  state.body = state.step = 9;
  MUST(ampc_write(rt, (ampc_ref){AMPC_STATE, 0}, &state, sizeof state) == AMPC_OK);
  for (uint32_t i = 0; i < 2; i++) {
    ampc_optimizer o = {.taken = 3 + i};
    MUST(ampc_write(rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o) == AMPC_OK);
  }
  save(rt, temp_path("a"));
  ampc_data_position at;
  CHECK_MSG(ampc_checkpoint_load(other, temp_path("a"), &at) == AMPC_OK, "%s", ampc_last_error());
  for (uint32_t i = 0; i < 2; i++) {
    ampc_optimizer o = {0};
    MUST(ampc_read(other, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o) ==
         AMPC_OK);
    CHECK_MSG(o.taken == 3 + i, "optimizer %u has taken %lld steps", i, o.taken);
  }
  ampc_free(rt);
  ampc_free(other);
}

/* Checks that an optimizer with two `minimize` statements in a body updates twice per step. */
static void check_two_updates(void)
{
  SmallProgram s;
  small_program(&s);
  ampc_optimizer_desc twice = s.program.optimizers[0];
  twice.updates = 2;
  s.program.optimizers = &twice;
  for (long long taken = 8; taken <= 9; taken++) {
    ampc_runtime *rt = start(&s, 3), *other = start(&s, 3);
    ampc_data_position at;
    run(rt, 4);
    ampc_optimizer o = {.taken = taken};
    MUST(ampc_write(rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(0)}, &o, sizeof o) == AMPC_OK);
    save(rt, temp_path("a"));
    bool loaded = ampc_checkpoint_load(other, temp_path("a"), &at) == AMPC_OK;
    CHECK_MSG(loaded == (taken == 8), "%lld updates in 4 steps: %s", taken,
              loaded ? "loaded" : ampc_last_error());
    ampc_free(rt);
    ampc_free(other);
  }
}

/* Checks that loading a checkpoint of a run without a scaler resets the scaler. */
static void check_other_scaler(void)
{
  SmallProgram s;
  small_program(&s);
  s.program.scaler.on = false;
  ampc_runtime *rt = start(&s, 3), *scaled = start(&job, 3);
  save(rt, temp_path("a"));
  ampc_data_position at;
  CHECK(ampc_checkpoint_load(scaled, temp_path("a"), &at) == AMPC_OK);
  ampc_state state;
  CHECK(ampc_get_state(scaled, &state) == AMPC_OK && state.scale == 65536);
  run(scaled, 1);
  save(scaled, temp_path("a"));
  CHECK(ampc_checkpoint_load(rt, temp_path("a"), &at) == AMPC_OK);
  CHECK(ampc_get_state(rt, &state) == AMPC_OK && state.scale == 1 && state.inv_scale == 1);
  ampc_free(rt);
  ampc_free(scaled);
}

static void check_write_errors(void)
{
  ampc_runtime *rt = start(&job, 3);
  save(rt, temp_path("a"));
  int files = temp_count();
  size_t n, m;
  char *old = temp_read(temp_path("a"), &n);
  struct rlimit limit = {1000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
  signal(SIGXFSZ, SIG_IGN);
  run(rt, 1);
  MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK(ampc_checkpoint_save(rt, temp_path("a"), here) == AMPC_BAD_FILE);
  CHECK(strstr(ampc_last_error(), "File too large") && strstr(ampc_last_error(), temp_path("a")));
  MUST(setrlimit(RLIMIT_FSIZE, &none) == 0);
  char *now = temp_read(temp_path("a"), &m);
  CHECK(n == m && memcmp(old, now, n) == 0 && temp_count() == files);
  CHECK(ampc_checkpoint_save(rt, temp_path("no/such"), here) == AMPC_BAD_FILE);
  CHECK(ampc_checkpoint_save(rt, temp_folder, here) == AMPC_BAD_FILE);
  MUST(mkfifo(temp_path("pipe"), 0600) == 0);
  CHECK(ampc_checkpoint_save(rt, temp_path("pipe"), here) == AMPC_BAD_FILE);
  unlink(temp_path("pipe"));
  free(old);
  free(now);
  ampc_free(rt);
}

/* Kills a child that writes checkpoints. The file that is left must be complete. */
static void check_kill(void)
{
  ampc_runtime *first = start(&job, 3);
  save(first, temp_path("k"));
  ampc_free(first);
  for (int i = 0; i < 40; i++) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
      ampc_runtime *rt = start(&job, 3);
      for (;;) {
        run(rt, 1);
        save(rt, temp_path("k"));
      }
    }
    usleep((useconds_t)(1500 + i * 700 % 9000));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ampc_runtime *rt = start(&job, 9);
    ampc_data_position at;
    CHECK_MSG(ampc_checkpoint_load(rt, temp_path("k"), &at) == AMPC_OK, "%s", ampc_last_error());
    ampc_free(rt);
  }
}

/* A file of weights has the parameters and buffers of a checkpoint, and no other tensor. */
static void check_weights(void)
{
  ampc_runtime *rt = start(&job, 3);
  TensorFile weights, all;
  const char *name;
  json_t *entry;
  run(rt, 2);
  save(rt, temp_path("a"));
  MUST(ampc_weights_save(rt, temp_path("b")) == AMPC_OK);
  MUST(tensor_file_read(temp_path("a"), &all) == AMPC_OK);
  MUST(tensor_file_read(temp_path("b"), &weights) == AMPC_OK);
  CHECK(json_object_size(weights.header) == job.program.n_params + 1);
  json_object_foreach(weights.header, name, entry)
      CHECK_MSG(json_object_get(all.header, name) && !strchr(name, '/'), "%s", name);
  tensor_file_free(&all);
  tensor_file_free(&weights);
  ampc_free(rt);
}

int main(void)
{
  temp_open();
  small_program(&job);
  check_round_trip();
  check_weights();
  check_damage();
  check_hostile();
  check_other_models();
  check_other_scaler();
  check_own_scales();
  check_forged();
  check_plateau();
  check_forged_plateau();
  check_long_names();
  check_two_updates();
  check_write_errors();
  check_kill();
  temp_close();
  return check_done();
}
