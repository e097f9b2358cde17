/* How the partial results of a row are joined. */

// --- JOIN_ADD
#define JOIN_ADD(x, y) ((x) + (y))

// --- row_sum
ROW_TREE(real, row_sum, JOIN_ADD)

// --- row_max
ROW_TREE(real, row_max, ampc_max)

// --- row_min
ROW_TREE(real, row_min, ampc_min)

// --- row_sum_int
ROW_TREE(long long, row_sum_int, JOIN_ADD)

// --- row_max_int
ROW_TREE(long long, row_max_int, ampc_max_int)

// --- row_min_int
ROW_TREE(long long, row_min_int, ampc_min_int)
