/* The biased variance of channels from the moments of parts: in each the sum and the squared
 * distances from its own mean; what the means of parts are off the whole mean is added. */
__global__ void $name($arguments)
{
  COLUMN_LOOP(int, o, first, width, 1, $c) {
    real q[COLUMNS];
    EACH_COLUMN(j, width) q[j] = R(0.0);
    for (int part = 0; part < $n_parts; part++) {
      const long long begin = (long long)$rows * part / $n_parts;
      const long long end = (long long)$rows * (part + 1) / $n_parts;
      const real n = (real)(end - begin);
      EACH_COLUMN(j, width) {
        const int at = part * $c + first + j;
        const real off = parts_at[at] / n - mean_at[first + j];
        q[j] += parts_at[$n_parts * $c + at] + n * off * off;
      }
    }
    EACH_COLUMN(j, width) $out[first + j] = q[j] / R($rows.0);
  }
}
