/* The parts of a sum over channels, Note [channels] in ops.def, joined in order; divided by $rows. */
__global__ void $name($arguments)
{
  COLUMN_LOOP(int, o, first, width, 1, $c) {
    real s[COLUMNS];
    EACH_COLUMN(j, width) s[j] = R(0.0);
    for (int part = 0; part < $n_parts; part++) {
      EACH_COLUMN(j, width) s[j] += parts_at[($value * $n_parts + part) * $c + first + j];
    }
    EACH_COLUMN(j, width) $out[first + j] = s[j] / R($rows.0);
  }
}
