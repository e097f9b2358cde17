/* Prints what a library offers of a decoder (--decode BLOCK): functions for texts that grow,
 * instead of one for each block of the program. library.c prints the rest. */
#include "compiler/base/user_text.h"
#include "library.h"
#include <ctype.h>

bool library_has_text(const ampc_program *g)
{
  return g->n_blocks && g->blocks[0].context;
}

/* The texts of `head` are the prefix of the function and the C type of logits. A comment of NULL
 * depends on the job. */
static const struct {
  const char *head, *body, *comment;
} functions[] = {
    {"int %s_begin(struct ampc_runtime *rt, struct ampc_sequence **out)",
     "return (int)ampc_sequence_begin(rt, out);",
     "Begins an empty text. *out is NULL after a failure; end what it gets. */"},
    {"int %s_next(struct ampc_sequence *s, const int64_t *token, int64_t n, %s *logits)",
     "return (int)ampc_sequence_next(s, token, n, logits);", NULL},
    {"int %s_together(struct ampc_sequence *const *s, uint32_t n, const int64_t *token, %s *const "
     "*logits)",
     "return (int)ampc_sequences_next(s, n, token, (void *const *)logits);",
     "Appends one token to each of n different texts of one runtime, in one step, and computes the "
     "logits after it,\n * logits[i] of text i. If it fails, no text has changed, except after "
     "status 5. */"},
    {"int %s_rewind(struct ampc_sequence *s, int64_t n)", "return (int)ampc_sequence_rewind(s, n);",
     NULL},
    {"void %s_end(struct ampc_sequence *s)", "ampc_sequence_end(s);",
     "Frees the text. NULL is fine. */"},
    {"int64_t %s_cache_bytes(void)", "return program.space_bytes[AMPC_CACHE];",
     "Bytes of the device's memory that each text holds; open reserves those of the first one. "
     "*/"},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const ampc_output_desc *logits_of(const ampc_program *g)
{
  return &g->outputs[0]; /* of block 0; the other block has none */
}

static const char *text_head(Printer *p, int i)
{
  const ampc_program *g = p->c->program;
  return arena_printf(p->c->arena, functions[i].head, library_function(p, &g->blocks[0]),
                      ampc_type_of(logits_of(g)->dtype)->c);
}

void put_text_declarations(Printer *p)
{
  for (int i = 0; i < FUNCTIONS && library_has_text(p->c->program); i++)
    EMIT_WRAPPED(p, "    ", "%s;\n", text_head(p, i));
}

void put_text_functions(Printer *p)
{
  for (int i = 0; i < FUNCTIONS && library_has_text(p->c->program); i++) {
    EMIT_WRAPPED(p, "    ", "%s\n", text_head(p, i));
    EMIT(p, "{\n  %s\n}\n", functions[i].body);
  }
}

/* ---- the header ---- */

static void put_next(Printer *p, const char *prefix)
{
  const ampc_program *g = p->c->program;
  const ampc_source *s = &g->sources[g->blocks[0].first_source];
  EMIT(p, "/* Appends n tokens, 1 or more, and computes the logits after the last one.\n");
  EMIT(p, " *   token   i64[n], from 0 to %lld\n",
       (long long)(s->limit ? s->limit : logits_of(g)->dim[logits_of(g)->rank - 1]) - 1);
  EMIT(p, " *   logits  %s[%s_VOCABULARY]\n", ampc_dtype_name(logits_of(g)->dtype), prefix);
  EMIT(p,
       " * Both arrays are the caller's. Status 2: a token is out of range, or the text would have "
       "more than\n * %s_CONTEXT tokens; nothing has changed then. After status 5, rewind to 0. "
       "*/\n",
       prefix);
}

void put_text_header(Printer *p)
{
  const ampc_program *g = p->c->program;
  if (!library_has_text(g)) return;
  const ampc_block *b = &g->blocks[0];
  const ampc_output_desc *o = logits_of(g);
  char *prefix = arena_printf(p->c->arena, "%s", library_function(p, b));
  for (char *c = prefix; *c; c++) *c = (char)toupper((unsigned char)*c);
  EMIT(p,
       "\n/* infer %s, %s:%u, token by token. Texts share the weights of rt, and its thread; each "
       "has a cache of its\n * own. End them before you close rt. */\n",
       comment_of(p, b->call), comment_of(p, g->source), b->line);
  EMIT(p, "struct ampc_sequence; /* a text */\n");
  EMIT(p, "enum {\n  %s_VOCABULARY = %lld, /* logits after a token */\n", prefix,
       (long long)o->dim[o->rank - 1]);
  EMIT(p, "  %s_CONTEXT = %lld /* most tokens of a text */\n};\n", prefix, (long long)b->context);
  for (int i = 0; i < FUNCTIONS; i++) {
    if (functions[i].comment)
      EMIT(p, "/* %s\n", functions[i].comment);
    else if (i == 1)
      put_next(p, prefix);
    else
      EMIT(p, "/* Forgets all tokens but the first n.%s */\n",
           b->carries ? " This net carries values from token to token, so n is 0." : "");
    EMIT_WRAPPED(p, "    ", "%s;\n", text_head(p, i));
  }
}
