/* The product that the runtime brings (runtime/cuda/product.cu), thread by thread. */
#pragma once

/* FILE, then `--mutate FROM=>TO` for a fault in it. The exit status: 5 for a fault that was found.
 */
int check_product(int argc, char **argv);
