/* The protocol: requests, notifications and errors, in the order in which they come. An edit is
 * compiled when no further message waits, so that fast typing compiles only its last text. */
#include "lsp.h"
#include "documents.h"
#include <stdlib.h>
#include <string.h>

/* Errors of JSON-RPC and of the protocol. */
enum {
  PARSE_ERROR = -32700,
  INVALID_REQUEST = -32600,
  METHOD_NOT_FOUND = -32601,
  INVALID_PARAMS = -32602,
  NOT_INITIALIZED = -32002,
  REQUEST_FAILED = -32803,
  CONTENT_MODIFIED = -32801
};

typedef struct Server {
  Documents documents;
  Stream client;
  bool initialized, shut, done;
  const char *method; /* of the message that is being handled */
  json_t *error;      /* of the request that is being answered; NULL: none */
} Server;

static json_t *refuse(Server *s, int error, const char *text)
{
  json_decref(s->error);
  s->error = json_pack("{s:i, s:s}", "code", error, "message", text);
  return NULL;
}

/* ---- parameters ---- */

/* Returns the member `path` of the parameters, such as "textDocument.uri"; NULL if it is missing or
 * of another type. */
static json_t *param(const json_t *params, const char *path, json_type type)
{
  json_t *at = (json_t *)(uintptr_t)params;
  char key[32];
  for (const char *p = path; at && *p;) {
    size_t n = strcspn(p, ".");
    snprintf(key, sizeof key, "%.*s", (int)n, p);
    at = json_object_get(at, key);
    p += n + (p[n] == '.');
  }
  return at && json_typeof(at) == type ? at : NULL;
}

static bool is_position(const json_t *p)
{
  const json_t *line = param(p, "line", JSON_INTEGER), *c = param(p, "character", JSON_INTEGER);
  return line && c && json_integer_value(line) >= 0 && json_integer_value(c) >= 0;
}

/* ---- the life of the server ---- */

/* Positions count bytes if the client can do that. */
static json_t *initialize(Server *s, json_t *params)
{
  size_t i;
  json_t *one, *encodings = param(params, "capabilities.general.positionEncodings", JSON_ARRAY);
  if (s->initialized) return refuse(s, INVALID_REQUEST, "the server is initialized already");
  json_array_foreach(encodings, i, one)
  {
    const char *name = json_string_value(one);
    if (name && strcmp(name, "utf-8") == 0) s->documents.utf8 = true;
  }
  s->initialized = true;
  return json_pack("{s:{s:s, s:{s:b, s:i, s:b}, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:{s:b}, "
                   "s:{s:[s]}, s:{s:[s,s]}, s:{s:[s]}}, s:{s:s}}",
                   "capabilities", "positionEncoding", s->documents.utf8 ? "utf-8" : "utf-16",
                   "textDocumentSync", "openClose", 1, "change", 1, "save", 1, "hoverProvider", 1,
                   "definitionProvider", 1, "inlayHintProvider", 1, "documentSymbolProvider", 1,
                   "documentFormattingProvider", 1, "referencesProvider", 1,
                   "documentHighlightProvider", 1, "renameProvider", "prepareProvider", 1,
                   "codeActionProvider", "codeActionKinds", "quickfix", "signatureHelpProvider",
                   "triggerCharacters", "(", ",", "completionProvider", "triggerCharacters", ".",
                   "serverInfo", "name", "amp lsp");
}

static json_t *shut_down(Server *s, json_t *params)
{
  (void)params;
  s->shut = true;
  return json_null();
}

static json_t *end(Server *s, json_t *params)
{
  (void)params;
  s->done = true;
  return json_null();
}

static json_t *ignore(Server *s, json_t *params)
{
  (void)s, (void)params;
  return json_null();
}

/* ---- files ---- */

static json_t *set_text(Server *s, json_t *params, json_t *text)
{
  json_t *uri = param(params, "textDocument.uri", JSON_STRING);
  json_t *version = param(params, "textDocument.version", JSON_INTEGER);
  if (!uri || !text) return refuse(s, INVALID_PARAMS, "a URI and a text are needed");
  if (!documents_set(&s->documents, uri, text, json_integer_value(version))) arena_out_of_memory();
  return json_null();
}

static json_t *did_open(Server *s, json_t *params)
{
  return set_text(s, params, param(params, "textDocument.text", JSON_STRING));
}

/* The server asks for whole texts, so the last change has the new text. */
static json_t *did_change(Server *s, json_t *params)
{
  json_t *changes = param(params, "contentChanges", JSON_ARRAY);
  json_t *last = changes ? json_array_get(changes, json_array_size(changes) - 1) : NULL;
  json_t *uri = param(params, "textDocument.uri", JSON_STRING);
  if (!uri || !documents_find(&s->documents, json_string_value(uri)) ||
      json_object_get(last, "range"))
    return refuse(s, INVALID_PARAMS, "the whole text of an open file is needed");
  return set_text(s, params, param(last, "text", JSON_STRING));
}

static json_t *did_close(Server *s, json_t *params)
{
  json_t *uri = param(params, "textDocument.uri", JSON_STRING);
  if (uri) documents_close(&s->documents, json_string_value(uri));
  return json_null();
}

static json_t *did_save(Server *s, json_t *params)
{
  (void)params;
  documents_stale(&s->documents);
  return json_null();
}

/* A string says why there is no answer: no layout, for example. */
static json_t *ask(Server *s, json_t *params,
                   json_t *(*by)(Documents *, Document *, const char *, json_t *))
{
  json_t *uri = param(params, "textDocument.uri", JSON_STRING);
  Document *doc = uri ? documents_find(&s->documents, json_string_value(uri)) : NULL;
  if (!doc) return refuse(s, INVALID_PARAMS, "the URI of an open file is needed");
  json_t *result = by(&s->documents, doc, s->method, params);
  if (result && !json_is_string(result)) return result;
  refuse(s, result ? REQUEST_FAILED : CONTENT_MODIFIED,
         result ? json_string_value(result) : "the text changes");
  json_decref(result);
  return NULL;
}

static json_t *ask_file(Server *s, json_t *params)
{
  return ask(s, params, documents_ask);
}

static bool has_place(Server *s, json_t *params)
{
  bool has = is_position(param(params, "position", JSON_OBJECT));
  if (!has) refuse(s, INVALID_PARAMS, "a position is needed: a line and a character from 0");
  return has;
}

static json_t *ask_place(Server *s, json_t *params)
{
  return has_place(s, params) ? ask_file(s, params) : NULL;
}

static json_t *ask_places(Server *s, json_t *params)
{
  return has_place(s, params) ? ask(s, params, documents_ask_all) : NULL;
}

static json_t *rename_name(Server *s, json_t *params)
{
  if (!param(params, "newName", JSON_STRING))
    return refuse(s, INVALID_PARAMS, "a new name is needed");
  return ask_places(s, params);
}

static json_t *ask_range(Server *s, json_t *params)
{
  if (!is_position(param(params, "range.start", JSON_OBJECT)) ||
      !is_position(param(params, "range.end", JSON_OBJECT)))
    return refuse(s, INVALID_PARAMS, "a range is needed: two positions");
  return ask_file(s, params);
}

/* ---- messages ---- */

/* Each handler returns a result, or NULL after refuse(). */
static const struct Method {
  const char *name;
  bool request;
  json_t *(*run)(Server *s, json_t *params);
} methods[] = {
    {"initialize", true, initialize},
    {"initialized", false, ignore},
    {"shutdown", true, shut_down},
    {"exit", false, end},
    {"textDocument/didOpen", false, did_open},
    {"textDocument/didChange", false, did_change},
    {"textDocument/didClose", false, did_close},
    {"textDocument/didSave", false, did_save},
    {"workspace/didChangeWatchedFiles", false, did_save},
    {"textDocument/hover", true, ask_place},
    {"textDocument/definition", true, ask_place},
    {"textDocument/completion", true, ask_place},
    {"textDocument/inlayHint", true, ask_range},
    {"textDocument/documentSymbol", true, ask_file},
    {"textDocument/formatting", true, ask_file},
    {"textDocument/codeAction", true, ask_range},
    {"textDocument/signatureHelp", true, ask_place},
    {"textDocument/references", true, ask_places},
    {"textDocument/documentHighlight", true, ask_place},
    {"textDocument/prepareRename", true, ask_place},
    {"textDocument/rename", true, rename_name},
};

static const struct Method *find_method(const char *name, bool request)
{
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    if (methods[i].request == request && strcmp(methods[i].name, name) == 0) return &methods[i];
  return NULL;
}

/* Answers a request with `result`, or with the error that refuse() has noted. */
static void answer(Server *s, json_t *id, json_t *result)
{
  json_t *message = json_pack("{s:s, s:O}", "jsonrpc", "2.0", "id", id);
  if (s->error)
    json_object_set(message, "error", s->error);
  else
    json_object_set(message, "result", result);
  message_write(&s->client, message);
  json_decref(message);
}

/* An error without an id: the message has none, or it cannot be read. */
static void complain(Server *s, int error, const char *text)
{
  refuse(s, error, text);
  answer(s, json_null(), NULL);
}

static void run_request(Server *s, json_t *id, json_t *params)
{
  const struct Method *m = find_method(s->method, true);
  json_t *result = NULL;
  if (!s->initialized && strcmp(s->method, "initialize") != 0)
    refuse(s, NOT_INITIALIZED, "the first request is `initialize`");
  else if (s->shut)
    refuse(s, INVALID_REQUEST, "the server has been shut down");
  else if (!m)
    refuse(s, METHOD_NOT_FOUND, "the server has no such method");
  else
    result = m->run(s, params);
  answer(s, id, result);
  json_decref(result);
}

/* Notifications get no answer, not even an error. */
static void run_notification(Server *s, json_t *params)
{
  const struct Method *m = find_method(s->method, false);
  bool early = !s->initialized || s->shut;
  if (m && (!early || m->run == end)) json_decref(m->run(s, params));
}

static void handle(Server *s, const char *body, size_t size)
{
  json_t *message = message_parse(body, size);
  const char *name = json_string_value(json_object_get(message, "method"));
  json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
  json_decref(s->error);
  s->error = NULL;
  s->method = name;
  if (!message)
    complain(s, PARSE_ERROR, "the message is no JSON");
  else if (id && !json_is_integer(id) && !json_is_string(id))
    complain(s, INVALID_REQUEST, "an id is a number or a string");
  else if (name && id)
    run_request(s, id, params);
  else if (name)
    run_notification(s, params);
  else if (!json_object_get(message, "result") && !json_object_get(message, "error"))
    complain(s, INVALID_REQUEST, "the message has no method"); /* else it is an answer */
  json_decref(message);
}

int lsp_serve(const Options *options, int in, int out)
{
  Server s = {.client = {.in = in, .out = out}, .documents = {.options = *options}};
  s.documents.client = &s.client;
  while (!s.done) {
    const char *body;
    size_t size;
    Received r = message_read(&s.client, &body, &size);
    if (r == RECEIVED_end) break;
    if (r == RECEIVED_message) handle(&s, body, size);
    if (r == RECEIVED_bad) complain(&s, PARSE_ERROR, "headers with a Content-Length are needed");
    if (r == RECEIVED_large) complain(&s, INVALID_REQUEST, "a message has at most 64 MiB");
    if (!s.done && !message_waits(&s.client, 0)) documents_update(&s.documents);
  }
  documents_free(&s.documents);
  json_decref(s.error);
  free(s.client.at);
  return s.done && s.shut ? 0 : 1;
}
