"""Kernels in C++ for the CPU: each file beside its wrapper, made by the user's own compiler when first needed."""
