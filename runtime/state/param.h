/* Reads and writes parameters in pieces, in the order of their shape. */
#pragma once
#include "ampc_rt.h"

/* Returns the elements in a piece of a parameter: at most `most`, but at least AMPC_CODE_BLOCK, and
 * whole filters if the weight is stored channels last. Pieces begin at multiples of this number. */
int64_t param_piece(const ampc_param *q, int64_t most);
/* Moves a whole parameter in pieces, so that no second copy of it is needed. Calls `move` for each
 * piece; `at`: the offset of the piece in bytes. If `load` is true, `move` writes the new values to
 * `piece`; otherwise `piece` holds the parameter's values, and `move` reads them. */
typedef ampc_status ParamMove(void *context, int64_t at, int64_t bytes, void *piece);
ampc_status param_move(ampc_runtime *rt, const ampc_param *q, ampc_space space, bool load,
                       ParamMove *move, void *context);
/* Writes elements [first, first + n) of a parameter. Overwrites `from` with the order in memory. */
ampc_status param_write(ampc_runtime *rt, const ampc_param *q, ampc_space space, int64_t first,
                        int64_t n, void *from);
