/* Writes the man pages and completions of amp and ampc when ampc is built: amp_pages FOLDER
 * EDITORS. The subfolders exist. The text comes from the tables of options, as that of --help does.
 * FOLDER also gets the files of EDITORS (editors.c). */
#include "pages.h"
#include "compiler/cli/command_line.h"
#include "runner/runner.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- for all formats ---- */

void put_escaped(Text *out, const char *text, const char *special)
{
  for (; *text; text++) {
    if (strchr(special, *text)) text_puts(out, "\\");
    text_add(out, text, 1);
  }
}

const char *const *value_words(const OptionRow *row)
{
  static const char *const devices[] = {"cpu", "cuda", "auto", NULL};
  return row->value && strcmp(row->value, "DEVICE") == 0 ? devices : row->words;
}

ValueKind value_kind(const OptionRow *row)
{
  if (!row->value) return VALUE_none;
  if (value_words(row)) return VALUE_words;
  if (strcmp(row->value, "DIR") == 0) return VALUE_folder;
  return strcmp(row->value, "FILE") == 0 || strcmp(row->value, "PATH") == 0 ? VALUE_file
                                                                            : VALUE_other;
}

void each_spelling(const OptionRow *row, Text *out,
                   void (*put)(Text *out, const OptionRow *row, const char *word))
{
  char word[64];
  for (const char *s = row->shown; s; s = strchr(s, ' ') ? strchr(s, ' ') + 1 : NULL) {
    snprintf(word, sizeof word, "%.*s", (int)strcspn(s, " "), s);
    if (!strstr(word, "NAME")) put(out, row, word);
  }
  if (row->shown) return;
  snprintf(word, sizeof word, "--%s", row->name ? row->name : "");
  if (row->name) put(out, row, word);
  snprintf(word, sizeof word, "-%c", row->letter);
  if (row->letter) put(out, row, word);
}

void pages_save(const Text *text, const char *folder, const char *name)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  if (f && fwrite(text->at, 1, text->n, f) == text->n && fclose(f) == 0) return;
  perror(path);
  exit(EXIT_FAILURE);
}

/* ---- man pages ---- */

/* Adds words as troff reads them. */
static void put_roff(Text *out, const char *text)
{
  for (; *text; text++) {
    if (*text == '-')
      text_puts(out, "\\-");
    else if (*text == '\\')
      text_puts(out, "\\e");
    else
      text_add(out, text, 1);
  }
}

static void put_paragraph(Text *out, const char *section, const char *text)
{
  if (section) text_printf(out, ".SH %s\n", section);
  text_puts(out, "\\&"); /* a line that begins with a dot would be a request */
  put_roff(out, text);
  text_puts(out, "\n");
}

/* Begins the page of "amp train": amp-train(1). Returns its name. */
static const char *begin_page(Text *out, const char *program, const char *about)
{
  char *name = arena_strdup(out->arena, program), *title = arena_strdup(out->arena, program);
  for (char *s = title; *s; s++) *s = (char)toupper((unsigned char)*s);
  for (int i = 0; name[i]; i++)
    if (name[i] == ' ') name[i] = title[i] = '-';
  text_printf(out, ".TH %s 1 \"\" \"ampc " AMPC_VERSION "\" \"ampc\"\n.nh\n.ad l\n", title);
  put_paragraph(out, "NAME", arena_printf(out->arena, "%s - %s", name, about));
  return name;
}

static void put_usage(Text *out, const char *program, const char *usage)
{
  text_printf(out, ".SH SYNOPSIS\n.nf\n\\fB%s\\fR ", program);
  for (; *usage; usage += strspn(usage, "\n ")) {
    size_t n = strcspn(usage, "\n");
    put_roff(out, arena_strndup(out->arena, usage, n));
    text_puts(out, "\n");
    usage += n;
  }
  text_puts(out, ".fi\n");
}

static void put_option(Text *out, const OptionRow *row)
{
  text_puts(out, ".TP\n\\fB");
  if (row->shown) {
    put_roff(out, row->shown);
  } else {
    if (row->letter) text_printf(out, "\\-%c%s", row->letter, row->name ? ", " : "");
    if (row->name) put_roff(out, arena_printf(out->arena, "--%s", row->name));
    if (row->value) text_puts(out, row->bare ? "\\fR[=\\fI" : "\\fR \\fI");
    if (row->value) put_roff(out, row->value);
    if (row->bare) text_puts(out, "\\fR]");
  }
  text_puts(out, "\\fR\n");
  put_paragraph(out, NULL, row->help);
}

/* Notes begin with "exit status: ". */
static void put_notes(Text *out, const char *notes)
{
  static const char status[] = "exit status: ";
  bool known = strncmp(notes, status, sizeof status - 1) == 0;
  put_paragraph(out, known ? "EXIT STATUS" : "NOTES", notes + (known ? sizeof status - 1 : 0));
}

static void save_page(const Text *out, const char *folder, const char *name)
{
  pages_save(out, folder, arena_printf(out->arena, "man/man1/%s.1", name));
}

static void table_page(Arena *arena, const char *folder, const OptionTable *t, const char *about)
{
  Text out = text_new(arena);
  const char *name = begin_page(&out, t->program, about);
  put_usage(&out, t->program, t->usage);
  if (t->about) put_paragraph(&out, "DESCRIPTION", t->about);
  text_puts(&out, ".SH OPTIONS\n");
  EACH_ROW(row, t) put_option(&out, row);
  put_option(&out, &(OptionRow){.name = "help", .help = "print the options and exit"});
  if (t->notes) put_notes(&out, t->notes);
  text_printf(&out, ".SH SEE ALSO\n.BR amp (1),\n.BR ampc (1)\n");
  save_page(&out, folder, name);
}

static void amp_page(Arena *arena, const char *folder)
{
  Text out = text_new(arena);
  const char *name = begin_page(&out, "amp", "train and run models of mixed precision");
  put_usage(&out, "amp", "VERB [options] job.amp");
  put_paragraph(&out, "VERBS", "Each verb has a page: man amp-train.");
  for (const Verb *v = verbs; v->name; v++) {
    text_printf(&out, ".TP\n\\fB%s\\fR\n", v->name);
    put_paragraph(&out, NULL, v->help);
  }
  put_notes(&out, amp_notes);
  text_puts(&out, ".SH SEE ALSO\n.BR ampc (1)");
  for (const Verb *v = verbs; v->name; v++) text_printf(&out, ",\n.BR amp\\-%s (1)", v->name);
  text_puts(&out, "\n");
  save_page(&out, folder, name);
}

/* ---- all files ---- */

static void save_completions(Arena *arena, const char *folder, const Shell *s)
{
  Text amp = text_new(arena), ampc = text_new(arena);
  s->begin(&amp, "amp");
  for (const Verb *v = verbs; v->name; v++) s->put(&amp, v->name, v->help, v->table);
  s->end(&amp, "amp");
  s->begin(&ampc, "ampc");
  s->put(&ampc, NULL, NULL, &ampc_table);
  s->end(&ampc, "ampc");
  const char *form = arena_printf(arena, "%s/%s", s->folder, s->file), *at = strchr(form, '@');
  int before = (int)(at - form);
  pages_save(&amp, folder, arena_printf(arena, "%.*samp%s", before, form, at + 1));
  pages_save(&ampc, folder, arena_printf(arena, "%.*sampc%s", before, form, at + 1));
}

int main(int argc, char **argv)
{
  if (argc != 3) return EXIT_FAILURE;
  Arena *arena = arena_create();
  table_page(arena, argv[1], &ampc_table, "compile a job of mixed precision to CUDA C or C");
  amp_page(arena, argv[1]);
  for (const Verb *v = verbs; v->name; v++) table_page(arena, argv[1], v->table, v->help);
  for (int i = 0; i < SHELLS; i++) save_completions(arena, argv[1], &shells[i]);
  save_editors(arena, argv[2], argv[1]);
  arena_destroy(arena);
  return EXIT_SUCCESS;
}
