"""Explorers: figures with at most three controls, usable in three lines on one's own model or data."""

import rtx.lab.explore.needed  # noqa: F401  # first, as it says what to install

# isort: split
from rtx.lab.explore.attention import attention as attention
from rtx.lab.explore.bach import bach as bach
from rtx.lab.explore.bach_or_machine import bach_or_machine as bach_or_machine
from rtx.lab.explore.beam import beam as beam
from rtx.lab.explore.channels import channels as channels
from rtx.lab.explore.claims import claims as claims
from rtx.lab.explore.depends import depends as depends
from rtx.lab.explore.digits import digits as digits
from rtx.lab.explore.errata import errata as errata
from rtx.lab.explore.ledger import ledger as ledger
from rtx.lab.explore.lookup import lookup as lookup
from rtx.lab.explore.page import Page as Page
from rtx.lab.explore.positions import positions as positions
from rtx.lab.explore.race import race as race
from rtx.lab.explore.sentence import sentence as sentence
from rtx.lab.explore.toy import toy as toy
from rtx.lab.explore.training import training as training
from rtx.lab.explore.window import window as window
from rtx.lab.explore.xray import xray as xray
