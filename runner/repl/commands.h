/* The commands of `amp repl`. Each gets its argument without blanks around it. */
#pragma once
#include "repl.h"

bool command_run(Repl *r, const char *text);
/* Whether the text looks like a command without its colon: `train 100`. `rest`: what follows the
 * first word. */
bool command_is_said(const char *text, const char *rest);
/* Returns the command or the code that a typed text means: mostly the text itself. NULL after a
 * message. */
const char *input_meaning(Repl *r, const char *text);
bool path_matches(const char *pattern, const char *path); /* an empty pattern matches */
bool kernel_find(Repl *r, const ampc_program *p, const char *name, uint32_t *out);
bool kernel_edit(Repl *r, uint32_t kernel);
bool kernel_reload(Repl *r, uint32_t kernel);
void kernel_forget_files(Repl *r);
const char *command_name_at(uint32_t i); /* ":train"; NULL after the last */
typedef bool CommandRun(Repl *r, const char *arg);
CommandRun command_open, command_reload, command_write, command_save, command_load, command_resume,
    command_undo, command_set, command_const, command_precision, command_train, command_step,
    command_eval, command_infer, command_generate, command_show, command_image, command_hist,
    command_type, command_params, command_loss, command_scaler, command_grad, command_probe,
    command_profile, command_memory, command_time, command_graph, command_casts, command_explain,
    command_kernel, command_ptx, command_sass, command_blame, command_diff;
