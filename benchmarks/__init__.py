"""Speed and memory of rtx beside its peers, as ratios within one run: see README.md.

make bench
"""
