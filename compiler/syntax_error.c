/* What to say when the parser is stuck. */
#include "ast_build.h"
#include "amp.tab.h"

void parse_syntax_error(Parser *p, const SyntaxError *e)
{
  const Token *t = &p->tokens.at[p->next_token];
  (void)e;
  if (t->reported) return;
  diag_error(p->c, E100, t->span, "unexpected %s", parse_found(p, t));
}
