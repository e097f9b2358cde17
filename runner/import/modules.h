/* The modules of the job that amp import writes. */
#pragma once
#include "form.h"
#include "read.h"

typedef enum ModuleKind {
  MODULE_class,    /* a module with a forward; or only with members, called from outside */
  MODULE_member,   /* a layer, parameter or buffer */
  MODULE_sequence, /* Sequential(..) */
  MODULE_list,     /* [..]: called from outside */
} ModuleKind;

typedef struct Module {
  const char *name, *path; /* "0"; "layer1.0" */
  const char *class_name;  /* "BasicBlock" or NULL */
  bool library;            /* a layer of PyTorch */
  ModuleKind kind;
  struct Module *parent;
  VEC(struct Module *) children; /* in the order of their first use */
  const Member *member;
  VEC(const char *) ties; /* "lm_head.weight = wte.weight" */
  const char *forward;    /* its text, once it is known */
  const Form *chain;      /* of a sequence: Sequential(..) */
  uint32_t stamp;         /* Modules.stamp when it was last met in a chain */
  const Form *form;       /* its constructor, once it is known */
} Module;

/* What a call does at one place: a step, or a call of a module inside. */
typedef struct Entry {
  uint32_t step;     /* index + 1 */
  struct Call *call; /* of a module inside, if step is 0 */
} Entry;

/* A call of a module: the steps between its arguments and its results. */
typedef struct Call {
  Module *module;
  struct Call *parent; /* NULL: the whole net; else it is entry `place` of it */
  uint32_t place;
  VEC(Entry) entries;    /* in an order in which they can run */
  VEC(uint32_t) in, out; /* values from outside; values for outside */
  uint32_t begins;       /* index + 1 of the member that its first step calls; 0: none */
  bool has_members;      /* some step of it has parameters or buffers */
} Call;

typedef struct Modules {
  Arena *arena;
  Reader *r;
  NameMap paths; /* of modules */
  NameMap calls; /* the latest call of a module inside another call */
  Module *root;
  Call *net;
  Forms forms;
  uint32_t stamp;
  const char **shown; /* while a forward is written: the text of each value */
  uint32_t *left;     /* and how often it is still needed */
} Modules;

/* Builds the modules and calls of a graph that has been read. */
void modules_build(Modules *m, Reader *r);
Module *module_at(Modules *m, const char *path); /* makes it if it is missing */
/* Its path with the names that the job uses. */
const char *module_path(Modules *m, const Module *module);
bool is_position(const char *name); /* in a list or Sequential: "0", at most three digits */
/* A member or module as code inside `from` names it: "layer1[0].conv1". */
const char *module_name(Modules *m, const Module *to, const Module *from);

/* Whether the call is a chain: each child's result is only the next child's argument. Its values
 * have been found. */
bool call_is_chain(Modules *m, const Call *c);
/* The child of the call's module that an entry runs; NULL: none. */
Module *entry_child(Modules *m, const Call *c, const Entry *e);
void entry_move(Modules *m, const Entry *e, Call *to); /* makes the entry one of another call */
void call_find_values(Modules *m, Call *c);            /* finds in and out */

/* ---- build_job.c ---- */
bool is_reserved(const char *name); /* it cannot be a name in a job */
/* Defines all modules, and sets the paths of what is stored. Returns the constructor of the whole
 * net. */
const Form *modules_finish(Modules *m);

/* ---- forward.c ---- */
/* Writes the text of a call: "def forward(x) { return fc2(relu(fc1(x))) }". */
const char *forward_text(Modules *m, const Call *c);
