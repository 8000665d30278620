"""Recipes: those of the package load and hold the papers' numbers; plans take overrides and refuse unknown names."""

from dataclasses import replace
from itertools import chain, product

import pytest
import torch

import rtx
from rtx.models import MODELS
from rtx.tasks import registry
from rtx.tasks.build import hyperparameter_names
from rtx.tasks.costs import multiply_adds
from rtx.training.recipe import Plan, argument_names, load_recipe, recipe_names


def on_meta(plan: Plan) -> torch.nn.Module:
    """Build the plan's model without memory, whatever its size."""
    with torch.device("meta"):
        return rtx.build(registry.task_by_name(plan.task, **plan.task_arguments), plan.model, **plan.hyperparameters)


def size(plan: Plan) -> int:
    return sum(p.numel() for p in on_meta(plan).parameters())


def taken(plan: Plan) -> set[str]:
    """Return the names of the arguments that a row's model takes."""
    per, recurrent = registry.task_by_name(plan.task).per, plan.hyperparameters.get("recurrent", "lstm")
    return {*hyperparameter_names(plan.model, per, recurrent)}


def build_every_row(name: str, scale: str) -> None:
    recipe = load_recipe(name)
    built = set()
    for row, variant in product(recipe.models, recipe.variants):
        plan = recipe.plan(row, variant, scale=scale)
        key = repr((plan.task, plan.task_arguments, plan.model, plan.hyperparameters))
        if key not in built:
            assert any(p.requires_grad for p in on_meta(plan).parameters())
        built.add(key)


@pytest.mark.usefixtures("tasks_once")
@pytest.mark.parametrize("name", recipe_names())
def test_every_row_and_variant_can_be_built_at_the_quick_scale_without_any_data(name, monkeypatch, tmp_path):
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    build_every_row(name, "quick")


@pytest.mark.slow
@pytest.mark.usefixtures("tasks_once")
@pytest.mark.parametrize("name", recipe_names())
def test_every_row_and_variant_can_be_built_at_the_larger_scales(name, real_data):
    for scale in {"full", *load_recipe(name).scales} - {"quick"}:
        build_every_row(name, scale)


def test_the_names_that_are_read_without_torch_have_every_argument():
    assert argument_names() >= {
        *chain(*map(registry.task_arguments, registry.TASKS)),
        *hyperparameter_names("rnnsearch", "pair"),
    }
    assert argument_names() >= {*chain(*(hyperparameter_names(name, "token") for name in MODELS))}


@pytest.mark.usefixtures("tasks_once")
@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_is_consistent(name):
    """Each scale has distinct rows, uses every `model` entry, and trains with a rate that its sweep tries."""
    recipe = load_recipe(name)
    for scale in ("full", *recipe.scales):
        plans = [recipe.plan(row, scale=scale) for row in recipe.models]
        if scale != "quick":
            anonymous = [replace(plan, row="") for plan in plans]
            assert [plan for i, plan in enumerate(anonymous) if plan in anonymous[:i]] == []
        known = {key for plan in plans for key in taken(plan)}
        told = [*recipe.variants.values(), recipe.scales.get(scale, {})]
        assert {key for one in told for key in one.get("model", {})} <= known
        for variant, row in product(recipe.variants, recipe.models):
            rates = recipe.sweep_values(variant, scale).get("learning_rate")
            rate = recipe.plan(row, variant, scale=scale).settings.learning_rate
            assert rates is None or rate in rates, (variant, scale, row)


STEPS = {"mnist": 784, "nottingham": 256, "ptb-char": 400, "ptb-word": 80}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_rows_of_equal_cost_differ_by_at_most_2_percent(name, real_data):
    recipe = load_recipe(name)
    sizes = {row: size(recipe.plan(row, "same-parameters")) for row in recipe.models}
    goal = size(recipe.plan("r-transformer", "paper"))
    assert all(abs(n / goal - 1) < 0.02 for n in sizes.values()), sizes
    task = registry.task_by_name(recipe.task)

    def cost(row):
        plan = recipe.plan(row, "same-flops")
        # a recurrent model costs the same at each step, and torch counts step by step: 4 steps are enough
        shorter = STEPS[name] // 4 if row in ("rnn", "gru", "lstm") else 1
        return shorter * multiply_adds(task, plan.model, STEPS[name] // shorter, **plan.hyperparameters)

    costs = {row: cost(row) for row in recipe.models}
    assert all(abs(n / costs["r-transformer"] - 1) < 0.02 for n in costs.values()), costs
    for row in recipe.models:
        plan = recipe.plan(row, "same-seconds")
        assert (plan.settings.seconds, plan.settings.stop_after) == (3600, None)
        same, paper = plan.hyperparameters, recipe.plan(row, "paper").hyperparameters
        assert same | {"input_dropout": 0} == paper | {"input_dropout": 0}  # only the R-Transformer and the TCN have it


def test_the_r_transformers_of_equal_budget_have_only_parameters_with_a_gradient():
    sizes = {"nottingham": 1_418_968, "mnist": 203_402}
    assert {name: size(load_recipe(name).plan("r-transformer", "same-parameters")) for name in sizes} == sizes
    plan, task = load_recipe("mnist").plan("r-transformer", "same-parameters"), registry.task_by_name("digits")
    model = rtx.build(task, plan.model, **plan.hyperparameters)
    model(task.split("test")[0].inputs[None, :12]).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_a_variant_is_like_another_except_for_what_it_says():
    recipe = load_recipe("nottingham")
    adam, same = recipe.plan("gru", "adam"), recipe.plan("gru", "same-parameters")
    assert same.settings == adam.settings
    assert (adam.hyperparameters["d_model"], same.hyperparameters["d_model"]) == (256, 471)
    assert recipe.variants["same-flops"]["rows"]["gru"] == {"d_model": 625}  # its rows replace those of the other


def test_overrides_reach_model_and_settings_and_are_named_in_the_variant(recipe):
    plan = recipe.plan("r-transformer", "pre", {"window": 5, "learning_rate": 0.5})
    assert plan.hyperparameters["window"] == 5 and plan.hyperparameters["norm"] == "pre"
    assert plan.settings.learning_rate == 0.5
    assert plan.variant == "pre+learning_rate=0.5+window=5"
    assert recipe.plan("gru", overrides={"slide": True}).variant.endswith("+slide=true")
    assert {recipe.plan("gru", overrides={"learning_rate": rate}).variant for rate in (1, 1.0)} == {
        "plain+learning_rate=1"
    }


def test_a_text_that_is_carried_has_no_context():
    memory, awd = load_recipe("memory"), load_recipe("awd")
    assert memory.plan("xl", "carried", scale="quick").task_arguments["context"] == 0
    assert memory.plan("xl", scale="quick").task_arguments["context"] == 32
    assert awd.plan("awd-lstm", overrides={"context": 0}).task_arguments["context"] == 0
    with pytest.raises(ValueError, match="^context: .*40"):
        awd.plan("awd-lstm", overrides={"context": 40})


def test_another_recurrent_layer_brings_its_own_arguments():
    recipe = load_recipe("multi30k")
    plan = recipe.plan("baseline", overrides={"recurrent": "mc-rnn", "block": 3})
    assert (plan.hyperparameters["recurrent"], plan.hyperparameters["block"]) == ("mc-rnn", 3)
    with pytest.raises(ValueError, match="^--set: 'block'"):
        recipe.plan("mc-rnn-3", overrides={"recurrent": "gru", "block": 3})


def test_a_value_that_a_row_has_anyway_is_no_change(recipe):
    plain = recipe.plan("r-transformer")
    same = {"window": plain.hyperparameters["window"], "learning_rate": plain.settings.learning_rate, "slide": False}
    assert recipe.plan("r-transformer", overrides=same) == plain
    assert recipe.plan("r-transformer", overrides=same | {"window": 5}).variant == f"{plain.variant}+window=5"
    # nor is one that the model or the task has by default
    assert recipe.plan("r-transformer", overrides={"norm": "post", "local_layers": 1}) == plain
    assert recipe.plan("r-transformer", "pre", {"norm": "post"}).variant == "pre+norm=post"
    copy_memory = load_recipe("copy-memory")
    assert copy_memory.plan("gru", overrides={"letters": 10}) == copy_memory.plan("gru")
    assert copy_memory.plan("gru", overrides={"length": 100}).variant == "adam+length=100"


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (("gruu",), "model", "gruu"),
        (("gru", "plan"), "variant", "plan"),
        (("gru", None, {}, "quik"), "scale", "quik"),
        (("gru", None, {"learning_rat": 1}), "--set", "learning_rat"),
        (("gru", None, {"window": 3}), "--set", "window"),
        (("gru", None, {"epochs": 0}), "epochs", "0"),
        (("gru", None, {"batch_size": 1.5}), "batch_size", "1.5"),
        (("gru", None, {"learning_rate": "fast"}), "learning_rate", "fast"),
        (("gru", None, {"learning_rate": float("nan")}), "learning_rate", "nan"),
        (("gru", None, {"learning_rate": True}), "learning_rate", "True"),
        (("gru", None, {"weight_decay": -0.1}), "weight_decay", "-0.1"),
        (("gru", None, {"ar": float("nan")}), "ar", "nan"),
        (("gru", None, {"slide": "no"}), "slide", "no"),
        (("gru", None, {"carry": True}), "carry", "shuffled"),
        (("gru", None, {"optimizer": "adamw"}), "optimizer", "adamw"),
    ],
)
def test_unknown_names_and_bad_values_are_refused(recipe, arguments, name, value):
    with pytest.raises(ValueError, match=f"^{name}: .*{value}"):
        recipe.plan(*arguments)


@pytest.mark.parametrize(
    ("wrong", "message"), [({"epoch": 1}, "plain: 'epoch'"), ({"rows": {"gruu": {"d_model": 4}}}, "^rows: 'gruu'")]
)
def test_a_misspelt_name_in_a_recipe_of_ones_own_is_refused(recipe, wrong, message):
    mine = replace(recipe, variants={"plain": recipe.variants["plain"] | wrong})
    with pytest.raises(ValueError, match=message):
        mine.plan("gru")


def test_task_arguments_come_from_row_variant_scale_and_overrides_in_this_order(recipe):
    rows = {"a": {"model": "gru", "d_model": 4, "task": "add", "task_arguments": {"length": 30, "size": 5}}}
    rows["b"] = rows["a"]
    variants = {"plain": recipe.variants["plain"] | {"task_arguments": {"longest": 60, "length": 40}}}
    scales = {
        "quick": {"task_arguments": {"length": 20}, "rows": {"a": {"d_model": 6}, "b": {"d_model": 7}}},
        "cpu": {"task": "digits"},
    }
    recipe = replace(recipe, models=rows, variants=variants, scales=scales)
    assert recipe.plan("a").task == "add"
    assert recipe.plan("a").task_arguments == {"length": 40, "size": 5, "longest": 60}
    quick = recipe.plan("a", scale="quick", overrides={"size": 7})
    assert quick.task_arguments == {"length": 20, "size": 7, "longest": 60}
    assert quick.variant == "plain+size=7" and quick.hyperparameters == {"d_model": 6}
    # another task has other arguments
    assert (recipe.plan("a", scale="cpu").task, recipe.plan("a", scale="cpu").task_arguments) == ("digits", {})
    assert rows["a"]["task_arguments"] == {"length": 30, "size": 5} and "rows" in scales["quick"]
    with pytest.raises(ValueError, match="^--set: 'lenght'.*'length'"):
        recipe.plan("a", overrides={"lenght": 7})


def test_rows_of_the_memory_recipe_differ_in_memory_alone():
    recipe = load_recipe("memory")
    for scale in ("quick", "cpu", "full"):
        plans = {row: recipe.plan(row, scale=scale).hyperparameters for row in recipe.models}
        assert plans["xl"] | {"memory": 0} == plans["xl-no-memory"] | {"memory": 0} == plans["xl-no-memory"]
        assert plans["xl-long"]["memory"] == 4 * plans["xl"]["memory"] == 4 * plans["xl"]["segment"]
        assert plans["segments"]["segment"] == plans["xl"]["segment"]
    assert recipe.plan("segments", "auxiliary").settings.learning_rate == 5e-4


def test_nottingham_has_the_papers_sizes():
    recipe = load_recipe("nottingham")
    sizes = {"d_model": 160, "layers": 3, "heads": 4, "window": 6, "cell": "gru", "local_layers": 1, "dropout": 0.1}
    assert recipe.plan("r-transformer", "paper").hyperparameters == sizes
    assert recipe.plan("r-transformer", "official").hyperparameters["norm"] == "pre"
    assert recipe.plan("r-transformer", "official").settings.clip is None
    assert recipe.plan("gru", "official").hyperparameters == recipe.plan("gru", "paper").hyperparameters


def test_the_models_of_texts_have_the_papers_sizes():
    expected = {
        ("ptb-word", "r-transformer"): 2.3,
        ("ptb-word", "tcn"): 14.7,
        ("ptb-word", "lstm"): 18.8,
        ("ptb-char", "r-transformer"): 14.2,
        ("awd", "awd-lstm"): 24.2,
    }
    assert {
        (name, row): round(size(load_recipe(name).plan(row, "paper")) / 1e6, 1) for name, row in expected
    } == expected
