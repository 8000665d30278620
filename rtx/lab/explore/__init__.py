"""Explorers: figures with at most three controls, usable in three lines on one's own model or data."""

import rtx.lab.explore.needed  # noqa: F401  # first, as it says what to install

# isort: split
from rtx.lab.explore.attention import attention
from rtx.lab.explore.bach import bach
from rtx.lab.explore.bach_or_machine import bach_or_machine
from rtx.lab.explore.beam import beam
from rtx.lab.explore.channels import channels
from rtx.lab.explore.claims import claims
from rtx.lab.explore.depends import depends
from rtx.lab.explore.digits import digits
from rtx.lab.explore.errata import errata
from rtx.lab.explore.ledger import ledger
from rtx.lab.explore.lookup import lookup
from rtx.lab.explore.page import Page
from rtx.lab.explore.positions import positions
from rtx.lab.explore.race import race
from rtx.lab.explore.sentence import sentence
from rtx.lab.explore.toy import toy
from rtx.lab.explore.training import training
from rtx.lab.explore.window import window
from rtx.lab.explore.xray import xray

__all__ = [
    "Page",
    "attention",
    "bach",
    "bach_or_machine",
    "beam",
    "channels",
    "claims",
    "depends",
    "digits",
    "errata",
    "ledger",
    "lookup",
    "positions",
    "race",
    "sentence",
    "toy",
    "training",
    "window",
    "xray",
]
