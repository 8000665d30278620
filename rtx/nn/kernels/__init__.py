"""The fast paths: each the same function as its naive twin, outputs and gradients, and chosen by `dispatch`."""
