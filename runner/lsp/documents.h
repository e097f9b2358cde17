/* The files that the client has open, and what the newest compile of each found. */
#pragma once
#include "worker.h"

typedef struct Document {
  json_t *uri, *text; /* strings */
  const char *path;
  Arena *arena; /* memory of the path */
  int64_t version;
  bool dirty;     /* its text, or a text that it imports, is newer than its compile */
  Worker *worker; /* answers requests; NULL: the compile failed or has not begun */
  json_t *files;  /* paths that the compile read */
  json_t *found;  /* {uri: [diagnostic]} */
} Document;

typedef struct Documents {
  Document *at;
  size_t n;
  Options options; /* of all compiles */
  bool utf8;       /* Note [positions] */
  Stream *client;  /* receives diagnostics */
} Documents;

Document *documents_find(Documents *d, const char *uri);
/* Opens a file, or replaces its text. Returns false if memory runs out. */
bool documents_set(Documents *d, json_t *uri, json_t *text, int64_t version);
void documents_close(Documents *d, const char *uri);
void documents_stale(Documents *d); /* files on disk may have changed: all compiles are old */
/* Compiles what is dirty, and publishes the diagnostics. Stops when the client sends an edit. */
void documents_update(Documents *d);
/* Asks the worker that knows most about the file. Returns null if none can answer; NULL if the
 * client sends an edit, so that no answer would fit its text. */
json_t *documents_ask(Documents *d, Document *doc, const char *method, json_t *params);
/* The same for the places of a name, which all open jobs may have: asks each about the place where
 * the name is declared, and unites the answers. A string of one of them is the answer. */
json_t *documents_ask_all(Documents *d, Document *doc, const char *method, json_t *params);
void documents_free(Documents *d);
