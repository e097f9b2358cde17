/* How large the elements of $x are: of each part how many have which exponent, and the extremes among
 * them. The fields are those of compiler/graph/ranges.h; those not named are 0. */
__global__ void $name($arguments)
{
  ROW_LOOP(256, int, part, $partials) {
    const $index first = part * ($index)$part;
    const $index rest = $count - first;
    const $index n = rest < 0 ? 0 : rest < $part ? rest : $part;
    int *fields = $out + part * $fields;
    COUNTERS(exponents, 256);
    ROW_PART(long long, zeros_part, 0);
    ROW_PART(long long, nans_part, 0);
    ROW_PART(long long, over_part, 0);
    ROW_PART(long long, greatest_part, 0);
    ROW_PART(long long, least_part, 0x7f800000);
    ROW_REDUCE(1, 256, $index, c, n, {
      VECTOR_LOCAL(1, int, bits);
      VECTOR_EACH(1, j) {
        const $index i = first + c + j;
        bits[j] = (int)(float_bits((float)$x) & 0x7fffffffu);
        const int finite = bits[j] < 0x7f800000;
        ROW_PUT(zeros_part) += bits[j] == 0;
        ROW_PUT(nans_part) += bits[j] > 0x7f800000;
        ROW_PUT(over_part) += finite && bits[j] >= 0x477ff000; /* 65520 */
        ROW_PUT(greatest_part) = ampc_max_int(ROW_PUT(greatest_part), finite ? bits[j] : 0);
        ROW_PUT(least_part) = ampc_min_int(ROW_PUT(least_part), bits[j] && finite ? bits[j] : 0x7f800000);
      }
      VECTOR_EACH(1, j) COUNT(exponents, j, bits[j] >> 23);
    });
    const long long zeros = row_sum_int(zeros_part, 256), nans = row_sum_int(nans_part, 256);
    const long long over = row_sum_int(over_part, 256);
    const long long greatest = row_max_int(greatest_part, 256), least = row_min_int(least_part, 256);
    EACH_COUNTER(k, 256) fields[k] = (int)COUNTED(exponents, k);
    ROW_ONCE {
      fields[256] = (int)zeros;
      fields[257] = (int)nans;
      fields[258] = (int)over;
      fields[259] = (int)greatest;
      fields[260] = (int)least;
      for (int k = 261; k < $fields; k++) fields[k] = 0;
    }
  }
}
