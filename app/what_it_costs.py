# %% [markdown]
# # What it costs
#
# Time and memory of the models, as counted, while the sequence grows.

# %%
from rtx.lab import explore

explore.cost()

# %% [markdown]
# [All pages](index.ipynb)
