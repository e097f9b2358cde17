/* Checks the kernels that the runtime contains as PTX. */
#pragma once

/* Arguments: none, or `--mutate FROM=>TO` to plant a fault. Returns 5 if a fault was found. */
int ptx_check_runtime(int argc, char **argv);
