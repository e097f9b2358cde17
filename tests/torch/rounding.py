"""Measures the rounding errors of a case in 16 bits, for test_halves.c. Each op of the case, forward and backward, is
computed in float64. A random number of at most half a last place is added to its result, in place of rounding. This is
repeated many times with other random numbers.

To first order, an error is a sum of these roundings, each times the derivative of the result with respect to the rounded
value. The roundings are independent, so the standard deviation describes the error. An implementation that rounds at these
places, or at fewer, stays within three standard deviations. A single run of another implementation cannot give a bound: its
error is one sample of the same sum, which may be near 0. Where a derivative jumps (relu), a few trials are on the other side
of the jump, so the deviation is computed from the median."""
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

TRIALS = 32
MEDIAN = 0.6745  # of the absolute value of a normal variable with deviation 1


class Trial(TorchDispatchMode):
    """Moves each result of an op by at most half a last place of type `half`. Values that the type represents exactly stay."""
    def __init__(self, half, seed):
        super().__init__()
        self.half, self.eps = half, torch.finfo(half).eps
        self.random = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        is_view = any(out.alias_info is not None for out in func._schema.returns)
        return result if is_view else tree_map(self.moved, result)

    def moved(self, x):
        if not isinstance(x, torch.Tensor) or x.dtype != torch.float64:
            return x
        last_place = torch.ldexp(torch.full_like(x, self.eps), torch.frexp(x)[1] - 1)
        noise = torch.rand(x.shape, generator=self.random, dtype=torch.float64) - 0.5
        half = x.to(self.half).double()
        return torch.where((half == x) | ~torch.isfinite(half), x, x + last_place * noise)


def deviations(truth, compute, half):
    """Returns {tensor: the largest standard deviation of its elements, in units of eps times its largest number}. compute()
    computes the tensors of `truth` again."""
    errors = {key: [] for key in truth}
    for seed in range(TRIALS):
        with Trial(half, seed):
            made = compute()
        for key, value in truth.items():
            errors[key].append((made[key] - value).abs())
    found = {}
    for key, value in truth.items():
        fits = torch.isfinite(value) & (value.abs() <= torch.finfo(half).max)
        most = value[fits].abs().max().item() if fits.any() else 0.0
        if most:
            median = torch.stack(errors[key]).median(0).values[fits].max().item()
            found[key] = median / MEDIAN / most / torch.finfo(half).eps
    return found
