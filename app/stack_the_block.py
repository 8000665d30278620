# %% [markdown]
# # Stack the block
#
# LocalRNN, attention, feed-forward: what each of the block's parts lets through.

# %%
from rtx.lab import explore

explore.block()

# %% [markdown]
# [All pages](index.ipynb)
