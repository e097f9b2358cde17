/* The verbs of amp. */
#include "runner.h"

const Verb verbs[] = {
    {"train", train_main, "train the job", &train_verb, true},
    {"eval", eval_main, "run the eval blocks of the job on saved weights", &eval_verb, true},
    {"infer", infer_main, "run an infer block of the job over data", &infer_verb, false},
    {"chat", chat_main, "talk with the language model of the job", &chat_verb, false},
    {"inspect", inspect_main, "print the kernels that the job compiles to", &inspect_verb, false},
    {"profile", profile_main, "run some steps and report where their time goes", &profile_verb,
     false},
    {"probe", probe_main, "run some steps and report how large their values are", &probe_verb,
     false},
    {"tune", tune_main, "search the precision of each module", &tune_verb, false},
    {"report", report_main, "write a web page: layers, types, casts, memory, kernels, curves",
     &report_verb, false},
    {"weights", weights_main, "write weights as PyTorch's load_state_dict takes them",
     &weights_verb, false},
    {"export", export_main, "write an infer block as an ONNX model", &export_verb, false},
    {"import", import_main, "write an ONNX model as a job and its weights", &import_verb, false},
    {"tokens", tokens_main, "write texts as the ids of a tokenizer, and back", &tokens_verb, false},
    {"fmt", fmt_main, "format jobs: indentation, blanks, empty lines", &fmt_verb, false},
    {"repl", repl_main, "a prompt for declarations, statements and commands", &repl_verb, false},
    {"lsp", lsp_main, "a language server for editors", &lsp_verb, false},
    {"selftest", selftest_main, "check every op against references on this machine", &selftest_verb,
     false},
    {0}};

const char amp_notes[] =
    "exit status: 0 success, 1 errors in the program, 2 bad usage, 3 a file is\n"
    "missing or unreadable, 4 the C compiler failed, 5 the run failed, 70 a bug in\n"
    "amp, 130 interrupted by SIGINT, SIGTERM or SIGHUP; training saves first";
