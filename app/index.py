# %% [markdown]
# # Explorers
#
# Each page is one picture with controls. What you move, only you see.
#
# - [Who sees whom?](who_sees_whom.ipynb) Which input reaches which output of each model, and how strongly.
# - [Slide a window](slide_a_window.ipynb) A small recurrent network reads a window of handwriting.
# - [Stack the block](stack_the_block.ipynb) What each part of R-Transformer's block adds.
# - [Encode position](encode_position.ipynb) How attention is told where things stand.
# - [What it costs](what_it_costs.ipynb) Multiplications and memory, as a sequence grows.
# - [Causality](causality.ipynb) An X-ray: does a model see the future?
