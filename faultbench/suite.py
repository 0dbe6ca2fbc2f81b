"""Rows that run tests of the suite and report the counts."""

import sys
from xml.etree import ElementTree

from faultbench.outcome import CannotRun, PromiseBroken
from faultbench.process import ROOT
from faultbench.registry import Scenario, fault
from faultbench.stage import Stage


def suite_row(number: int, name: str, promise: str, *tests: str, timeout: float = 600) -> None:
    """Register a row that runs these tests, given as pytest node ids."""
    fault(number, name, promise, timeout=timeout, tests=tests)(_scenario(tests))


def _scenario(tests: tuple[str, ...]) -> Scenario:
    async def run(stage: Stage) -> None:
        report = stage.folder / "report.xml"
        process = stage.spawn(
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
            *(test for test in tests if (ROOT / test.split("::")[0]).exists()),
        )  # fmt: skip
        await process.ended(1800)
        if not report.exists():
            raise PromiseBroken(f"pytest did not run: {process.log()[-500:]}")
        _read(stage, ElementTree.parse(report).getroot())

    return run


def _read(stage: Stage, root: ElementTree.Element) -> None:
    cases = root.findall(".//testcase")
    failed = [
        case for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = [case for case in cases if case.find("skipped") is not None]
    stage.outcome.runs = len(cases) - len(skipped)
    if not stage.outcome.runs:
        reason = skipped[0].find("skipped") if skipped else None
        raise CannotRun(f"no test ran: {'' if reason is None else reason.get('message', '')}")
    stage.note(
        f"tests of the suite: {stage.outcome.runs - len(failed)} passed, {len(failed)} failed"
    )
    if skipped:
        stage.note(f"{len(skipped)} tests were skipped")
    if failed:
        names = ", ".join(str(case.get("name")) for case in failed[:3])
        raise PromiseBroken(f"failed: {names}")
