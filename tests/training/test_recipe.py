"""Recipes: what ships loads and holds the papers' numbers; plans take overrides and refuse unknown names."""

import pytest

import rtx
from rtx.tasks import task_by_name
from rtx.training.recipe import Settings, load_recipe, recipe_names


@pytest.mark.parametrize("name", recipe_names())
def test_every_model_and_variant_of_a_shipped_recipe_can_be_built(name):
    recipe = load_recipe(name)
    task = task_by_name(recipe.task)
    for model in recipe.models:
        for variant in recipe.variants:
            plan = recipe.plan(model, variant)
            assert rtx.build(task, plan.model, **plan.hyperparameters).head.out_features == task.outputs


def test_nottingham_is_table_2():
    recipe = load_recipe("nottingham")
    printed = {"r-transformer": 2.37, "transformer": 3.34, "tcn": 3.07, "rnn": 4.05, "gru": 3.46, "lstm": 3.29}
    assert {model: recipe.paper(model) for model in recipe.models} == printed
    sizes = recipe.plan("r-transformer", "paper").hyperparameters
    assert sizes == {
        "d_model": 160,
        "layers": 3,
        "heads": 4,
        "window": 6,
        "cell": "gru",
        "local_layers": 1,
        "dropout": 0.1,
    }
    assert recipe.plan("r-transformer", "official").hyperparameters["norm"] == "pre"
    assert recipe.plan("r-transformer", "official").settings.clip is None
    assert recipe.plan("gru", "official").hyperparameters == recipe.plan("gru", "paper").hyperparameters


def test_overrides_reach_model_and_settings_and_are_named_in_the_variant(recipe):
    plan = recipe.plan("r-transformer", "pre", {"window": 5, "learning_rate": 0.5})
    assert plan.hyperparameters["window"] == 5 and plan.hyperparameters["norm"] == "pre"
    assert plan.settings.learning_rate == 0.5
    assert plan.variant == "pre+learning_rate=0.5+window=5"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gruu",), "model: 'gruu' is unknown, .*did you mean 'gru'"),
        (("gru", "plan"), "variant: 'plan' is unknown, .*did you mean 'plain'"),
        (("gru", None, {"learning_rat": 1}), "key: 'learning_rat' is unknown, .*did you mean 'learning_rate'"),
        (("gru", None, {"window": 3}), "key: 'window' is unknown"),
        (("gru", None, {"epochs": 0}), "epochs: expected a whole number of at least 1, got 0"),
        (("gru", None, {"learning_rate": "fast"}), "learning_rate: expected a number above 0, got 'fast'"),
        (("gru", None, {"learning_rate": float("nan")}), "learning_rate: expected a number above 0, got nan"),
        (("gru", None, {"optimizer": "adamw"}), "optimizer: 'adamw' is unknown, allowed are sgd, adam, nt-asgd; did you"),
    ],
)
def test_unknown_names_and_bad_values_are_refused(recipe, arguments, message):
    with pytest.raises(ValueError, match=message):
        recipe.plan(*arguments)


def test_unknown_recipe_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="recipe: 'notingham' is unknown, .*did you mean 'nottingham'"):
        load_recipe("notingham")


def test_a_batch_size_must_be_whole():
    with pytest.raises(ValueError, match="batch_size: expected a whole number of at least 1, got 1.5"):
        Settings(epochs=1, batch_size=1.5, optimizer="sgd", learning_rate=1.0)
