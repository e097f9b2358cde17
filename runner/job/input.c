#include "input.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/signals.h"
#include "common/terminal.h"
#include <errno.h>
#include <histedit.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY = 2000 /* inputs */, HISTORY_ENTRY = 1 << 16 /* largest one that is kept, bytes */ };

struct Input {
  InputStyle style;
  EditLine *editor; /* NULL: stdin is not a terminal */
  History *history;
  char history_path[PATH_MAX]; /* empty: the history is not saved */
  char *line;                  /* buffer of getline */
  size_t line_size;
  char *text; /* the input so far */
  size_t size, cap;
};

/* ---- Ctrl-C ---- */

bool input_interrupted(void)
{
  return interrupt_requested();
}

void input_calm(void)
{
  interrupt_calm();
}

/* ---- history ---- */

/* Makes the folders of a file's path, as mkdir -p. */
static void make_folders(char *path)
{
  for (char *p = path + 1; (p = strchr(p, '/')); p++) {
    *p = 0;
    mkdir(path, 0700); /* if it fails, writing the file fails, too */
    *p = '/';
  }
}

/* Finds the file of the history, in $XDG_STATE_HOME/ampc or ~/.local/state/ampc. */
static bool find_history(const char *name, char out[PATH_MAX])
{
  const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (base && base[0] == '/') return snprintf(out, PATH_MAX, "%s/ampc/%s", base, name) < PATH_MAX;
  const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(geteuid());
  if (user) home = user->pw_dir;
  if (!home || home[0] != '/') return false;
  return snprintf(out, PATH_MAX, "%s/.local/state/ampc/%s", home, name) < PATH_MAX;
}

static void open_history(Input *in)
{
  HistEvent event;
  in->history = history_init();
  if (!in->history) return;
  history(in->history, &event, H_SETSIZE, HISTORY);
  history(in->history, &event, H_SETUNIQUE, 1);
  el_set(in->editor, EL_HIST, history, in->history);
  if (!find_history(in->style.history, in->history_path)) {
    in->history_path[0] = 0;
    return;
  }
  make_folders(in->history_path);
  history(in->history, &event, H_LOAD, in->history_path);
}

/* Adds an input, of any number of lines, as one entry. Failures to save the history are ignored. */
static void keep_input(Input *in)
{
  HistEvent event;
  if (!in->history || !in->size || in->size > HISTORY_ENTRY) return;
  if (in->text[strspn(in->text, " \t\n")] == 0) return;
  history(in->history, &event, H_ENTER, in->text);
  if (!in->history_path[0]) return;
  mode_t mask = umask(077); /* only the user may read it */
  history(in->history, &event, H_SAVE, in->history_path);
  umask(mask);
}

/* ---- the editor ---- */

/* Returns the prompt of a line, for libedit. Continuation lines have another prompt. */
static char *prompt(EditLine *editor)
{
  Input *in;
  el_get(editor, EL_CLIENTDATA, &in);
  return in->size ? in->style.more : in->style.prompt;
}

/* Waits for input or an interrupt; false after an interrupt. Signals are blocked except during
 * ppoll, so an interrupt just before the wait is not missed. */
static bool wait_for_input(void)
{
  sigset_t before;
  struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
  signals_hold(&before);
  int n = -1; /* ppoll fails when the window changes */
  while (n < 0 && !interrupt_requested()) n = ppoll(&in, 1, NULL, &before);
  signals_release(&before);
  return !interrupt_requested();
}

/* Reads a character. The editor's own reader would ignore an interrupt. */
static int read_character(EditLine *editor, wchar_t *out)
{
  char bytes[MB_LEN_MAX];
  (void)editor;
  for (size_t n = 0; n < sizeof bytes;) {
    mbstate_t state = {0};
    if (!wait_for_input()) return -1;
    ssize_t got = read(STDIN_FILENO, bytes + n, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return (int)got;
    size_t used = mbrtowc(out, bytes, ++n, &state);
    if (used == (size_t)-2) continue;
    if (used != (size_t)-1) return 1;
    n = 0; /* not a character: skipped */
  }
  return 0;
}

/* Returns the length in bytes of the words' common prefix. */
static size_t common_size(const NameVec *words)
{
  size_t n = strlen(words->at[0]);
  for (uint32_t i = 1; i < words->n; i++)
    for (size_t k = 0; k < n; k++)
      if (words->at[i][k] != words->at[0][k]) n = k;
  return n;
}

/* Prints words in columns that fit the terminal, at most 200. */
static void list_words(const NameVec *words)
{
  enum { MOST = 200 };
  size_t width = 18;
  uint32_t n = words->n < MOST ? words->n : MOST;
  for (uint32_t i = 0; i < n; i++)
    if (strlen(words->at[i]) > width) width = strlen(words->at[i]);
  uint32_t fit = (uint32_t)terminal_columns(STDOUT_FILENO) / (uint32_t)(width + 2);
  if (fit < 1) fit = 1;
  putchar('\n');
  for (uint32_t i = 0; i < n; i++) {
    bool last = i + 1 == n || (i + 1) % fit == 0;
    printf("%-*s%s", last ? 0 : (int)width + 2, words->at[i], last ? "\n" : "");
  }
  if (n < words->n) printf("and %u more\n", words->n - n);
  fflush(stdout);
}

/* Handles Tab: inserts the common prefix of all candidates, or lists them if that adds nothing. A
 * single candidate is followed by a space, unless it is a folder or contains a bracket. */
static unsigned char complete_key(EditLine *editor, int key)
{
  (void)key;
  Input *in;
  el_get(editor, EL_CLIENTDATA, &in);
  const LineInfo *line = el_line(editor);
  Arena *arena = arena_create();
  NameVec words = {0};
  size_t size = (size_t)(line->cursor - line->buffer), start;
  in->style.complete(in->style.context, arena, line->buffer, size, &start, &words);
  unsigned char result = CC_ERROR;
  if (words.n) {
    size_t typed = size - start, n = common_size(&words);
    if (n > typed) {
      char *rest = arena_strndup(arena, words.at[0] + typed, n - typed);
      char last = words.at[0][strlen(words.at[0]) - 1];
      bool whole = words.n == 1 && last != '/' && strchr(words.at[0], '(') == NULL;
      if (whole) rest = arena_printf(arena, "%s ", rest);
      if (el_insertstr(editor, rest) == 0) result = CC_REFRESH;
    } else if (words.n > 1) {
      list_words(&words);
      result = CC_REDISPLAY;
    }
  }
  arena_destroy(arena);
  return result;
}

/* Opens the editor. The user's own ~/.editrc is read last, so it may bind other keys. */
static void open_editor(Input *in)
{
  in->editor = el_init("amp", stdin, stdout, stderr);
  if (!in->editor) return;
  el_set(in->editor, EL_CLIENTDATA, in);
  el_set(in->editor, EL_PROMPT, prompt);
  el_set(in->editor, EL_EDITOR, "emacs");
  /* else Ctrl-C would make the kernel drop unread input and output, also while a command runs */
  el_set(in->editor, EL_SETTY, "-d", "+noflsh", NULL);
  el_set(in->editor, EL_SETTY, "-x", "+noflsh", NULL);
  el_set(in->editor, EL_GETCFN, read_character);
  if (in->style.complete) {
    el_set(in->editor, EL_ADDFN, "amp-complete", "complete a name", complete_key);
    el_set(in->editor, EL_BIND, "^I", "amp-complete", NULL);
  }
  el_set(in->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
  open_history(in);
  el_source(in->editor, NULL);
}

Input *input_open(const InputStyle *style, bool terminal)
{
  Input *in = calloc(1, sizeof *in);
  if (!in) arena_out_of_memory();
  in->style = *style;
  if (terminal) open_editor(in);
  return in;
}

void input_close(Input *in)
{
  if (in->editor) el_end(in->editor);
  if (in->history) history_end(in->history);
  free(in->line);
  free(in->text);
  free(in);
}

/* ---- lines ---- */

/* Reads a line. NULL at the end, or after Ctrl-C. */
static const char *read_line(Input *in, size_t *out_size)
{
  if (in->editor) {
    int n = 0;
    /* now, before the prompt appears, because the user may then type Ctrl-D or Ctrl-C */
    el_set(in->editor, EL_PREP_TERM, 1);
    const char *line = el_gets(in->editor, &n);
    *out_size = n > 0 ? (size_t)n : 0;
    return line && n > 0 ? line : NULL;
  }
  ssize_t n;
  do n = getline(&in->line, &in->line_size, stdin);
  while (n < 0 && errno == EINTR && !feof(stdin) && !input_interrupted() &&
         (clearerr(stdin), true));
  *out_size = n > 0 ? (size_t)n : 0;
  return n > 0 ? in->line : NULL;
}

/* Appends a line; the text stays NUL-terminated. */
static void add_line(Input *in, const char *line, size_t n)
{
  if (in->size + n + 1 > in->cap) {
    in->cap = 2 * (in->size + n + 1);
    in->text = realloc(in->text, in->cap);
    if (!in->text) arena_out_of_memory();
  }
  memcpy(in->text + in->size, line, n);
  in->size += n;
  in->text[in->size] = 0;
}

/* Returns the next input, which may be unfinished at the end of stdin. */
const char *input_next(Input *in, size_t *out_size)
{
  in->size = 0;
  for (;;) {
    size_t n;
    input_calm();
    const char *line = read_line(in, &n);
    if (!line && input_interrupted()) { /* drop the typed text */
      if (!in->editor || interrupt_ending()) return NULL;
      el_reset(in->editor);
      tcflush(STDIN_FILENO, TCIFLUSH); /* and unread keys */
      keep_input(in);                  /* earlier lines of the input can be recalled */
      in->size = 0;
      puts("^C");
      continue;
    }
    if (!line && !in->size) return NULL;
    if (line) add_line(in, line, n);
    if (line && in->style.open && in->style.open(in->text, in->size)) continue;
    keep_input(in);
    *out_size = in->size;
    return in->text;
  }
}
