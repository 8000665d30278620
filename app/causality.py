# %% [markdown]
# # Causality
#
# An X-ray of a small recurrent network: which outputs does an input move, and is one of them earlier?

# %%
import torch

import rtx
from rtx.lab import explore

_ = torch.manual_seed(0)
explore.xray(rtx.RNN(4, 2), torch.randn(1, 8, 4))

# %% [markdown]
# [All pages](index.ipynb)
