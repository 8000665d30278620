"""What the notebooks use: pictures, traces of a model at work, explorers with sliders, checks of exercises."""
