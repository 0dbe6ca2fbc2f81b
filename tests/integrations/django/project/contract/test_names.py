"""The contract names every test of Django's, and does with each what it says."""

import ast
from pathlib import Path

import tasks
from django.test import SimpleTestCase

from contract import test_django_tasks
from contract.contract import CONTRACT


class Names(SimpleTestCase):
    def test_the_contract_names_every_test_of_django(self) -> None:
        folder = Path(tasks.__file__).parent

        named = {(place, name) for place, names in CONTRACT.items() for name in names}

        assert named == {
            (f"{file.stem}.{cls.name}", test.name)
            for file in folder.glob("test_*.py")
            for cls in ast.parse(file.read_text()).body
            if isinstance(cls, ast.ClassDef)
            for test in cls.body
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef)
            if test.name.startswith("test")
        }

    def test_each_test_is_what_the_contract_says(self) -> None:
        ours = {
            f"{cls.__mro__[1].__module__.rpartition('.')[2]}.{cls.__mro__[1].__name__}": cls
            for cls in vars(test_django_tasks).values()
            if isinstance(cls, type) and cls.__module__ == test_django_tasks.__name__
        }

        for place, names in CONTRACT.items():
            for name, stated in names.items():
                kind = stated.partition(":")[0]
                own = vars(ours[place]).get(name, "subclassed")
                expected = {"subclassed": "subclassed", None: "inapplicable"}.get(own, "ported")
                assert kind == expected, (place, name)
