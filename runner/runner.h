/* The verbs of `amp`. argv[0] is the verb's own name. Each verb returns an exit status: an
 * ampc_status, or 1 for errors in the program. */
#pragma once

int train_main(int argc, char **argv);
int eval_main(int argc, char **argv);
int infer_main(int argc, char **argv);
int inspect_main(int argc, char **argv);
int profile_main(int argc, char **argv);
int probe_main(int argc, char **argv);
int report_main(int argc, char **argv);
int repl_main(int argc, char **argv);
int weights_main(int argc, char **argv);
int selftest_main(int argc, char **argv);
