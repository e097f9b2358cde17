/* Checks the names of the signature of an op, which its text uses. C, C++ and CUDA must accept
 * them, and they must be unique. */
#include "own.h"

/* Reserved words of C, C++ and CUDA, and names that the template around a text defines. */
#define TYPE_NAMES(KIND, name, ...) #name " op_" #name " "
static const char words[] =
    " alignas alignof and asm auto bool break case catch char char8_t char16_t char32_t class "
    "compl concept const consteval constexpr constinit const_cast continue co_await co_return "
    "co_yield decltype default delete do double dynamic_cast else enum explicit export extern "
    "false float for friend goto if inline int int64_t long mutable namespace new noexcept not "
    "nullptr operator or private protected public real register reinterpret_cast requires "
    "restrict return short signed sizeof static static_assert static_cast struct switch template "
    "this thread_local throw true try typedef typeid typename typeof union unsigned using virtual "
    "void volatile wchar_t while xor threadIdx blockIdx blockDim gridDim warpSize R "
    "DEVICE UNUSED unix linux " AMPC_NARROW_FLOATS(TYPE_NAMES);

typedef struct NameCheck {
  Lower *l;
  const OwnDecl *own;
  VEC(Name) seen;
} NameCheck;

static bool is_word(const char *name)
{
  size_t n = strlen(name);
  for (const char *at = words; (at = strstr(at, name)); at += n)
    if (at[-1] == ' ' && at[n] == ' ') return true;
  return strncmp(name, "__", 2) == 0;
}

/* True if two names collide. A tensor `x` also defines the type `x_t` of its elements. */
static bool collides(const char *a, const char *b)
{
  size_t n = strlen(a), m = strlen(b);
  if (n == m) return strcmp(a, b) == 0;
  return n + 2 == m && strncmp(a, b, n) == 0 && strcmp(b + n, "_t") == 0;
}

static bool check_name(NameCheck *k, Name name)
{
  Lower *l = k->l;
  const Expr *const *clause = k->own->clause;
  bool frame = (clause[CLAUSE_threads] && strcmp(name.text, "i") == 0) ||
               (clause[CLAUSE_parts] && strcmp(name.text, "part") == 0) ||
               (clause[CLAUSE_shared] && strcmp(name.text, "shared") == 0);
  if (is_word(name.text))
    return refuse(l, E204, name.span,
                  "`%s` has a meaning in C, C++ or CUDA, so an op cannot use it as a name",
                  name.text);
  if (frame)
    return refuse(l, E204, name.span, "`%s` has a predefined meaning in the text of an op",
                  name.text);
  for (uint32_t i = 0; i < k->seen.n; i++) {
    const Name *other = &k->seen.at[i];
    if (!collides(other->text, name.text) && !collides(name.text, other->text)) continue;
    fail(l, E204, name.span, "`%s` and `%s` collide in the text of an op", other->text, name.text);
    diag_note(l->c, other->span, "the other one");
    if (strcmp(other->text, name.text) != 0)
      diag_help(l->c, "x_t is the type of the elements of x");
    return false;
  }
  vec_push(l->arena, &k->seen, name);
  return true;
}

static bool check_list(NameCheck *k, const ParamList *p)
{
  bool good = true;
  for (uint32_t i = 0; i < p->n; i++) good = check_name(k, p->at[i].name) && good;
  return good;
}

/* Checks the sizes that the signature names. Several uses of a name mean one size. */
static bool check_sizes(NameCheck *k, const ParamList *p)
{
  bool good = true;
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t d = 0; d < p->at[i].type.n_dims; d++) {
      const Expr *e = p->at[i].type.dims[d];
      bool known = !e || e->kind != EXPR_name;
      for (uint32_t s = 0; !known && s < k->seen.n; s++)
        known = strcmp(k->seen.at[s].text, e->as.name) == 0;
      if (!known) good = check_name(k, (Name){e->as.name, e->span}) && good;
    }
  return good;
}

bool own_check_names(Lower *l, const OwnDecl *own)
{
  NameCheck k = {.l = l, .own = own};
  return check_list(&k, &own->decl->as.op.params) && check_list(&k, &own->decl->as.op.outputs) &&
         check_sizes(&k, &own->decl->as.op.params);
}
