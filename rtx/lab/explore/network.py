"""What network.js needs to know of a model, to compute with it in the page."""

from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from rtx.models import RNN, LanguageModel, RTransformer, Transformer
from rtx.nn import FeedForward, LocalRNN, MultiHeadAttention, RelativeAttention, Residual
from rtx.nn.convolution import LocalConv


def described(model: nn.Module) -> dict[str, Any]:
    """Return the layers of a model, from its input on: kind, name, and where their weights are.

    Raises:
        ValueError: if the backbone is no RNN, GRU, Transformer or R-Transformer, or has an LSTM.
    """
    backbone = getattr(model, "backbone", None)
    if isinstance(backbone, RNN):
        of = {"kind": "rnn", "cell": backbone.network.mode.removesuffix("_TANH").lower(), "prefix": "backbone.network."}
        layers = [{**of, "name": f"network.{i}", "layer": i} for i in range(backbone.network.num_layers)]
    elif isinstance(backbone, RTransformer | Transformer):
        layers = [layer_of(name, part) for name, part in model.named_modules() if isinstance(part, Residual)]
    else:
        raise ValueError(f"model: expected an RNN, a Transformer or an R-Transformer, got {type(backbone).__name__}")
    if any(layer.get("cell") == "lstm" for layer in layers):
        raise ValueError("model: expected cells rnn or gru, got an LSTM, which no explorer computes")
    position = getattr(backbone, "position", "none")
    if position == "scaled-sinusoidal":
        raise ValueError(f"model: expected positions that an explorer computes, got {position}")
    added = position if position in ("learned", "sinusoidal") else "none"  # to the input; others are in the attention
    return {"layers": layers, "width": backbone.d_model, "positions": added}


def weight_bytes(model: nn.Module) -> bytes:
    """Return the weights as a safetensors file, in 16 bits where no value changes."""
    weights = {name: value.detach().cpu().float().contiguous() for name, value in model.state_dict().items()}
    if isinstance(model, LanguageModel) and model.tied:
        del weights["decoder.weight"]  # the embedding's
    return save({name: half if torch.equal((half := w.half()).float(), w) else w for name, w in weights.items()})


def layer_of(name: str, residual: Residual) -> dict[str, Any]:
    """Return what network.js needs to know of a sublayer with its residual connection."""
    part, found = residual.sublayer, {"name": name, "prefix": f"{name}.sublayer.", "norm": residual.order}
    if isinstance(part, LocalRNN):
        return {"kind": "local", "cell": part.cell, "window": part.window, **found}
    if isinstance(part, LocalConv):
        return {"kind": "convolution", "window": part.kernel, **found}
    if type(part) in (MultiHeadAttention, RelativeAttention):
        return {"kind": "attention", "heads": part.heads, **found}
    if isinstance(part, FeedForward):
        return {"kind": "feed-forward", **found}
    raise ValueError(f"model: expected LocalRNN, convolution, attention or feed-forward, got {type(part).__name__}")
