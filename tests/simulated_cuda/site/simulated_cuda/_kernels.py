"""Operators that torch has for CUDA only, so that there is no CPU kernel to fall back to.

They are written with ordinary tensor operations, from what the operators compute.
"""

import torch

_REGISTRATIONS = []


def install():
    """Register the functions of this module as torch's CUDA kernels."""
    library = torch.library.Library("aten", "IMPL")
    for name, function in _KERNELS.items():
        library.impl(name, function, "CUDA")
    _REGISTRATIONS.append(library)  # they end when the library object does


# ---------------------------------------------------------------- recurrent cells


def lstm_cell(input_gates, hidden_gates, cell, input_bias=None, hidden_bias=None):
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    enter, forget, candidate, output = gates.chunk(4, 1)
    enter, forget, output = enter.sigmoid(), forget.sigmoid(), output.sigmoid()
    candidate = candidate.tanh()
    new_cell = forget * cell + enter * candidate
    saved = torch.cat([enter, forget, candidate, output], 1)
    return output * new_cell.tanh(), new_cell, saved


def lstm_cell_backward(grad_hidden, grad_cell, cell, new_cell, saved, has_bias):
    enter, forget, candidate, output = saved.chunk(4, 1)
    squashed = new_cell.tanh()
    if grad_hidden is None:
        grad_hidden = torch.zeros_like(new_cell)
    grad = grad_hidden * output * (1 - squashed * squashed)
    if grad_cell is not None:
        grad = grad + grad_cell
    grad_gates = torch.cat(
        [
            grad * candidate * enter * (1 - enter),
            grad * cell * forget * (1 - forget),
            grad * enter * (1 - candidate * candidate),
            grad_hidden * squashed * output * (1 - output),
        ],
        1,
    )
    return grad_gates, grad * forget, grad_gates.sum(0) if has_bias else None


def gru_cell(input_gates, hidden_gates, hidden, input_bias=None, hidden_bias=None):
    if input_bias is not None:
        input_gates = input_gates + input_bias
        hidden_gates = hidden_gates + hidden_bias
    reset_in, update_in, new_in = input_gates.chunk(3, 1)
    reset_hidden, update_hidden, new_hidden = hidden_gates.chunk(3, 1)
    reset = (reset_in + reset_hidden).sigmoid()
    update = (update_in + update_hidden).sigmoid()
    new = (new_in + reset * new_hidden).tanh()
    saved = torch.cat([reset, update, new, new_hidden, hidden], 1)
    return new + update * (hidden - new), saved


def gru_cell_backward(grad, saved, has_bias):
    reset, update, new, new_hidden, hidden = saved.chunk(5, 1)
    grad_new = grad * (1 - update) * (1 - new * new)
    grad_update = grad * (hidden - new) * update * (1 - update)
    grad_reset = grad_new * new_hidden * reset * (1 - reset)
    grad_input = torch.cat([grad_reset, grad_update, grad_new], 1)
    grad_hidden_gates = torch.cat([grad_reset, grad_update, grad_new * reset], 1)
    grad_input_bias = grad_input.sum(0) if has_bias else None
    grad_hidden_bias = grad_hidden_gates.sum(0) if has_bias else None
    return grad_input, grad_hidden_gates, grad * update, grad_input_bias, grad_hidden_bias


# ---------------------------------------------------------------- synchronised batch norm


def _all_but_channels(tensor):
    return [dim for dim in range(tensor.dim()) if dim != 1]


def _per_channel(vector, tensor):
    return vector.view([1, -1] + [1] * (tensor.dim() - 2))


def batch_norm_stats(inputs, eps):
    variance, mean = torch.var_mean(inputs.float(), _all_but_channels(inputs), unbiased=False)
    return mean, (variance + eps).rsqrt()


def batch_norm_gather_stats(inputs, means, inverse_stds, running_mean, running_var, momentum, eps, counts):
    counts = counts.view(-1, 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    variances = inverse_stds**-2 - eps + (means - mean) ** 2
    variance = (variances * counts).sum(0) / total
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean * momentum)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(variance * (total / (total - 1)) * momentum)
    return mean, (variance + eps).rsqrt()


def batch_norm_apply(inputs, weight, bias, mean, inverse_std, eps):
    result = (inputs - _per_channel(mean, inputs)) * _per_channel(inverse_std, inputs)
    if weight is not None:
        result = result * _per_channel(weight, inputs)
    if bias is not None:
        result = result + _per_channel(bias, inputs)
    return result.to(inputs.dtype)


def batch_norm_backward_sums(grad, inputs, mean, inverse_std, weight, need_input, need_weight, need_bias):
    dims = _all_but_channels(inputs)
    sum_grad = grad.sum(dims)
    sum_grad_centred = (grad * (inputs - _per_channel(mean, inputs))).sum(dims)
    grad_weight = sum_grad_centred * inverse_std if need_weight else None
    return sum_grad, sum_grad_centred, grad_weight, sum_grad.clone() if need_bias else None


def batch_norm_backward(grad, inputs, mean, inverse_std, weight, sum_grad, sum_centred, counts):
    total = counts.sum()
    centred = inputs - _per_channel(mean, inputs)
    slope = _per_channel(inverse_std**2 * sum_centred / total, inputs)
    grad = grad - _per_channel(sum_grad / total, inputs) - centred * slope
    scale = inverse_std if weight is None else inverse_std * weight
    return grad * _per_channel(scale, inputs)


_KERNELS = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
    "batch_norm_stats": batch_norm_stats,
    "batch_norm_gather_stats_with_counts": batch_norm_gather_stats,
    "batch_norm_elemt": batch_norm_apply,
    "batch_norm_backward_reduce": batch_norm_backward_sums,
    "batch_norm_backward_elemt": batch_norm_backward,
}
