"""Recipes: what ships loads and holds the papers' numbers; plans take overrides and refuse unknown names."""

from dataclasses import replace

import pytest
import torch

import rtx
from rtx.models import CARDS
from rtx.tasks import task_by_name
from rtx.tasks.build import hyperparameter_names
from rtx.tasks.costs import multiply_adds
from rtx.training.recipe import Plan, load_recipe, recipe_names
from rtx.training.settings import Settings


def taken(plan: Plan) -> set[str]:
    """The names of the arguments that a row's model takes."""
    return {
        *hyperparameter_names(plan.model, task_by_name(plan.task).per, plan.hyperparameters.get("recurrent", "lstm"))
    }


def build_every_row(name: str, scale: str) -> None:
    recipe = load_recipe(name)
    for row in recipe.models:
        for variant in recipe.variants:
            plan = recipe.plan(row, variant, scale=scale)
            task = task_by_name(plan.task, **plan.task_arguments)
            with torch.device("meta"):  # no memory, whatever the size
                model = rtx.build(task, plan.model, **plan.hyperparameters)
            assert any(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("name", recipe_names())
def test_every_row_and_variant_can_be_built_at_the_quick_scale_without_any_data(name, monkeypatch, tmp_path):
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    build_every_row(name, "quick")


@pytest.mark.slow
@pytest.mark.parametrize("name", recipe_names())
def test_every_row_and_variant_can_be_built_at_the_larger_scales(name, real_data):
    for scale in {"full", *load_recipe(name).scales} - {"quick"}:
        build_every_row(name, scale)


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_has_a_quick_scale_on_a_task_with_a_trivial_answer(name):
    recipe = load_recipe(name)
    for row in recipe.models:
        plan = recipe.plan(row, scale="quick")
        assert task_by_name(plan.task, **plan.task_arguments).baseline is not None


@pytest.mark.parametrize("scale", ["full", "cpu"])
@pytest.mark.parametrize("name", recipe_names())
def test_no_two_rows_are_the_same_experiment(name, scale):
    """A scale that gave all rows one width made the wider baseline the baseline."""
    recipe = load_recipe(name)
    plans = [replace(recipe.plan(row, scale=scale), row="") for row in recipe.models]
    assert [plan for i, plan in enumerate(plans) if plan in plans[:i]] == []


@pytest.mark.parametrize("name", ["nottingham", "mnist"])
def test_models_of_equal_budget_have_as_many_parameters_within_2_percent(name):
    recipe = load_recipe(name)
    counts = {}
    for row in recipe.models:
        plan = recipe.plan(row, "same-parameters")
        with torch.device("meta"):
            model = rtx.build(recipe.task, plan.model, **plan.hyperparameters)
        counts[row] = sum(p.numel() for p in model.parameters())
    assert all(abs(n / counts["r-transformer"] - 1) < 0.02 for n in counts.values()), counts
    assert counts["r-transformer"] == {"nottingham": 1_418_968, "mnist": 203_402}[name]


STEPS = {"mnist": 784, "nottingham": 256, "ptb-char": 400, "ptb-word": 80}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_models_of_equal_cost_have_as_many_multiply_adds_within_2_percent(name, real_data):
    recipe = load_recipe(name)
    task = task_by_name(recipe.task)

    def cost(row):
        plan = recipe.plan(row, "same-flops")
        # a recurrent model costs the same at each step, and torch counts step by step
        shorter = 8 if row in ("rnn", "gru", "lstm") else 1
        return shorter * multiply_adds(task, plan.model, STEPS[name] // shorter, **plan.hyperparameters)

    counts = {row: cost(row) for row in recipe.models}
    assert all(abs(n / counts["r-transformer"] - 1) < 0.02 for n in counts.values()), counts


@pytest.mark.parametrize("name", STEPS)
def test_models_of_equal_time_keep_the_papers_sizes(name):
    recipe = load_recipe(name)
    for row in recipe.models:
        plan = recipe.plan(row, "same-seconds")
        assert (plan.settings.seconds, plan.settings.stop_after) == (3600, None)
        assert plan.hyperparameters == recipe.plan(row, "paper").hyperparameters


def test_a_variant_is_like_another_but_for_what_it_says():
    recipe = load_recipe("nottingham")
    adam, same = recipe.plan("gru", "adam"), recipe.plan("gru", "same-parameters")
    assert same.settings == adam.settings and (adam.hyperparameters["d_model"], same.hyperparameters["d_model"]) == (
        256,
        471,
    )
    # its rows are its own, not those of the one it is like
    assert recipe.variants["same-flops"]["rows"]["gru"] == {"d_model": 625}


def test_the_counts_of_equal_budget_are_of_live_parameters():
    plan = load_recipe("mnist").plan("r-transformer", "same-parameters")
    task = task_by_name("digits")
    model = rtx.build(task, plan.model, **plan.hyperparameters)
    model(task.split("test")[0].inputs[None, :12]).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(
    ("operation", "attention", "mean"),
    [
        ("add", [1, 1, 1, 1, 2, 3], [1, 1, 1, 2, 8, 17]),
        ("multiply", [1, 2, 4, 2, 15, 6], [2, 2, 8, 33, 0.898, 0.808]),
    ],
)
def test_feed_forward_attention_is_table_1(operation, attention, mean):
    recipe = load_recipe(f"ffa-{operation}")
    lengths = (50, 100, 500, 1000, 5000, 10000)
    for pooling, printed in (("attention", attention), ("mean", mean)):
        for length, number in zip(lengths, printed, strict=True):
            row = f"{pooling}-{length}"
            expected = (1.0, number) if isinstance(number, int) else (number, 100)
            assert (recipe.paper(row), recipe.paper_epochs(row)) == expected
            plan = recipe.plan(row)
            assert plan.task_arguments == {"length": length} and plan.hyperparameters["pooling"] == pooling
            assert (plan.model, plan.settings.batch_size) == ("feed-forward-attention", 100)
    assert recipe.sweep == {"learning_rate": [3e-4, 1e-3, 3e-3, 1e-2]}


def test_a_variant_of_another_task_leaves_out_the_arguments_of_the_rows_own():
    recipe = load_recipe("ffa-add")
    other = replace(recipe, variants=recipe.variants | {"other": recipe.variants["paper"] | {"task": "digits"}})
    plan = other.plan("mean-50", "other")
    assert (plan.task, plan.task_arguments) == ("digits", {})


def test_variable_lengths_are_those_of_section_2_3():
    recipe = load_recipe("ffa-variable")
    printed = {"add-attention": 0.999, "add-mean": 0.774, "multiply-attention": 0.994, "multiply-mean": 0.555}
    assert {row: recipe.paper(row) for row in recipe.models} == printed
    for row in recipe.models:
        plan = recipe.plan(row)
        assert plan.task == row.split("-")[0] and plan.task_arguments == {"length": 50, "longest": 10_000}


def test_bai_et_al_print_what_the_recipes_say():
    printed = {
        "jsb": {"tcn": 8.10, "rnn": 8.91, "gru": 8.43, "lstm": 8.45},
        "permuted-mnist": {"tcn": 97.2, "rnn": 25.3, "gru": 87.3, "lstm": 85.7},
        "piano": {},
        "muse": {},
    }
    for name, numbers in printed.items():
        recipe = load_recipe(name)
        assert {row: p for row in recipe.models if (p := recipe.paper(row)) is not None} == numbers


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


@pytest.mark.parametrize("name", ["translation", "multi30k", "headlines"])
def test_the_recipes_order_is_the_cards(name):
    assert load_recipe(name).models["ho-rnn"]["order"] == CARDS["ho-rnn"].sizes["order"]


def test_overrides_reach_model_and_settings_and_are_named_in_the_variant(recipe):
    plan = recipe.plan("r-transformer", "pre", {"window": 5, "learning_rate": 0.5})
    assert plan.hyperparameters["window"] == 5 and plan.hyperparameters["norm"] == "pre"
    assert plan.settings.learning_rate == 0.5
    assert plan.variant == "pre+learning_rate=0.5+window=5"
    assert recipe.plan("gru", overrides={"slide": True}).variant.endswith("+slide=true")


def test_a_carried_text_has_no_context_to_set():
    awd = load_recipe("awd")
    assert awd.plan("awd-lstm", overrides={"context": 0}).task_arguments["context"] == 0
    with pytest.raises(ValueError, match="context: expected 0 where a text is carried, got 40"):
        awd.plan("awd-lstm", overrides={"context": 40})


def test_another_recurrent_layer_brings_its_own_arguments():
    recipe = load_recipe("multi30k")
    plan = recipe.plan("baseline", overrides={"recurrent": "mc-rnn", "block": 3})
    assert (plan.hyperparameters["recurrent"], plan.hyperparameters["block"]) == ("mc-rnn", 3)
    with pytest.raises(ValueError, match="key: 'block' is unknown"):
        recipe.plan("mc-rnn-3", overrides={"recurrent": "gru", "block": 3})


def test_what_a_row_has_anyway_is_no_change(recipe):
    plain = recipe.plan("r-transformer")
    same = {"window": plain.hyperparameters["window"], "learning_rate": plain.settings.learning_rate, "slide": False}
    assert recipe.plan("r-transformer", overrides=same) == plain
    assert recipe.plan("r-transformer", overrides=same | {"window": 5}).variant == f"{plain.variant}+window=5"


def test_nor_is_what_a_model_or_a_task_has_by_default(recipe):
    assert recipe.plan("r-transformer", overrides={"norm": "post", "local_layers": 1}) == recipe.plan("r-transformer")
    assert recipe.plan("r-transformer", "pre", {"norm": "post"}).variant == "pre+norm=post"
    copy_memory = load_recipe("copy-memory")
    assert copy_memory.plan("gru", overrides={"letters": 10}) == copy_memory.plan("gru")
    assert copy_memory.plan("gru", overrides={"length": 100}).variant == "adam+length=100"


def test_a_flag_is_no_number(recipe):
    assert recipe.plan("gru", overrides={"slide": False}) == recipe.plan("gru")
    with pytest.raises(ValueError, match="slide: expected true or false, got 0"):
        recipe.plan("gru", overrides={"slide": 0})


def test_a_number_has_one_name(recipe):
    found = {recipe.plan("gru", overrides={"learning_rate": rate}).variant for rate in (1, 1.0)}
    assert found == {"plain+learning_rate=1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gruu",), "model: 'gruu' is unknown, .*did you mean 'gru'"),
        (("gru", "plan"), "variant: 'plan' is unknown, .*did you mean 'plain'"),
        (("gru", None, {"learning_rat": 1}), "key: 'learning_rat' is unknown, .*did you mean 'learning_rate'"),
        (("gru", None, {"window": 3}), "key: 'window' is unknown"),
        (("gru", None, {"epochs": 0}), "epochs: expected a whole number of at least 1, got 0"),
        (("gru", None, {"learning_rate": "fast"}), "learning_rate: expected a finite number above 0, got 'fast'"),
        (("gru", None, {"learning_rate": float("nan")}), "learning_rate: expected a finite number above 0, got nan"),
        (("gru", None, {"learning_rate": float("inf")}), "learning_rate: expected a finite number above 0, got inf"),
        (("gru", None, {"anneal": float("inf")}), "anneal: expected a finite number above 0, got inf"),
        (("gru", None, {"learning_rate": True}), "learning_rate: expected a finite number above 0, got True"),
        (("gru", None, {"weight_decay": -0.1}), "weight_decay: expected a finite number of at least 0, got -0.1"),
        (("gru", None, {"ar": float("nan")}), "ar: expected a finite number of at least 0, got nan"),
        (("gru", None, {"tar": "much"}), "tar: expected a finite number of at least 0, got 'much'"),
        (("gru", None, {"slide": "no"}), "slide: expected true or false, got 'no'"),
        (("gru", None, {"carry": 1, "batching": "columns"}), "carry: expected true or false, got 1"),
        (
            ("gru", None, {"optimizer": "adamw"}),
            "optimizer: 'adamw' is unknown, allowed are sgd, adam, nt-asgd; did you",
        ),
    ],
)
def test_unknown_names_and_bad_values_are_refused(recipe, arguments, message):
    with pytest.raises(ValueError, match=message):
        recipe.plan(*arguments)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epoch": 1}, "a setting of the variant plain: 'epoch' is unknown.*did you mean 'epochs'"),
        ({"rows": {"gruu": {"d_model": 4}}}, "rows: 'gruu' is unknown.*did you mean 'gru'"),
    ],
)
def test_a_misspelt_name_in_a_recipe_of_ones_own_is_refused(recipe, wrong, message):
    mine = replace(recipe, variants={"plain": recipe.variants["plain"] | wrong})
    with pytest.raises(ValueError, match=message):
        mine.plan("gru")


def test_a_setting_that_a_recipe_of_ones_own_lacks_is_named(recipe):
    known = {key: value for key, value in recipe.variants["plain"].items() if key != "epochs"}
    with pytest.raises(ValueError, match="variant plain: expected a value of epochs, got none"):
        replace(recipe, variants={"plain": known}).plan("gru")


@pytest.mark.parametrize("name", recipe_names())
def test_what_a_variant_or_a_scale_gives_every_model_some_model_takes(name):
    recipe = load_recipe(name)
    for scale in ("full", *recipe.scales):
        plans = [recipe.plan(row, scale=scale) for row in recipe.models]
        known = {key for plan in plans for key in taken(plan)}
        told = [*recipe.variants.values(), recipe.scales.get(scale, {})]
        assert {key for one in told for key in one.get("model", {})} <= known


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
    assert (recipe.plan("a", scale="cpu").task, recipe.plan("a", scale="cpu").task_arguments) == ("digits", {})
    assert rows["a"]["task_arguments"] == {"length": 30, "size": 5} and "rows" in scales["quick"]
    with pytest.raises(ValueError, match="key: 'lenght' is unknown, .*did you mean 'length'"):
        recipe.plan("a", overrides={"lenght": 7})


def test_an_unknown_argument_of_a_task_is_refused():
    assert len(task_by_name("add", size=3).split("train")) == 3
    with pytest.raises(ValueError, match="argument of add: 'lenght' is unknown, .*did you mean 'length'"):
        task_by_name("add", lenght=30)
    with pytest.raises(ValueError, match="argument of permuted-digits: 'seed' is unknown, allowed are none$"):
        task_by_name("permuted-digits", seed=1)
    with pytest.raises(ValueError, match="argument of permuted-mnist: 'permuted' is unknown"):
        task_by_name("permuted-mnist", permuted=False)


def test_unknown_recipe_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="recipe: 'notingham' is unknown, .*did you mean 'nottingham'"):
        load_recipe("notingham")


def test_a_batch_size_must_be_whole():
    with pytest.raises(ValueError, match="batch_size: expected a whole number of at least 1, got 1.5"):
        Settings(epochs=1, batch_size=1.5, optimizer="sgd", learning_rate=1.0)
