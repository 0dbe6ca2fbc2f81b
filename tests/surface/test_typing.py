"""What a type checker says of an application: right uses pass, wrong ones are found."""

import re
import subprocess
import sys
from typing import get_args

import pytest

from forge import Priority
from forge.core.job import PriorityName
from forge.core.rules import CATEGORIES, Category
from tests.surface.pages import CHECKOUT

APPLICATION = """
from collections.abc import Iterator

from pydantic import BaseModel

from forge import ActionContext, Forge, JobContext, MutationContext, Priority

app = Forge()


class Mail(BaseModel):
    to: str


class Receipt(BaseModel):
    id: int


@app.job(priority="high", category="notifications")
async def send_mail(ctx: JobContext, mail: Mail) -> Receipt:
    return Receipt(id=1)


@app.job(priority=Priority.LOW)
def resize(ctx: JobContext, input: dict[str, str]) -> int:
    return 1


@app.job
async def tick(ctx: JobContext) -> None: ...


def mails() -> Iterator[Mail]:
    yield Mail(to="ann")


async def right(
    ctx: JobContext, mutation: MutationContext, action: ActionContext, name: str
) -> None:
    await send_mail.dispatch(Mail(to="ann"), priority="critical")
    await app.dispatch(send_mail, Mail(to="ann"), priority=75)
    await app.dispatch(send_mail, {"to": "ann"}, priority=Priority.HIGH)
    await app.dispatch(tick)
    await app.dispatch(name, Mail(to="ann"))
    await app.dispatch_many(send_mail, mails())
    await app.dispatch_many(send_mail, [{"to": "ann"}, {"to": "bob"}])
    await app.dispatch_many(name, [1, 2])
    app.sync.dispatch(send_mail, Mail(to="ann"))
    app.sync.dispatch_many(send_mail, [Mail(to="ann")])
    await mutation.dispatch_job(send_mail, Mail(to="ann"))
    await action.dispatch_job(send_mail, {"to": "ann"})
    receipt: Receipt = await send_mail(ctx, Mail(to="ann"))
    size: int = resize(ctx, {"name": "a.png"})
    await tick(ctx)
    print(receipt, size)
"""

WRONG = [
    ('await send_mail.dispatch(Mail(to="a"), priority="urgent")', "priority"),
    ("await app.dispatch(send_mail, priority=60)", "priority"),
    ('app.sync.dispatch(send_mail, priority="hihg")', "priority"),
    ("await app.dispatch(send_mail, Receipt(id=1))", "dispatch"),
    ('await app.dispatch(send_mail, "ann")', "dispatch"),
    ("app.sync.dispatch(send_mail, Receipt(id=1))", "dispatch"),
    ("await app.dispatch_many(send_mail, [Receipt(id=1)])", "List item|dispatch_many"),
    ("app.sync.dispatch_many(send_mail, [5])", "List item|dispatch_many"),
    ("await mutation.dispatch_job(send_mail, Receipt(id=1))", "dispatch_job"),
    ("await action.dispatch_job(send_mail, 5)", "dispatch_job"),
    ('number: int = await send_mail(ctx, Mail(to="a"))', "Receipt"),
    ("text: str = resize(ctx, {})", "int"),
    ("await resize(ctx, {})", "await"),
    ('app.job(priority="urgent")', "overload|priority"),
    ('app.job(category="mails")', "overload|category"),
    ('app.schedule("x", every="1m", missed="never")', "missed"),
    ('await app.schedules.ensure("x", every="1m", missed="never")', "missed"),
    ('await app.dead_letters.reprocess_many(priority="urgent")', "priority"),
    ('app.classify(OSError, "temporary")', "classify"),
]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Check the application with a wrong function each, and return the errors by line."""
    signature = "(ctx: JobContext, mutation: MutationContext, action: ActionContext) -> None:"
    wrong = [f"async def wrong{n}{signature}\n    {code}\n" for n, (code, _) in enumerate(WRONG)]
    file = tmp_path_factory.mktemp("typing") / "application.py"
    file.write_text(APPLICATION + "".join(wrong))
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", str(file)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(rf"{file.name}:(\d+): error: (.*)", ended.stdout)
    assert found, ended.stdout + ended.stderr
    by_line: dict[int, str] = {}
    for line, message in found:
        by_line[int(line)] = f"{by_line.get(int(line), '')}{message}\n"
    return by_line


def test_right_uses_pass(complaints: dict[int, str]) -> None:
    lines = range(APPLICATION.count("\n") + 1)

    assert {line: complaints[line] for line in lines if line in complaints} == {}


@pytest.mark.parametrize("number", range(len(WRONG)), ids=lambda number: WRONG[number][0])
def test_a_wrong_use_is_found(complaints: dict[int, str], number: int) -> None:
    line = APPLICATION.count("\n") + 2 * number + 2

    assert re.search(WRONG[number][1], complaints.get(line, ""))


def test_the_names_of_priorities_and_categories_are_those_that_exist() -> None:
    assert set(get_args(PriorityName)) == {priority.name.lower() for priority in Priority}
    assert set(get_args(Category)) == set(CATEGORIES)
