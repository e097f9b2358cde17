/* Reads templates/<file>.cu as lines. A file may have sections: the lines after `// --- name`
 * replace a line `$lines name`, at its column. The name is searched in the op's own file, then in
 * update.cu, which is the file of all ops that walk a group's ranges. */
#include "template.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char marker[] = "// --- ", use[] = "$lines ";
const char template_shared[] = "update.cu";
enum { COLUMN = 2 }; /* the column of a section's lines in their file */

bool mark_next(const char **s, Mark *out)
{
  if (**s != '@') return false;
  out->wanted = (*s)[1] != '!';
  out->word = *s + (out->wanted ? 1 : 2);
  out->n = name_size(out->word);
  *s = out->word + out->n;
  return true;
}

const char *line_text(const TemplateLine *line)
{
  const char *s = line->text;
  for (Mark m; mark_next(&s, &m);) {}
  return s;
}

bool line_uses(const TemplateLine *line, const char *name)
{
  size_t n = strlen(name), input = n > 3 && strcmp(name + n - 3, "_at") == 0 ? n - 3 : 0;
  for (const char *s = line->text; s < line->end; s++) {
    size_t hole = *s == '$', size = name_size(s + hole);
    if (size == (hole && input ? input : n) && memcmp(s + hole, name, size) == 0) return true;
    s += hole + size - (size > 0);
  }
  return false;
}

void template_broken(const TemplateLine *line, const char *word, size_t n, const char *what)
{
  fprintf(stderr, "ampc: templates/%s:%u: `%.*s` is no %s\n", line->file, line->number, (int)n,
          word, what);
  abort();
}

const char *template_begin(const EmbeddedFile *file)
{
  return strstr(file->text, "*/\n") + 3;
}

/* Returns the text after the section's marker; NULL: the file has no section of that name. */
static const char *find_piece(const EmbeddedFile *file, const char *name, size_t n)
{
  const char *s = file->text;
  while ((s = strstr(s, marker))) {
    s += sizeof marker - 1;
    if (strncmp(s, name, n) == 0 && s[n] == '\n') return s + n + 1;
  }
  return NULL;
}

/* Adds the lines of a section. `line` has the fields that all of them share. */
static void add_piece(TemplateLines *out, const EmbeddedFile *file, const char *s,
                      TemplateLine line)
{
  line.file = file->name;
  line.number = 1;
  for (const char *t = file->text; t < s; t++) line.number += *t == '\n';
  for (; *s && strncmp(s, marker, sizeof marker - 1) != 0; line.number++) {
    TemplateLine *new = arena_new(out->arena, TemplateLine);
    line.text = s;
    line.end = s + strcspn(s, "\n");
    *new = line;
    s = line.end + (*line.end == '\n');
    const char *text = line_text(new), *word = text + strspn(text, " ");
    if (strncmp(word, use, sizeof use - 1) != 0) {
      vec_push(out->arena, out, new);
      continue;
    }
    const char *name = word + sizeof use - 1;
    size_t n = (size_t)(line.end - name);
    const EmbeddedFile *from = out->own;
    const char *begin = find_piece(from, name, n);
    if (!begin) begin = find_piece(from = embedded_find(template_shared), name, n);
    if (!begin) template_broken(new, name, n, "section of it or of update.cu");
    add_piece(out, from, begin,
              (TemplateLine){.in = new, .indent = line.indent + (int)(word - text) - COLUMN});
  }
}

void template_read(TemplateLines *out, const EmbeddedFile *own)
{
  out->own = own;
  add_piece(out, own, template_begin(own), (TemplateLine){0});
}

static const EmbeddedFile *file_named(const OpInfo *op, const char *suffix)
{
  char name[64];
  snprintf(name, sizeof name, "%s%s.cu", op->name, suffix);
  return embedded_find(name);
}

const EmbeddedFile *template_file(const OpInfo *op)
{
  return op_takes(op, FILE_ranges) ? embedded_find(template_shared) : file_named(op, "");
}

const EmbeddedFile *template_tensor_file(const OpInfo *op)
{
  return file_named(op, "_tensor");
}

const EmbeddedFile *template_step_file(const OpInfo *op)
{
  return file_named(op, "_step");
}
