/* What expands from ops.def: the table itself, names, parsed signatures. */
#include "ops.h"
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const OpInfo op_info[OP_COUNT] = {
#define AMPC_OP(name, sig, shape, prec, grad, tmpl, code, doc)                                     \
  [OP_##name] = {#name, sig, shape_##shape, PREC_##prec, grad_##grad, TMPL_##tmpl, code, doc},
#include "ops.def"
};

/* ---- signatures ------------------------------------------------------------------------------ */

enum { MAX_SIGNATURE_TEXT = 200 };

/* Names point into `text`, a copy of the signature that is cut up in place. */
static struct {
  OpSignature signature;
  char text[MAX_SIGNATURE_TEXT];
} parsed[OP_COUNT];
static pthread_once_t parse_once = PTHREAD_ONCE_INIT;

static char *trim(char *s)
{
  while (*s == ' ') s++;
  for (size_t n = strlen(s); n && s[n - 1] == ' '; n--) s[n - 1] = 0;
  return s;
}

static void parse_input(OpSignature *sig, char *item)
{
  assert(sig->n_inputs < MAX_SIGNATURE);
  InputInfo *in = &sig->input[sig->n_inputs++];
  size_t n = strlen(item);
  in->optional = item[n - 1] == '?';
  in->variadic = item[n - 1] == '*';
  if (in->optional || in->variadic) item[n - 1] = 0;
  in->name = item;
}

static AttrInfo *add_attr(OpSignature *sig, const char *name, AttrKind kind)
{
  assert(sig->n_attrs < MAX_ATTR);
  AttrInfo *attr = &sig->attr[sig->n_attrs++];
  *attr = (AttrInfo){.name = name, .kind = kind, .required = true};
  return attr;
}

static AttrKind parse_kind(const char *word)
{
  static const struct {
    const char *word;
    AttrKind kind;
  } kinds[] = {{"i", ATTR_int},     {"f", ATTR_float},   {"b", ATTR_bool},
               {"axis", ATTR_axis}, {"axes", ATTR_axes}, {"d", ATTR_dtype}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(word, kinds[i].word) == 0) return kinds[i].kind;
  }
  assert(!"kind of an attribute in ops.def");
  return ATTR_int;
}

static Attr parse_default(AttrKind kind, const char *text)
{
  if (kind == ATTR_float) return (Attr){.f = strtod(text, NULL)};
  if (kind == ATTR_bool) return (Attr){.i = strcmp(text, "true") == 0};
  if (kind == ATTR_axes) return (Attr){.i = 0}; /* `none` is the only default there is */
  return (Attr){.i = strtoll(text, NULL, 10)};
}

static void parse_attr(OpSignature *sig, char *item)
{
  static const char *const sizes[] = {"size0", "size1", "size2", "size3", "size4", "size5"};
  if (strcmp(item, "shape") == 0) {
    add_attr(sig, "rank", ATTR_int);
    for (int i = 0; i < MAX_RANK; i++) add_attr(sig, sizes[i], ATTR_int);
    return;
  }
  char *colon = strchr(item, ':');
  assert(colon && "attribute without a kind in ops.def");
  *colon = 0;
  char *value = strchr(colon + 1, '=');
  if (value) *value++ = 0;
  AttrInfo *attr = add_attr(sig, item, parse_kind(colon + 1));
  if (!value) return;
  attr->required = false;
  attr->value = parse_default(attr->kind, value);
}

static void parse_list(OpSignature *sig, char *list, void (*parse)(OpSignature *, char *))
{
  char *rest;
  for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
    item = trim(item);
    if (*item) parse(sig, item);
  }
}

static void parse_signature(OpKind op)
{
  OpSignature *sig = &parsed[op].signature;
  char *text = parsed[op].text;
  assert(strlen(op_info[op].signature) < MAX_SIGNATURE_TEXT);
  strcpy(text, op_info[op].signature);
  sig->internal = *text == '!';
  if (sig->internal) text++;
  char *attrs = strchr(text, ';');
  if (attrs) *attrs++ = 0;
  parse_list(sig, text, parse_input);
  if (attrs) parse_list(sig, attrs, parse_attr);
}

static void parse_all(void)
{
  for (int op = 0; op < OP_COUNT; op++) parse_signature((OpKind)op);
}

const OpSignature *op_signature(OpKind op)
{
  assert(op < OP_COUNT);
  pthread_once(&parse_once, parse_all);
  return &parsed[op].signature;
}

/* ---- names and effects ------------------------------------------------------------------------
 */

bool op_lookup(const char *name, OpKind *out)
{
  for (int op = 0; op < OP_COUNT; op++) {
    if (op_info[op].signature[0] == '!' || strcmp(op_info[op].name, name) != 0) continue;
    *out = (OpKind)op;
    return true;
  }
  return false;
}

bool op_is_product(OpKind op)
{
  return op_info[op].tmpl == TMPL_gemm || op_info[op].tmpl == TMPL_conv;
}

bool op_is_random(OpKind op)
{
  return strstr(op_info[op].code, "$stream") != NULL;
}

/* A weight is no image; what has less than three axes is left alone anyway. */
uint32_t op_image_inputs(OpKind op)
{
  bool (*shape)(Compile *, Node *) = op_info[op].shape;
  if (shape == shape_conv2d || shape == shape_conv2d_data) return 1;
  bool all = shape == shape_conv2d_weight || shape == shape_batch_norm ||
             shape == shape_channel_parts || shape == shape_pool2d ||
             shape == shape_pool2d_backward || shape == shape_adaptive_pool2d ||
             shape == shape_interpolate;
  return all ? ~0u : 0;
}

/* grad_norm reads the gradients that effects before it have written, so it stays where it is too.
 */
bool op_has_effect(OpKind op)
{
  return op_info[op].shape == shape_effect || op_info[op].shape == shape_grad_norm;
}
