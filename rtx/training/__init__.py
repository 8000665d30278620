"""Training on Lightning: recipes of the papers' tables, runs, and the ledger of their results."""
