"""The cells of LSTM and GRU that PyTorch has fused for devices, of other operators.

igates and hgates are the products of input and hidden state, [n, 4h] (LSTM) or [n, 3h] (GRU); workspace is what backward needs.
"""

import torch


def _with(gates, bias):
    return gates if bias is None else gates + bias


def lstm_cell(igates, hgates, cx, ibias=None, hbias=None):
    gates = _with(igates, ibias) + _with(hgates, hbias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    grad = grad_hy * o * (1 - tanh * tanh) + (0 if grad_cy is None else grad_cy)
    gates = torch.cat([grad * g * i * (1 - i), grad * cx * f * (1 - f), grad * i * (1 - g * g), grad_hy * tanh * o * (1 - o)], 1)
    return gates, grad * f, gates.sum(0) if has_bias else None


def gru_cell(igates, hgates, hx, ibias=None, hbias=None):
    ir, iz, inew = _with(igates, ibias).chunk(3, 1)
    hr, hz, hnew = _with(hgates, hbias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    new = (inew + r * hnew).tanh()
    return new + z * (hx - new), torch.cat([r, z, new, hx, hnew], 1)


def gru_cell_backward(grad_hy, workspace, has_bias):
    r, z, new, hx, hnew = workspace.chunk(5, 1)
    grad_new = grad_hy * (1 - z) * (1 - new * new)
    grad_z, grad_r = grad_hy * (hx - new) * z * (1 - z), grad_new * hnew * r * (1 - r)
    igates, hgates = torch.cat([grad_r, grad_z, grad_new], 1), torch.cat([grad_r, grad_z, grad_new * r], 1)
    biases = (igates.sum(0), hgates.sum(0)) if has_bias else (None, None)
    return igates, hgates, grad_hy * z, *biases


OPERATORS = {
    "_thnn_fused_lstm_cell": lstm_cell, "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell, "_thnn_fused_gru_cell_backward": gru_cell_backward,
}
