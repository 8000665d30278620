# %% [markdown]
# # Encode position
#
# Attention alone does not know where things stand. Here are ways to tell it.

# %%
from rtx.lab import explore

explore.positions()

# %% [markdown]
# [All pages](index.ipynb)
