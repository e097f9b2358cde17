/* Functions that combine the partial results of a row or of a column, search a table for a row, and
 * combine the results of the threads before one of a row. */

// --- TABLE_ROW
/* Searches a table of `rows` rows of 3 numbers, sorted by the numbers of `column`. `at` becomes the
 * index of the last row that has at most x there; it counts numbers, not rows. */
#define TABLE_ROW(table, rows, column, at, x)                                                      \
  int at = 0;                                                                                      \
  for (int at##_end = (rows); at##_end - at > 1;) {                                                \
    const int at##_mid = (at + at##_end) / 2;                                                      \
    if ((table)[3 * at##_mid + (column)] <= (x))                                                   \
      at = at##_mid;                                                                               \
    else                                                                                           \
      at##_end = at##_mid;                                                                         \
  }                                                                                                \
  at *= 3

// --- JOIN_ADD
#define JOIN_ADD(x, y) ((x) + (y))

// --- JOIN_MULTIPLY
#define JOIN_MULTIPLY(x, y) ((x) * (y))

// --- row_sum
ROW_TREE(real, row_sum, JOIN_ADD)

// --- row_product
ROW_TREE(real, row_product, JOIN_MULTIPLY)

// --- row_sum_f64
ROW_TREE(double, row_sum_f64, JOIN_ADD)

// --- row_product_f64
ROW_TREE(double, row_product_f64, JOIN_MULTIPLY)

// --- row_max
ROW_TREE(real, row_max, ampc_max)

// --- row_min
ROW_TREE(real, row_min, ampc_min)

// --- row_sum_int
ROW_TREE(long long, row_sum_int, JOIN_ADD)

// --- row_product_int
ROW_TREE(long long, row_product_int, JOIN_MULTIPLY)

// --- row_max_int
ROW_TREE(long long, row_max_int, ampc_max_int)

// --- row_min_int
ROW_TREE(long long, row_min_int, ampc_min_int)

// --- row_sum_i32
ROW_TREE(int, row_sum_i32, JOIN_ADD)

// --- row_max_i32
ROW_TREE(int, row_max_i32, ampc_max_i32)

// --- row_min_i32
ROW_TREE(int, row_min_i32, ampc_min_i32)

// --- column_sum
COLUMN_TREE(real, column_sum, JOIN_ADD)

// --- column_product
COLUMN_TREE(real, column_product, JOIN_MULTIPLY)

// --- column_sum_f64
COLUMN_TREE(double, column_sum_f64, JOIN_ADD)

// --- column_product_f64
COLUMN_TREE(double, column_product_f64, JOIN_MULTIPLY)

// --- column_max
COLUMN_TREE(real, column_max, ampc_max)

// --- column_min
COLUMN_TREE(real, column_min, ampc_min)

// --- column_sum_int
COLUMN_TREE(long long, column_sum_int, JOIN_ADD)

// --- column_product_int
COLUMN_TREE(long long, column_product_int, JOIN_MULTIPLY)

// --- column_max_int
COLUMN_TREE(long long, column_max_int, ampc_max_int)

// --- column_min_int
COLUMN_TREE(long long, column_min_int, ampc_min_int)

// --- row_before_sum
ROW_BEFORE(double, row_before_sum, JOIN_ADD, 0)

// --- row_before_sum_int
ROW_BEFORE(long long, row_before_sum_int, JOIN_ADD, 0)

// --- row_before_sum_i32
ROW_BEFORE(int, row_before_sum_i32, JOIN_ADD, 0)

// --- row_before_product
ROW_BEFORE(double, row_before_product, JOIN_MULTIPLY, 1)

// --- row_before_product_int
ROW_BEFORE(long long, row_before_product_int, JOIN_MULTIPLY, 1)
