"""Results are decoded as the handler declares them; by name and by id they are plain JSON."""

import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field

import forge
from forge import Forge, JobContext, UndecodablePayload
from tests.apps import MakeApp, Work

MOMENT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
ID = UUID("0198a0c8-7a52-7cc3-9a7e-000000000001")


class Receipt(BaseModel):
    id: int
    paid_at: datetime
    total: Decimal = Decimal("9.90")
    note: str | None = Field(default=None, alias="Note")


class StrictReceipt(BaseModel):
    model_config = ConfigDict(strict=True)

    id: UUID
    paid_at: datetime


@dataclass
class Size:
    width: int
    measured_at: datetime


class Report(TypedDict):
    rows: int
    receipts: list[Receipt]


class Point(NamedTuple):
    x: int
    y: int


RECEIPT = Receipt(id=7, paid_at=MOMENT, Note="thanks")


@forge.job(isolation="process")
def receipt_from_a_child(ctx: JobContext) -> Receipt:
    return Receipt(id=os.getpid(), paid_at=MOMENT)


@pytest.mark.parametrize(
    ("declared", "returned"),
    [
        (Receipt, RECEIPT),
        (StrictReceipt, StrictReceipt(id=ID, paid_at=MOMENT)),
        (Size, Size(3, MOMENT)),
        (Report, {"rows": 1, "receipts": [RECEIPT]}),
        (Point, Point(1, 2)),
        (list[Receipt], [RECEIPT, RECEIPT]),
        (Receipt | None, None),
        (Receipt | None, RECEIPT),
        (tuple[int, datetime], (1, MOMENT)),
        (timedelta, timedelta(minutes=5)),
        (int, 5),
        (dict[str, Any], {"a": [1, None]}),
        (Any, [1, {"b": 2}]),
        (None, None),
    ],
)
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "thread"])
async def test_a_result_comes_back_as_its_handler_declares_it(
    app: Forge, work: Work, declared: Any, returned: Any, is_async: bool
) -> None:
    definition = app.job(name="give")(_handler(declared, returned, is_async=is_async))
    await work(app)

    result = await (await definition.dispatch()).result(10)

    assert result == returned
    assert type(result) is type(returned)


async def test_a_result_of_a_child_process_is_decoded(app: Forge, work: Work) -> None:
    app.register(receipt_from_a_child)
    await work(app)

    result = await (await app.dispatch(receipt_from_a_child)).result(30)

    assert isinstance(result, Receipt)
    assert (result.id != os.getpid(), result.paid_at) == (True, MOMENT)


async def test_by_name_and_by_id_a_result_is_plain_json(make_app: MakeApp, work: Work) -> None:
    app, elsewhere = make_app(), make_app()
    pay = app.job(name="pay")(_handler(Receipt, RECEIPT))
    await work(app)
    plain = {"id": 7, "paid_at": "2026-03-29T01:30:00Z", "total": "9.90", "Note": "thanks"}

    handle = await pay.dispatch()

    assert await handle.result(10) == RECEIPT
    assert await app.handle(handle.id).result(10) == plain
    assert await (await app.dispatch("pay")).result(10) == plain
    assert await (await elsewhere.dispatch("pay")).result(10) == plain
    assert (await handle.get()).output == plain


async def test_a_result_is_decoded_without_a_loop(app: Forge, work: Work) -> None:
    pay = app.job(name="pay")(_handler(Receipt, RECEIPT))
    await work(app)

    handle = await asyncio.to_thread(app.sync.dispatch, pay)

    assert await asyncio.to_thread(handle.result, 10) == RECEIPT
    by_id = app.sync.handle(handle.id)
    assert (await asyncio.to_thread(by_id.result, 10))["id"] == 7


async def test_a_stored_output_that_no_longer_fits_says_where_and_what_to_do(
    app: Forge, work: Work, psql: Any
) -> None:
    pay = app.job(name="pay")(_handler(Receipt, RECEIPT))
    handle = await pay.dispatch()
    await work(app)
    await handle.result(10)
    await psql.execute(
        'update forge_jobs set output = \'{"id": "seven-777"}\' where id = $1', handle.id
    )

    with pytest.raises(UndecodablePayload) as refused:
        await handle.result(10)

    said = str(refused.value)
    assert said.startswith(f"the output of pay {handle.id} does not fit: $.id: ")
    assert "$.paid_at: Field required; handle.get() returns it as stored" in said
    assert "seven-777" not in said
    assert [fault.path for fault in refused.value.faults] == ["$.id", "$.paid_at"]
    assert (await handle.get()).output == {"id": "seven-777"}
    assert await app.handle(handle.id).result(10) == {"id": "seven-777"}


async def test_a_handler_that_returned_another_type_completes_and_its_result_is_refused(
    app: Forge, work: Work
) -> None:
    give = app.job(name="give", max_attempts=1)(_handler(int, "not a number"))
    await work(app)
    handle = await give.dispatch()

    with pytest.raises(UndecodablePayload, match=r"the output of give .* does not fit: \$: "):
        await handle.result(10)

    assert (await handle.get()).status == "completed"


def _handler(declared: Any, returned: Any, *, is_async: bool = True) -> Any:
    async def give(ctx: JobContext) -> Any:
        return returned

    def give_in_a_thread(ctx: JobContext) -> Any:
        return returned

    handler = give if is_async else give_in_a_thread
    handler.__annotations__["return"] = declared
    return handler
