"""The evidence: finished runs, the tables that they fill, and the papers' claims that they support or contradict."""
