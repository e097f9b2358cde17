/* Primitives for kernels over columns. columns_cuda.cuh defines the same names for CUDA. */
// --- COLUMNS
#define COLUMNS 64

// --- COLUMN_LOOP
/* Loops over channels of pools: for each o in [0, outer), the channels [first, first + width) of
 * [0, inner). A block takes up to COLUMNS neighbouring channels at once, so that it reads memory in
 * order and vectors run across channels. */
#define COLUMN_LOOP(T, o, first, width, outer, inner)                                              \
  for (T o##_tiles = ((inner) + COLUMNS - 1) / COLUMNS,                                            \
         o##_at = (T)((long long)(outer)*o##_tiles * block_index / block_count),                   \
         o##_end = (T)((long long)(outer)*o##_tiles * (block_index + 1) / block_count), o = 0,     \
         first = 0, width = 0;                                                                     \
       o##_at < o##_end && (o = o##_at / o##_tiles, first = o##_at % o##_tiles * COLUMNS,          \
                           width = (inner)-first < COLUMNS ? (inner)-first : COLUMNS, 1);          \
       o##_at++)

// --- EACH_COLUMN
#define EACH_COLUMN(j, width) for (int j = 0; j < (int)(width); j++)

// --- COLUMN_TILES
/* Loops over the columns [0, inner) of each o in [0, outer), for reductions over an axis that is
 * not the last. A block takes up to COLUMNS neighbouring columns at once, so that it reads memory
 * in order and vectors run across columns. */
#define COLUMN_TILES(n, T, o, column, outer, inner, lanes)                                         \
  for (T o##_tiles = ((inner) + COLUMNS - 1) / COLUMNS,                                            \
         o##_at = (T)((long long)(outer)*o##_tiles * block_index / block_count),                   \
         o##_end = (T)((long long)(outer)*o##_tiles * (block_index + 1) / block_count), o = 0,     \
         column = 0;                                                                               \
       o##_at < o##_end && (o = o##_at / o##_tiles, column = o##_at % o##_tiles * COLUMNS, 1);     \
       o##_at++)                                                                                   \
    for (int vector_width = (int)((inner)-column < COLUMNS ? (inner)-column : COLUMNS);            \
         vector_width; vector_width = 0)

// --- COLUMN_PART
/* Declares a partial result with its initial value for each column. */
#define COLUMN_PART(n, T, name, start)                                                             \
  T name[COLUMNS];                                                                                 \
  VECTOR_EACH(n, name##_at) name[name##_at] = (start)

// --- COLUMN_LOCAL
/* Declares one value for each column. */
#define COLUMN_LOCAL(n, T, name) T name[COLUMNS]

// --- COLUMN_ROWS
/* Loops over rows c in [begin, begin + size) with c < all. */
#define COLUMN_ROWS(T, c, begin, size, all, ...)                                                   \
  for (T c = (begin), c##_end = (begin) + (size) < (all) ? (begin) + (size) : (all); c < c##_end;  \
       c++) {                                                                                      \
    __VA_ARGS__                                                                                    \
  }

// --- COLUMN_ROWS_LONG
/* Loops as COLUMN_ROWS, but in stretches of rows. After each stretch `ends` adds the partial sums
 * to totals and restarts them at 0: an addition to a long sum loses more bits. */
#define COLUMN_ROWS_LONG(T, c, begin, size, all, ends, ...)                                        \
  for (T c = (begin), c##_all = (begin) + (size) < (all) ? (begin) + (size) : (all);               \
       c < c##_all;) {                                                                             \
    for (const T c##_end = c##_all - c < 64 ? c##_all : c + 64; c < c##_end; c++) { __VA_ARGS__ }  \
    ends                                                                                           \
  }

// --- COLUMN_ROWS_CROWDED
#define COLUMN_ROWS_CROWDED(...) COLUMN_ROWS_LONG(__VA_ARGS__)

// --- COLUMN_END
#define COLUMN_END(n, name)                                                                        \
  VECTOR_EACH(n, name##_at)                                                                        \
  {                                                                                                \
    name[name##_at] += name##_part[name##_at];                                                     \
    name##_part[name##_at] = 0;                                                                    \
  }

// --- COLUMN_NEAR
/* Loops over 4 rows spread over the part. A part with fewer rows repeats some of them. */
#define COLUMN_NEAR(T, c, begin, size, all, ...)                                                   \
  for (T c##_at = 0; c##_at < 4; c##_at++) {                                                       \
    const T c = (begin) + ((begin) + (size) < (all) ? (T)(size) : (all) - (begin)) * c##_at / 4;   \
    __VA_ARGS__                                                                                    \
  }

// --- COLUMN_ONCE
/* Executes the statement in one thread for each column. */
#define COLUMN_ONCE

// --- COLUMN_TREE
/* Defines a function that combines the partial results of a block's threads. Here a block has one
 * thread, so it does nothing. */
#define COLUMN_TREE(T, name, JOIN)                                                                 \
  DEVICE void name(T *part, int n, int lanes)                                                      \
  {                                                                                                \
    (void)part, (void)n, (void)lanes;                                                              \
  }
