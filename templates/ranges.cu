/* Measures the magnitudes of the elements of $x: for each part a histogram of their exponents, and
 * the extremes. compiler/graph/ranges.h lists the fields; other fields are 0. */
__global__ void $name($arguments)
{
  ROW_LOOP(256, int, part, $partials) {
    const $index first = part * ($index)$part;
    const $index rest = $count - first;
    const $index n = rest < 0 ? 0 : rest < $part ? rest : $part;
    int *fields = $out + part * $fields;
    COUNTERS(exponents, 256);
    ROW_PART(int, zeros_part, 0);
    ROW_PART(int, nans_part, 0);
    ROW_PART(int, over_part, 0);
    ROW_PART(int, greatest_part, 0);
    ROW_PART(int, least_part, 0x7f800000);
    ROW_REDUCE(1, 256, $index, c, n, {
      VECTOR_LOCAL(1, int, bits);
      VECTOR_EACH(1, j) {
        const $index i = first + c + j;
        bits[j] = (int)(float_bits((float)$x) & 0x7fffffffu);
        const int finite = bits[j] < 0x7f800000;
        ROW_PUT(zeros_part) += bits[j] == 0;
        ROW_PUT(nans_part) += bits[j] > 0x7f800000;
        ROW_PUT(over_part) += finite && bits[j] >= 0x477ff000; /* 65520 */
        const int known = finite ? bits[j] : 0, small = bits[j] ? bits[j] : 0x7f800000;
        ROW_PUT(greatest_part) = ampc_max_i32(ROW_PUT(greatest_part), known);
        ROW_PUT(least_part) = ampc_min_i32(ROW_PUT(least_part), small);
      }
      VECTOR_EACH(1, j) COUNT(exponents, j, bits[j] >> 23);
    });
    const int zeros = row_sum_i32(zeros_part, 256), nans = row_sum_i32(nans_part, 256);
    const int over = row_sum_i32(over_part, 256);
    const int greatest = row_max_i32(greatest_part, 256), least = row_min_i32(least_part, 256);
    EACH_COUNTER(k, 256) fields[k] = (int)COUNTED(exponents, k);
    ROW_ONCE {
      fields[256] = zeros;
      fields[257] = nans;
      fields[258] = over;
      fields[259] = greatest;
      fields[260] = least;
      for (int k = 261; k < $fields; k++) fields[k] = 0;
    }
  }
}
