/* Checks the runtime's own product (runtime/cuda/product.cu), thread by thread. */
#pragma once

/* Checks the product of FILE. Arguments: FILE, then `--mutate FROM=>TO` to plant a fault. Returns 5
 * if a fault was found. */
int check_product(int argc, char **argv);
