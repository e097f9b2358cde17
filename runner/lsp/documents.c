/* Keeps a worker for each open file. An edit makes all jobs dirty that read the edited file. Every
 * open file is compiled as a job of its own, and as an import of others. */
#include "documents.h"
#include <stdlib.h>
#include <string.h>

Document *documents_find(Documents *d, const char *uri)
{
  for (size_t i = 0; i < d->n; i++)
    if (strcmp(json_string_value(d->at[i].uri), uri) == 0) return &d->at[i];
  return NULL;
}

/* True if the newest compile of `job` has read the file at `path`. */
static bool reads(const Document *job, const char *path)
{
  size_t i;
  json_t *file;
  json_array_foreach(job->files, i, file)
  {
    if (strcmp(json_string_value(file), path) == 0) return true;
  }
  return false;
}

bool documents_set(Documents *d, json_t *uri, json_t *text, int64_t version)
{
  Document *doc = documents_find(d, json_string_value(uri));
  if (!doc) {
    Document *at = realloc(d->at, (d->n + 1) * sizeof *at);
    if (!at) return false;
    d->at = at;
    doc = &at[d->n++];
    *doc = (Document){.uri = json_incref(uri), .arena = arena_create()};
    doc->path = text_path(doc->arena, json_string_value(uri));
    documents_stale(d);
  }
  json_incref(text);
  json_decref(doc->text);
  doc->text = text;
  doc->version = version;
  doc->dirty = true;
  for (size_t i = 0; i < d->n; i++) d->at[i].dirty = d->at[i].dirty || reads(&d->at[i], doc->path);
  return true;
}

void documents_stale(Documents *d)
{
  for (size_t i = 0; i < d->n; i++) d->at[i].dirty = true;
}

/* ---- diagnostics ---- */

static void add_new(json_t *list, const json_t *more)
{
  size_t i, k;
  json_t *one, *other;
  json_array_foreach((json_t *)(uintptr_t)more, i, one)
  {
    bool known = false;
    json_array_foreach(list, k, other) known = known || json_equal(one, other);
    if (!known) json_array_append(list, one);
  }
}

/* Publishes what all compiles found in a file. */
static void publish(Documents *d, const char *uri)
{
  const Document *doc = documents_find(d, uri);
  json_t *list = json_array();
  for (size_t i = 0; i < d->n; i++) add_new(list, json_object_get(d->at[i].found, uri));
  json_t *params = json_pack("{s:s, s:o}", "uri", uri, "diagnostics", list);
  if (doc) json_object_set_new(params, "version", json_integer(doc->version));
  json_t *message = json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method",
                              "textDocument/publishDiagnostics", "params", params);
  message_write(d->client, message);
  json_decref(message);
}

/* Replaces what the compile of `doc` found, and publishes for all files that this concerns. */
static void set_found(Documents *d, Document *doc, json_t *found)
{
  const char *uri;
  json_t *list, *before = doc->found;
  doc->found = found;
  json_object_foreach(found, uri, list) publish(d, uri);
  json_object_foreach(before, uri, list)
  {
    if (!json_object_get(found, uri)) publish(d, uri);
  }
  json_decref(before);
}

/* Says at the start of a file that it could not be compiled. */
static json_t *not_compiled(const Document *doc, const char *why)
{
  return json_pack("{s:[{s:{s:{s:i, s:i}, s:{s:i, s:i}}, s:i, s:s, s:o}]}",
                   json_string_value(doc->uri), "range", "start", "line", 0, "character", 0, "end",
                   "line", 0, "character", 0, "severity", 1, "source", "ampc", "message",
                   json_sprintf("this file cannot be compiled: %s", why));
}

/* ---- compiles ---- */

/* A file without mistakes gets an empty list, so that the client knows that the compile is done. */
static void set_compiled(Documents *d, Document *doc, json_t *first, const char *why)
{
  json_decref(doc->files);
  doc->files = json_incref(json_object_get(first, "files"));
  json_t *found = first ? json_incref(json_object_get(first, "found")) : not_compiled(doc, why);
  if (!json_object_get(found, json_string_value(doc->uri)))
    json_object_set_new(found, json_string_value(doc->uri), json_array());
  set_found(d, doc, found);
  json_decref(first);
}

/* Compiles a file. It stays dirty if the client sends an edit meanwhile. */
static void compile(Documents *d, Document *doc)
{
  json_t *first;
  const char *why;
  OpenText *texts = calloc(d->n, sizeof *texts);
  const char **uris = calloc(d->n, sizeof *uris);
  if (!texts || !uris) arena_out_of_memory();
  for (size_t i = 0; i < d->n; i++) {
    texts[i] = (OpenText){d->at[i].path, json_string_value(d->at[i].text),
                          (uint32_t)json_string_length(d->at[i].text)};
    uris[i] = json_string_value(d->at[i].uri);
  }
  Options options = d->options;
  options.input = doc->path;
  options.open = texts;
  options.n_open = (uint32_t)d->n;
  worker_end(doc->worker);
  doc->worker = worker_start(&options, uris, d->utf8, d->client, &first, &why);
  doc->dirty = !first && !why;
  if (!doc->dirty) set_compiled(d, doc, first, why);
  free(texts);
  free(uris);
}

void documents_update(Documents *d)
{
  for (size_t i = 0; i < d->n; i++) {
    if (d->at[i].dirty) compile(d, &d->at[i]);
    if (d->at[i].dirty) return;
  }
}

static void forget(Document *doc)
{
  worker_end(doc->worker);
  json_decref(doc->uri);
  json_decref(doc->text);
  json_decref(doc->files);
  json_decref(doc->found);
  arena_destroy(doc->arena);
}

/* The file on disk counts again. Its diagnostics stay if an open job imports it. */
void documents_close(Documents *d, const char *uri)
{
  Document *doc = documents_find(d, uri);
  if (!doc) return;
  set_found(d, doc, NULL);
  forget(doc);
  *doc = d->at[--d->n];
  documents_stale(d);
}

void documents_free(Documents *d)
{
  for (size_t i = 0; i < d->n; i++) forget(&d->at[i]);
  free(d->at);
}

/* Returns the job that knows most about a file: one that imports it elaborates its modules. */
static Document *job_of(Documents *d, Document *doc)
{
  for (size_t i = 0; i < d->n; i++)
    if (&d->at[i] != doc && d->at[i].worker && reads(&d->at[i], doc->path)) return &d->at[i];
  return doc;
}

/* Asks the worker of a job about a file, which need not be open. */
static json_t *ask_job(Document *job, json_t *uri, const char *method, json_t *params)
{
  if (job->dirty) return NULL;
  if (!job->worker) return json_null();
  json_t *request = json_pack("{s:s, s:O, s:O}", "method", method, "params", params, "uri", uri);
  const char *why;
  json_t *result = worker_ask(job->worker, request, &why);
  json_decref(request);
  if (result) return result;
  worker_end(job->worker); /* the next edit starts a new one */
  job->worker = NULL;
  job->dirty = !why;
  return why ? json_null() : NULL;
}

json_t *documents_ask(Documents *d, Document *doc, const char *method, json_t *params)
{
  documents_update(d);
  return ask_job(job_of(d, doc), doc->uri, method, params);
}

/* Adds the places or edits of an answer to those of another one. */
static void unite(json_t *into, json_t *more)
{
  const char *uri;
  json_t *list, *changes = json_object_get(into, "changes");
  if (json_is_array(into)) add_new(into, more);
  json_object_foreach(json_object_get(more, "changes"), uri, list)
  {
    if (!json_object_get(changes, uri)) json_object_set_new(changes, uri, json_array());
    add_new(json_object_get(changes, uri), list);
  }
}

/* True if another job reads all that this one reads, and executes more of it. */
static bool is_part(const Documents *d, const Document *doc)
{
  for (size_t i = 0; i < d->n; i++)
    if (&d->at[i] != doc && d->at[i].worker && reads(&d->at[i], doc->path) &&
        !reads(doc, d->at[i].path))
      return true;
  return false;
}

json_t *documents_ask_all(Documents *d, Document *doc, const char *method, json_t *params)
{
  json_t *place = documents_ask(d, doc, "declared", params);
  json_t *uri = json_object_get(place, "uri"), *all = place ? json_null() : NULL;
  json_t *there = json_copy(params);
  json_object_set(there, "position", json_object_get(json_object_get(place, "range"), "start"));
  if (place && !uri) all = documents_ask(d, doc, method, params); /* says why */
  for (size_t i = 0; i < d->n && uri && all && !json_is_string(all); i++) {
    if (is_part(d, &d->at[i])) continue;
    json_t *more = ask_job(&d->at[i], uri, method, there);
    bool first = json_is_null(all) || !more || json_is_string(more);
    if (!first) unite(all, more);
    json_decref(first ? all : more);
    if (first) all = more;
  }
  json_decref(there);
  json_decref(place);
  return all;
}
