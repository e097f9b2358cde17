/* How the partial results of a row, or of a column, are joined. */

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

// --- column_sum
COLUMN_TREE(real, column_sum, JOIN_ADD)

// --- column_max
COLUMN_TREE(real, column_max, ampc_max)

// --- column_min
COLUMN_TREE(real, column_min, ampc_min)

// --- column_sum_int
COLUMN_TREE(long long, column_sum_int, JOIN_ADD)

// --- column_max_int
COLUMN_TREE(long long, column_max_int, ampc_max_int)

// --- column_min_int
COLUMN_TREE(long long, column_min_int, ampc_min_int)
