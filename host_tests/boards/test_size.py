"""What `size` measures, and what it calls too large."""

from tools.boards.size import (
    BUDGETS,
    BUILT_BUDGETS,
    Module,
    groups,
    measure_built,
    measure_heap,
    measure_modules,
    over_budget,
)


def test_size_groups_client_journal_and_options_apart():
    group = groups()
    assert {group[name] for name in ("packet", "topic", "protocol", "framing", "client")} == {
        "core"
    }
    assert group["journal"] == group["opening"] == "journal"
    assert group["simple"] == "extra"


def test_modules_are_measured_one_by_one():
    modules = measure_modules()
    assert {module.name for module in modules} == set(groups())
    assert all(module.bytes > 0 for module in modules)


def test_over_budget_names_group_and_figures():
    limit = BUDGETS["core"]
    modules = [Module("client", "core", limit, None), Module("aio", "extra", 10 * limit, None)]
    assert over_budget(modules, {}) == []
    assert over_budget([*modules, Module("packet", "core", 1, None)], {}) == [
        f"core: {limit + 1:,} bytes, budget {limit:,}"
    ]


def test_over_budget_names_what_boards_get():
    limit = BUILT_BUDGETS["core"]
    assert over_budget([], {"core": limit}) == []
    assert over_budget([], {"core": limit + 1}) == [
        f"core as boards get it: {limit + 1:,} bytes, budget {limit:,}"
    ]
    assert 0 < measure_built()["journal"] < measure_built()["core"]


def test_heap_after_import_from_romfs_is_the_smallest_and_that_of_boards_smaller():
    heap = measure_heap()
    assert 0 < heap["ROMFS"] < heap[".mpy"] <= heap[".py"]
    built = measure_heap(is_built=True)
    assert all(0 < built[form] < 0.8 * heap[form] for form in ("ROMFS", ".mpy"))
