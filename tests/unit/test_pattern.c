/* Patterns of parameter names: what they match, and the names that `rename` makes. */
#include "check.h"
#include "common/pattern.h"
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *pattern, *name;
  bool within, whole; /* within: matches a piece of the name; whole: the whole name */
} matches[] = {
    {"fc.weight", "fc.weight", true, true},
    {"fc", "fc.weight", true, false},
    {"f", "fc.weight", false, false},
    {"*.weight", "fc.weight", true, true},
    {"*.weight", "a.fc.weight", false, false},
    {"**.weight", "weight", true, true},
    {"**.weight", "a.b.c.weight", true, true},
    {"a.**", "a", true, true},
    {"a.**.d", "a.d", true, true},
    {"a.**.d", "a.b.d.c.d", true, true},
    {"a.**.b.*.c", "a.b.b.b.x.c", true, true},
    {"conv*", "conv12.bias", true, false},
    {"c*v*.b*s", "conv12.bias", true, true},
    {"h.*.*.c_*.weight", "h.11.attn.c_proj.weight", true, true},
    {"h.*.*.c_*.weight", "h.11.attn.d_proj.weight", false, false},
    {"**", "a.b", true, true},
};

static const struct {
  const char *from, *to, *name, *renamed; /* renamed: NULL if `from` does not match */
} renames[] = {
    {"**.gamma", "**.weight", "bert.norm.gamma", "bert.norm.weight"},
    {"**.gamma", "**.weight", "gamma", "weight"},
    {"**.gamma", "**.weight", "bert.norm.beta", NULL},
    {"a.**.c", "x.**.y.z", "a.c", "x.y.z"},
    {"**", "bert.**", "a.b", "bert.a.b"},
    {"bert.**", "**", "bert.a.b", "a.b"},
    {"layer*.*.conv", "l*.block*.c", "layer3.0.conv.weight", "l3.block0.c.weight"},
    {"h.*.*_*.w", "g.*.*.*", "h.3.c_proj_x.w", "g.3.c.proj_x"},
    {"features", "backbone", "features.0.weight", "backbone.0.weight"},
    {"a.**.b.**.c", "**.x.**", "a.1.2.b.3.c", "1.2.x.3"},
    {"a", "b", "ab.c", NULL},
    {"*", "*_old", "fc.weight", "fc_old.weight"},
};

static const struct {
  const char *pattern;
  int n;
  unsigned char kinds[4];
} wildcards[] = {
    {"a.b", 0, {0}}, {"**.a*b*.c", 3, {2, 1, 1}}, {"*.**.*", 3, {1, 2, 1}}, {"a**b", 2, {1, 1}}};

int main(void)
{
  for (size_t i = 0; i < sizeof matches / sizeof *matches; i++) {
    CHECK(pattern_matches(matches[i].pattern, matches[i].name, false) == matches[i].within);
    CHECK(pattern_matches(matches[i].pattern, matches[i].name, true) == matches[i].whole);
  }
  for (size_t i = 0; i < sizeof renames / sizeof *renames; i++) {
    bool lost = false;
    char *made = pattern_rename(renames[i].from, renames[i].to, renames[i].name, &lost);
    if (made && renames[i].renamed && strcmp(made, renames[i].renamed) != 0)
      printf("%s: %s, expected %s\n", renames[i].name, made, renames[i].renamed);
    CHECK(!lost && !made == !renames[i].renamed);
    CHECK(!made || strcmp(made, renames[i].renamed) == 0);
    free(made);
  }
  for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++) {
    unsigned char kinds[PATTERN_WILDCARDS] = {0};
    CHECK(pattern_wildcards(wildcards[i].pattern, kinds) == wildcards[i].n);
    CHECK(memcmp(kinds, wildcards[i].kinds, sizeof wildcards[i].kinds) == 0);
  }
  return check_done();
}
