/* The training loop and the command line of emitted programs: results, exit statuses, resuming,
 * Ctrl-C, a loss that is not finite. Each run is a process of its own. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "small_program.h"
#include "temp.h"

static SmallProgram job;

/* Extra actions of the train kernel, once each, at the given body. */
static long long signal_at = -1, lose_at = -1, fail_after = -1, insist_at = -1;
static int signal_sent = SIGINT;

/* A step that lasts until the process ends: a second signal must end it at once. */
static void insist(void)
{
  for (int i = 0; i < 6000; i++) {
    kill(getpid(), signal_sent);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  _exit(98);
}

static void train_kernel(void *const *args, unsigned block, unsigned n_blocks)
{
  ampc_state *state = args[0];
  long long body = state->body;
  if (state->bad_loss <= 0) small_train_kernel(args, block, n_blocks);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (!sigismember(&mask, SIGINT) || sigismember(&mask, SIGSEGV)) _exit(97); /* Note [signals] */
  if (body == signal_at) raise(signal_sent);
  if (body == insist_at) insist();
  if (body == lose_at) state->bad_loss = job.program.scaler.on ? -1 - body : body + 1;
  if (fail_after >= 0 && body >= fail_after) _exit(99);
}

/* Extra actions of the eval kernel, in the given evaluation (the first is 1). */
static int evaluations, kill_in = -1, stop_in = -1;

static void eval_kernel(void *const *args, unsigned block, unsigned n_blocks)
{
  evaluations++;
  if (evaluations == kill_in) raise(SIGKILL);
  if (evaluations == stop_in) raise(SIGTERM);
  small_eval_four(args, block, n_blocks);
}

typedef struct Result {
  int status;
  char out[8192], err[8192];
} Result;

static void read_text(const char *path, char *to, size_t size)
{
  size_t n;
  char *bytes = temp_read(path, &n);
  MUST(n < size);
  memcpy(to, bytes, n);
  to[n] = 0;
  free(bytes);
  unlink(path);
}

/* Runs the program with the words of `line` as arguments. %s stands for the folder. */
static Result run(const char *line)
{
  char text[512], *argv[32] = {(char *)(uintptr_t) "small"};
  int argc = 1;
  snprintf(text, sizeof text, line, temp_folder, temp_folder, temp_folder);
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
  Result r = {.status = -1};
  fflush(NULL);
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    MUST(freopen(temp_path("out"), "w", stdout) && freopen(temp_path("err"), "w", stderr));
    exit(ampc_main(argc, argv, &job.program, &ampc_data));
  }
  int status;
  MUST(waitpid(child, &status, 0) == child);
  r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  read_text(temp_path("out"), r.out, sizeof r.out);
  read_text(temp_path("err"), r.err, sizeof r.err);
  return r;
}

static void expect(const char *line, int status, const char *out, const char *err)
{
  Result r = run(line);
  CHECK_MSG(r.status == status, "%s: status %d instead of %d: %s", line, r.status, status, r.err);
  CHECK_MSG(!out || strstr(r.out, out), "%s: no `%s` on stdout: %s", line, out, r.out);
  CHECK_MSG(!err || strstr(r.err, err), "%s: no `%s` on stderr: %s", line, err, r.err);
}

static bool exists(const char *name)
{
  return access(temp_path(name), F_OK) == 0;
}

static void expect_same(const char *a, const char *b, const char *what)
{
  size_t n, m;
  char *x = temp_read(temp_path(a), &n), *y = temp_read(temp_path(b), &m);
  CHECK_MSG(n == m && memcmp(x, y, n) == 0, "%s: files differ", what);
  free(x);
  free(y);
}

static void fresh(void)
{
  small_program(&job);
  job.kernels[0].function = (void (*)(void))train_kernel;
  job.kernels[1].function = (void (*)(void))eval_kernel;
  signal_at = lose_at = fail_after = insist_at = -1;
  evaluations = 0;
  kill_in = stop_in = -1;
}

static void check_whole(void)
{
  Result r = run("--save %s/whole");
  CHECK_MSG(r.status == 0, "%s", r.err);
  CHECK(strstr(r.out, "eval acc: 0."));
  CHECK(strstr(r.out, "skipped steps: 3 of 10\n"));
  CHECK(strstr(r.err, "epoch 1 step 1/10 loss "));
  CHECK(strstr(r.err, " lr 0.25 scale 65536 skipped 3 "));
  CHECK(strstr(r.err, "epoch 5 step 10/10 ") && !strstr(r.err, "step 11"));
  CHECK(strstr(r.err, "step 2 eval acc 0.") && !strstr(r.err, "step 3 eval"));
  CHECK(strstr(r.err, "saved ") && exists("whole") && temp_count() == 1);
  r = run("--quiet");
  CHECK(r.status == 0 && r.err[0] == 0 && strstr(r.out, "eval acc: "));
  r = run("--log 4");
  CHECK(!strstr(r.err, "step 3/10") && strstr(r.err, "step 4/10"));
  expect("--seed 9 --save %s/other --quiet", 0, NULL, NULL);
  Result again = run("--save %s/again --quiet");
  CHECK(again.status == 0);
  expect_same("whole", "again", "the same again");
}

/* Checks that stopping after any step, resuming, and saving more often give the same bytes. */
static void check_resume(void)
{
  char line[200];
  for (int steps = 1; steps <= 10; steps++) {
    snprintf(line, sizeof line, "--steps %d --save %%s/part", steps);
    expect(line, 0, "eval acc", NULL);
    expect("--resume %s/part --save %s/part --save-every 3 --quiet", 0, "of 10", NULL);
    expect_same("whole", "part", line);
  }
  expect("--resume %s/part --save %s/part --steps 4 --quiet", 0, "of 10", NULL); /* nothing to do */
  expect_same("whole", "part", "nothing to do");
  expect("--resume %s/whole --steps 13 --save %s/part", 0, "of 13", "step 13/13");
  expect("--steps 13 --save %s/again", 0, "of 13", NULL);
  expect_same("again", "part", "more steps than the job's");
  expect("--resume %s/whole --seed 4", AMPC_BAD_USAGE, NULL, "seed 0");
  expect("--resume %s/whole --seed 0", 0, NULL, NULL);
}

static void check_every(void)
{
  job.blocks[1].every = 3;
  job.blocks[0].max_steps = 7;
  job.blocks[0].save = temp_path("block");
  job.blocks[0].save_every = 5;
  Result r = run("");
  CHECK(strstr(r.err, "step 3 eval") && strstr(r.err, "step 6 eval") &&
        strstr(r.err, "step 7 eval"));
  CHECK(!strstr(r.err, "step 2 eval") && !strstr(r.err, "step 4 eval"));
  CHECK(r.status == 0 && exists("block"));
  fail_after = 6; /* the seventh step does not end: the checkpoint is that of step 5 */
  char path[256];
  snprintf(path, sizeof path, "%s", temp_path("block"));
  job.blocks[0].save = path;
  CHECK(run("--quiet").status == 99);
  fresh();
  expect("--quiet --resume %s/block --save %s/block", 0, "of 10", NULL);
  expect_same("whole", "block", "from a block's own checkpoint");
  unlink(temp_path("block"));
}

static void check_interrupt(void)
{
  for (int body = 0; body < 10; body++) {
    signal_at = body;
    char word[64];
    snprintf(word, sizeof word, "interrupted after step %d; continue with --resume", body + 1);
    expect("--save %s/part", AMPC_INTERRUPTED, NULL, word);
    signal_at = -1;
    expect("--resume %s/part --save %s/part --quiet", 0, "of 10", NULL);
    expect_same("whole", "part", word);
  }
  signal_at = 3;
  static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    signal_sent = ends[i];
    expect("", AMPC_INTERRUPTED, NULL, "nothing was saved");
    insist_at = 4, signal_at = -1;
    expect("--save %s/part", AMPC_INTERRUPTED, NULL, "small: interrupted\n");
    insist_at = -1, signal_at = 3;
    signal(ends[i], SIG_IGN); /* like nohup */
    expect("", 0, "eval acc: ", NULL);
    signal(ends[i], SIG_DFL);
  }
  signal_sent = SIGINT;
  signal_at = -1;
}

/* Returns the number of rows of the table that start with `begin`. */
static int rows(const char *begin)
{
  size_t n;
  int found = 0;
  char *text = temp_read(temp_path("log/metrics.csv"), &n);
  text[n] = 0;
  for (char *at = text; (at = strstr(at, begin)); at++) found += at > text && at[-1] == '\n';
  free(text);
  return found;
}

static void remove_log(void)
{
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s/log %s/part*", temp_folder, temp_folder);
  MUST(system(command) == 0);
}

/* Checks a run that ends during an evaluation, after the checkpoint of that step. The resumed run
 * repeats the evaluation and keeps the best checkpoints. The log contains each evaluation once. */
static void check_lost_evaluation(void)
{
  static const char first[] = "--save %s/part --save-every 2 --keep-best 9 --log-dir %s/log";
  static const char rest[] = "--resume %s/part --save %s/part --keep-best 9 --log-dir %s/log";
  for (int stopped = 0; stopped < 2; stopped++) {
    if (stopped) {
      stop_in = 2;
    } else {
      kill_in = 2;
    }
    expect(first, stopped ? (int)AMPC_INTERRUPTED : 1000 + SIGKILL, NULL, NULL);
    CHECK(rows("4,,eval,") == 0);
    fresh();
    expect(rest, 0, NULL, "step 4 eval acc");
    for (int step = 2; step <= 10; step += 2) {
      char begin[32], name[64];
      snprintf(begin, sizeof begin, "%d,,eval,", step);
      CHECK_MSG(rows(begin) == 1, "step %d has %d rows", step, rows(begin));
      snprintf(name, sizeof name, "part.best-acc=0.5.step%d", step);
      CHECK_MSG(exists(name), "no %s", name);
    }
    expect_same("whole", "part", "a lost evaluation");
    remove_log();
  }
  fail_after = 4; /* killed after the evaluation of step 4, which is repeated and logged once */
  expect(first, 99, NULL, NULL);
  CHECK(rows("4,,eval,") == 1);
  fresh();
  expect(rest, 0, NULL, "step 4 eval");
  CHECK(rows("4,,eval,") == 1 && rows("6,,eval,") == 1);
  remove_log();
}

/* Checks that files of an earlier, longer run are removed, whatever their steps, and no others. */
static void check_keep_last(void)
{
  expect("--quiet --save %s/part --save-every 2 --keep-last 2", 0, NULL, NULL);
  CHECK(exists("part.step8") && exists("part.step10") && !exists("part.step6"));
  MUST(mkdir(temp_path("part.step99"), 0700) == 0);
  temp_write(temp_path("part.step3x"), "mine", 4);
  expect("--quiet --save %s/part --save-every 1 --steps 5 --keep-last 2", 0, NULL, NULL);
  CHECK(exists("part.step4") && exists("part.step5") && !exists("part.step8"));
  CHECK(!exists("part.step10") && !exists("part.step3"));
  expect_same("part", "part.step5", "the last one");
  CHECK(exists("part.step99") && exists("part.step3x"));
  CHECK(temp_count() == 6); /* these four, `part` and `whole` */
  /* through a link: the kept names are hard links to its target */
  remove_log();
  MUST(symlink("real", temp_path("part")) == 0);
  expect("--quiet --save %s/part --save-every 2 --steps 4 --keep-last 2", 0, NULL, NULL);
  expect("--quiet --save %s/again --steps 2", 0, NULL, NULL);
  expect_same("part.step4", "real", "the file of a link");
  expect_same("part.step2", "again", "a kept name of a link");
  remove_log();
  unlink(temp_path("real"));
  unlink(temp_path("again"));
}

/* Checks a checkpoint of the initial values, from which a whole run resumes. */
static void check_no_steps(void)
{
  expect("--steps 0 --save %s/part", 0, "skipped steps: 0 of 0", "step 0 eval acc");
  expect("--quiet --resume %s/part --save %s/part", 0, "of 10", NULL);
  expect_same("whole", "part", "from the start values");
  expect("--steps 0", 0, "eval acc", NULL);
  unlink(temp_path("part"));
}

static void check_lost_loss(void)
{
  unlink(temp_path("part"));
  lose_at = 5; /* with a scaler the run continues and may be saved */
  expect("--save %s/part --save-every 2 --quiet", 0, "of 10", NULL);
  expect_same("whole", "part", "with a lost loss that a scaler stepped over");
  unlink(temp_path("part"));
  job.program.scaler.on = false;
  lose_at = -1;
  expect("--save %s/plain --quiet", 0, "eval acc", NULL);
  lose_at = 5;
  expect("--save %s/part", AMPC_RUN_FAILED, NULL, "the loss or a gradient of step 6 is not finite");
  CHECK(!exists("part"));
  expect("--save %s/part --save-every 2", AMPC_RUN_FAILED, NULL, "/part");
  lose_at = -1;
  expect("--resume %s/part --save %s/part --quiet", 0, "eval acc", NULL); /* from step 4 */
  expect_same("plain", "part", "after a lost loss");
  unlink(temp_path("plain"));
}

static void check_bad_input(void)
{
  fail_after = 0; /* each error must be found before the first step */
  expect("--save %s/no/such", AMPC_BAD_FILE, NULL, "no/such");
  expect("--save %s", AMPC_BAD_FILE, NULL, "directory");
  expect("--save-every 2", AMPC_BAD_USAGE, NULL, "--save");
  expect("--resume %s/none", AMPC_BAD_FILE, NULL, "none");
  expect("--device cuda", AMPC_RUN_FAILED, NULL, "compiled for cpu");
  expect("--device tpu", AMPC_BAD_USAGE, NULL, "tpu");
  expect("--steps -3", AMPC_BAD_USAGE, NULL, "--steps -3");
  expect("--steps 3x", AMPC_BAD_USAGE, NULL, "3x");
  expect("--steps", AMPC_BAD_USAGE, NULL, "--steps needs a value");
  expect("--spteps 3", AMPC_BAD_USAGE, NULL, "--spteps");
  expect("job.amp", AMPC_BAD_USAGE, NULL, "job.amp");
  expect("--set opt.lr", AMPC_BAD_USAGE, NULL, "opt.lr");
  expect("--set opt.lr=x", AMPC_BAD_USAGE, NULL, "opt.lr=x");
  expect("--set opt.lr=nan", AMPC_BAD_USAGE, NULL, "opt.lr=nan");
  expect("--set opt.lr=1e39", AMPC_BAD_USAGE, NULL, "0 or more");
  expect("--set opt.lr=-1", AMPC_BAD_USAGE, NULL, "0 or more");
  expect("--set opt.lr=0.5x", AMPC_BAD_USAGE, NULL, "opt.lr=0.5x");
  expect("--set opt.lr=0x1p-3", AMPC_BAD_USAGE, NULL, "opt.lr=0x1p-3");
  expect("--set opt.lrr=1", AMPC_BAD_USAGE, NULL, "opt.lrr");
  expect("--eval", AMPC_BAD_USAGE, NULL, "--resume");
  expect("--help", 0, "--save-every", NULL);
  job.sources[1].samples = 8;
  expect("", AMPC_BAD_FILE, NULL, "10 samples");
  fresh();
  fail_after = 0;
  job.sources[1].limit = 5;
  expect("", AMPC_BAD_FILE, NULL, "classes of cross_entropy, small.amp:3");
  fresh();
  fail_after = 0;
  job.program.n_blocks = 0;
  expect("", AMPC_BAD_USAGE, NULL, "no train block");
  fresh();
}

static void check_eval_only(void)
{
  Result trained = run("--quiet");
  fail_after = 0;
  Result r = run("--eval --resume %s/whole");
  CHECK(r.status == 0 && !strstr(r.out, "skipped"));
  CHECK(strncmp(trained.out, r.out, strlen(r.out)) == 0);
  fail_after = -1;
  expect("--set opt.lr=0.5 --log 1", 0, NULL, " lr 0.5 ");
}

/* Checks two train blocks: the position names the block in which the run stopped. */
static void check_two_blocks(void)
{
  job.blocks[2] = job.blocks[0];
  job.blocks[2].epochs = 2;
  expect("--save %s/whole --quiet", 0, "of 14", NULL);
  char line[100];
  for (int steps = 8; steps <= 14; steps++) {
    snprintf(line, sizeof line, "--quiet --steps %d --save %%s/part", steps);
    expect(line, 0, NULL, NULL);
    expect("--quiet --resume %s/part --save %s/part", 0, "of 14", NULL);
    expect_same("whole", "part", line);
  }
}

int main(void)
{
  temp_open();
  fresh();
  check_whole();
  check_resume();
  check_every();
  fresh();
  check_interrupt();
  for (const char *const *name = (const char *const[]){"again", "other", "part", NULL}; *name;
       name++)
    unlink(temp_path(*name));
  check_lost_evaluation();
  check_keep_last();
  check_no_steps();
  check_lost_loss();
  check_bad_input();
  check_eval_only();
  fresh();
  check_two_blocks();
  temp_close();
  return check_done();
}
