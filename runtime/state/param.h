/* Parameters by pieces, in the order of their shape. */
#pragma once
#include "ampc_rt.h"

/* How many elements a piece of a parameter has: whole filters of what lies channels last, at most
 * `most` elements or one filter. Pieces are read and written from multiples of it on. */
int64_t param_piece(const ampc_param *q, int64_t most);
/* All of it by pieces, so that no second copy of it is needed: `move` takes the bytes of each,
 * which begin at `at`; with `load` it makes them. */
typedef ampc_status ParamMove(void *context, int64_t at, int64_t bytes, void *piece);
ampc_status param_move(ampc_runtime *rt, const ampc_param *q, ampc_space space, bool load,
                       ParamMove *move, void *context);
/* `from` is lost: it is put into the order of the space. */
ampc_status param_write(ampc_runtime *rt, const ampc_param *q, ampc_space space, int64_t first,
                        int64_t n, void *from);
