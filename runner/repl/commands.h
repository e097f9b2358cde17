/* The commands of the prompt: argument text without blanks around it. */
#pragma once
#include "repl.h"

bool command_run(Repl *r, const char *text);
/* `resume "net.safetensors"`, which is nothing in the language: a command without its colon. */
bool command_is_said(const char *text, size_t size);
bool path_matches(const char *pattern, const char *path); /* an empty pattern is any */
bool kernel_find(Repl *r, const ampc_program *p, const char *name, uint32_t *out);
bool kernel_edit(Repl *r, uint32_t kernel);
bool kernel_reload(Repl *r, uint32_t kernel);
void kernel_forget_files(Repl *r);
const char *command_name_at(uint32_t i); /* ":train"; NULL after the last */

bool command_open(Repl *r, const char *arg);
bool command_reload(Repl *r, const char *arg);
bool command_write(Repl *r, const char *arg);
bool command_save(Repl *r, const char *arg);
bool command_load(Repl *r, const char *arg);
bool command_resume(Repl *r, const char *arg);
bool command_set(Repl *r, const char *arg);
bool command_const(Repl *r, const char *arg);
bool command_precision(Repl *r, const char *arg);
bool command_train(Repl *r, const char *arg);
bool command_step(Repl *r, const char *arg);
bool command_eval(Repl *r, const char *arg);
bool command_infer(Repl *r, const char *arg);
bool command_show(Repl *r, const char *arg);
bool command_type(Repl *r, const char *arg);
bool command_params(Repl *r, const char *arg);
bool command_loss(Repl *r, const char *arg);
bool command_scaler(Repl *r, const char *arg);
bool command_grad(Repl *r, const char *arg);
bool command_probe(Repl *r, const char *arg);
bool command_memory(Repl *r, const char *arg);
bool command_time(Repl *r, const char *arg);
bool command_graph(Repl *r, const char *arg);
bool command_casts(Repl *r, const char *arg);
bool command_explain(Repl *r, const char *arg);
bool command_kernel(Repl *r, const char *arg);
bool command_ptx(Repl *r, const char *arg);
bool command_sass(Repl *r, const char *arg);
bool command_blame(Repl *r, const char *arg);
bool command_diff(Repl *r, const char *arg);
