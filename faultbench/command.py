"""The command line of the bench."""

import argparse
import asyncio
import json
import random
import re
import signal
import sys
import time
from pathlib import Path

from faultbench import report, rows
from faultbench.bench import run_rows
from faultbench.outcome import Outcome, Verdict
from faultbench.process import ROOT
from faultbench.registry import ROWS, FaultRow
from faultbench.workshop import Workshop

UNITS = {"s": 1, "m": 60, "h": 3600}


def main() -> None:
    rows.register_all()
    options = _parser().parse_args()
    if options.list:
        _list()
        return
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    chosen = [ROWS[number] for number in options.only or sorted(ROWS)]
    _log(f"seed {seed}, {len(chosen)} rows")
    found: dict[int, Outcome] = {}
    code = _run(chosen, seed, options, found)
    _report(found, seed, options)
    sys.exit(code)


def _run(
    chosen: list[FaultRow], seed: int, options: argparse.Namespace, found: dict[int, Outcome]
) -> int:
    """Run the rows; an interruption still reports the results so far."""

    def done(row: FaultRow, outcome: Outcome) -> None:
        found[row.number] = outcome
        _progress(row, outcome)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)
    began, workshop = time.monotonic(), Workshop()
    try:
        asyncio.run(
            run_rows(
                chosen,
                workshop,
                seed=seed,
                runs=options.runs,
                soak=options.soak,
                keep=options.output,
                done=done,
            )
        )
    except KeyboardInterrupt:
        _log("interrupted")
        return 130
    finally:
        workshop.close()
    failed = [number for number in found if found[number].verdict is Verdict.FAILED]
    _log(f"{(time.monotonic() - began) / 60:.1f} minutes; seed {seed}; failed: {failed or 'none'}")
    return 1 if failed else 0


def _interrupt(*_: object) -> None:
    """Stop all servers and workers first; a second SIGTERM must not interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.raise_signal(signal.SIGINT)


def _report(found: dict[int, Outcome], seed: int, options: argparse.Namespace) -> None:
    if options.merge:
        found = {**report.read(options.output), **found}
    report.write(options.output, found, seed)
    if options.write_docs:
        report.write_page(found, seed)
    if options.json:
        print(json.dumps(report.as_json(found, seed, report.machine()), indent=2))
    else:
        print(report.text_table(found))
    _log(f"results, histories and logs of failures: {options.output}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m faultbench", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the rows and exit")
    parser.add_argument("--only", type=_numbers, help="run only these rows, such as 3,55,60-65")
    parser.add_argument(
        "--seed", type=int, help="repeat a run; a random seed is chosen and printed by default"
    )
    parser.add_argument("--runs", type=int, help="run each row this many times")
    parser.add_argument(
        "--soak", type=_duration, default=0, help="the duration of row 41: 30m, 24h"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--write-docs", action="store_true", help="write the table into docs/why/faults.md"
    )
    parser.add_argument(
        "--merge", action="store_true", help="keep the other rows of existing results"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / ".faults", help="the output directory"
    )
    return parser


def _list() -> None:
    for number in sorted(ROWS):
        row = ROWS[number]
        kind = " (tests of the suite)" if row.is_pytest else ""
        print(f"{number:3} {row.fault}{kind}\n      {row.promise}")


def _progress(row: FaultRow, found: Outcome) -> None:
    _log(f"{row.number:3} {found.verdict:8} {found.seconds:6.1f} s  {row.fault}")
    for note in found.notes:
        _log(f"{'':20} {note[:400]}")


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _numbers(text: str) -> list[int]:
    """Parse row numbers such as 3,55,60-65."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    unknown = sorted(set(found) - set(ROWS))
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown rows {unknown}; --list shows all rows")
    return found


def _duration(text: str) -> float:
    found = re.fullmatch(r"(\d+)([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; use 90s, 30m or 24h")
    return int(found[1]) * UNITS[found[2]]
