/* What is known about one job and its imports. It is computed in a process of its own (worker.h).
 */
#pragma once
#include "compiler/lower/interpret/describe.h"
#include "compiler/syntax/source.h"
#include "compiler/syntax/parse.h"
#include "text.h"

typedef struct Analysis {
  Options options; /* with the texts of all open files; options.input is the path of the job */
  const char *const *uris; /* of the open files, as the client writes them */
  bool utf8;               /* Note [positions] */
  Arena *arena;
  Compile *found;      /* up to pass gradient, with its messages */
  Compile *c;          /* up to pass precision, with meanings; NULL until it is needed */
  Builtins builtins;   /* empty until they are needed */
  const Source *split; /* the source of the last query, and its tokens */
  Tokens tokens;
} Analysis;

/* A place in a file, and what the client asks there. */
typedef struct Query {
  Analysis *a;
  const json_t *params;
  const Source *source;
  const Ast *ast;  /* of that source */
  Tokens tokens;   /* of that source: raw tokens, the last one is its end */
  uint32_t offset; /* among all sources */
} Query;

/* Starts an analysis. The options, the texts and the URIs must outlive it. */
void analysis_open(Analysis *a, const Options *options, const char *const *uris, bool utf8);
void analysis_close(Analysis *a);
/* Compiles the job. Returns {"files": [path], "found": {uri: [diagnostic]}}. */
json_t *analysis_diagnostics(Analysis *a);
/* Answers {"method", "params", "uri"}. Returns null for an unknown file. */
json_t *analysis_answer(Analysis *a, const json_t *request);

/* ---- for the methods ---- */

/* Returns the source of a compile that was read from the file; NULL: there is none. */
const Source *analysis_source(const Analysis *a, const Compile *c, const char *uri);
const char *analysis_uri(const Analysis *a, const char *path);
/* Returns {"uri", "range"}; null for text that is in no file. */
json_t *analysis_location(const Analysis *a, const Compile *c, Span span);
const Builtins *analysis_builtins(Analysis *a);
const Builtin *analysis_builtin(Analysis *a, const char *name); /* NULL: there is none */
/* Returns text as JSON. Bytes that are not UTF-8 are escaped. */
json_t *analysis_text(const Analysis *a, const char *text);
/* Returns the offset of a position, among all sources; that of (0, 0) for NULL. */
uint32_t query_offset(const Query *q, const json_t *position);

/* Sets the source of a query, with its tree and tokens. False: it is no file with a tree. */
bool query_look(Query *q, const Source *s);

/* Each method is in a file of its name. */
json_t *answer_hover(Query *q);
json_t *answer_definition(Query *q);
json_t *answer_completion(Query *q);
json_t *answer_hints(Query *q);
json_t *answer_symbols(Query *q);
json_t *answer_formatting(Query *q);
json_t *answer_actions(Query *q);
json_t *answer_signature(Query *q);
json_t *answer_declared(Query *q);
json_t *answer_references(Query *q);
json_t *answer_highlight(Query *q);
json_t *answer_prepare(Query *q);
json_t *answer_rename(Query *q);
json_t *diagnostics_of(const Analysis *a, Compile *c);
