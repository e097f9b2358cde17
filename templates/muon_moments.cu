/* Note [muon]: the first kernel of Muon. It updates the moments of a group and clears the slots of the gradients. The
 * result is the change of the weights before it is orthogonalized, part after part, or 0 if this step does not update
 * the weights. Padding after a parameter is not part of any matrix. */
__global__ void $name($arguments)
{
  $lines parameters
  $constants
  $lines factor
  $lines taken
  if (taken) {
    ROW_LOOP(256, $index, part, $parts) {
      $lines part
      ROW_EACH(4, 256, $index, c, (n + 3) / 4 * 4, {
        const $index i = begin + c;
        $lines draws
        VECTOR_LOAD(4, real, g_at, grad + i);
        $lines moments
        VECTOR_ROOM(4, real, change_to, $out + part * $part + c);
        VECTOR_EACH(4, j) {
          $lines gradient
          $formula
          change_to[j] = change;
          g_at[j] = R(0.0);
        }
        VECTOR_STORE($out + part * $part + c, change_to);
        VECTOR_STORE(grad + i, g_at);
        $lines stores
      });
    }
  } else {
    GRID_VECTORS(4, $index, i, $parts * ($index)$part) {
      VECTOR_ROOM(4, real, change_to, $out + i);
      VECTOR_EACH(4, j) change_to[j] = R(0.0);
      VECTOR_STORE($out + i, change_to);
    }
  }
}
