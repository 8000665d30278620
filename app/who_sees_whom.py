# %% [markdown]
# # Who sees whom?
#
# Column *s*, row *t*: how much output *t* moves when input *s* does. White is not at all.

# %%
from rtx.lab import explore

explore.reach()

# %% [markdown]
# [All pages](index.ipynb)
