# %% [markdown]
# # Slide a window
#
# A recurrent network reads the last positions only, once for every position. The sequence is handwriting, a 3, a 1 and
# a 4, read column by column.

# %%
import torch
from sklearn.datasets import load_digits

from rtx.lab import explore

images = torch.tensor(load_digits().images / 16).float()
explore.window(torch.cat(list(images[[3, 1, 4]]), dim=1).T)

# %% [markdown]
# [All pages](index.ipynb)
