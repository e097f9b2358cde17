/* One block adds the norms of an applied update to the metric of its group: ampc_updates. Of $rows
 * rows of each member, the first $grads are of grad_norm, the others of the update. */
__global__ void $name($arguments)
{
  $lines taken
  if (taken) {
    ROW_LOOP(256, int, row, 1) {
      ROW_PART(real, grad_part, R(0.0));
      ROW_PART(real, weight_part, R(0.0));
      ROW_PART(real, change_part, R(0.0));
      ROW_REDUCE(1, 256, int, c, $partials, {
        VECTOR_EACH(1, j) {
          const int of_grad = (c + j) % $rows < $grads;
          const real first = sums_at[2 * (c + j)], second = sums_at[2 * (c + j) + 1];
          ROW_PUT(grad_part) += of_grad ? first : R(0.0);
          ROW_PUT(weight_part) += of_grad ? R(0.0) : first;
          ROW_PUT(change_part) += of_grad ? R(0.0) : second;
        }
      });
      const real grad = row_sum(grad_part, 256), weight = row_sum(weight_part, 256);
      const real change = row_sum(change_part, 256);
      ROW_ONCE {
        const real value[] = {grad, weight, change, $lr};
        for (int k = 0; k < 4; k++) {
          metric[k].sum += (double)value[k];
          metric[k].count += 1.0;
          metric[k].last = (float)value[k];
        }
      }
    }
  }
}
