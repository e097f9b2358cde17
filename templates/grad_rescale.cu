/* Multiplies the gradients of the earlier bodies of a step by $factor. */
__global__ void $name($arguments)
{
  if (!state->first) {
    const real factor = $factor;
    GRID_VECTORS(4, $index, i, $count) {
      VECTOR_LOAD(4, real, g_at, grad + i);
      VECTOR_EACH(4, j) g_at[j] *= factor;
      VECTOR_STORE(grad + i, g_at);
    }
  }
}
