"""Every explorer, by the name of its page, as a cell of a notebook; with small models, so that it is quick."""

SETUP = """\
import time, torch, rtx
from rtx.lab import explore
from rtx.models import rnnsearch
from rtx.tasks import task_by_name
from rtx.tasks.vocabulary import vocabulary

torch.manual_seed(0)
torch.set_num_threads(1)
dates = task_by_name("dates", size=300, vocabulary=120)
translator = rnnsearch(dates.inputs, dates.outputs, d_model=8, layers=1, bidirectional=False)
letters = vocabulary("characters", list("abcdefgh"))
text = rtx.LanguageModel(rtx.RNN(8), letters.size)
torch.nn.init.normal_(text.embedding.weight, std=3)
reader = rtx.build("digits", "gru", d_model=8, layers=1)
musician = rtx.build("chorales", "r-transformer", d_model=8, layers=1, heads=2, window=3)
tune = torch.zeros(9, 88)
tune[::2, 40] = 1

def briefly(lab):
    lab.press("train")
    while len([*lab.data["controls"].values()][-1]["values"]) < 4:
        assert lab.data["state"] == "running", lab.data["status"]
        time.sleep(0.05)
    lab.press("stop")
    return lab"""
EXPLORERS = {
    "attention": "explore.attention(rtx.RTransformer(8, 2, 2, 3), torch.randn(1, 9, 8))",
    "bach": "explore.bach(tune, musician, frame_seconds=0.01)",
    "bach_or_machine": "explore.bach_or_machine([(tune, 1 - tune)] * 2, frame_seconds=0.01)",
    "beam": "explore.beam(translator, dates.texts, '8. März 1987')",
    "channels": "explore.channels()",
    "claims": "explore.claims()",
    "depends": "explore.depends()",
    "digits": "explore.digits(reader, task_by_name('digits').split('test')[:4])",
    "errata": "explore.errata()",
    "ledger": "explore.ledger()",
    "lookup": "explore.lookup()",
    "positions": "explore.positions()",
    "race": "briefly(explore.race(seconds=1.0, seeds=1, turns=20))",
    "sentence": "explore.sentence()",
    "toy": "briefly(explore.toy())",
    "training": "briefly(explore.training('digits', 'gru', d_model=8, layers=1))",
    "window": "explore.window(torch.randn(9, 5))",
    "xray": "explore.xray(rtx.RNN(4, 2), torch.randn(1, 8, 4))",
}
