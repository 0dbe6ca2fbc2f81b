"""Settings passed in Python."""

from datetime import timedelta
from pathlib import Path

import pytest

from forge import Config
from forge.config.settings import WorkerConfig
from forge.config.transport import SqsConfig
from forge.core.errors import ConfigError


def test_a_bad_value_in_python_raises_the_same_error_as_in_a_file() -> None:
    with pytest.raises(ConfigError) as refused:
        Config(worker={"max_concurrent": 0, "poll_intervall": "1s"}, wroker={})

    assert refused.value.problems == (
        "Config(…): [worker] max_concurrent must be a whole number from 1 to 10000, not 0",
        "Config(…): [worker] poll_intervall is not a setting; did you mean poll_interval?",
        "Config(…): wroker is not a setting; did you mean worker?",
    )


def test_a_single_section_raises_config_error() -> None:
    with pytest.raises(ConfigError, match=r"^WorkerConfig\(…\): batch_size must be a whole"):
        WorkerConfig(batch_size="many")
    with pytest.raises(ConfigError, match=r"^SqsConfig\(…\): queue_url must be text"):
        SqsConfig(queue_url="")


def test_a_refused_value_is_never_shown_where_it_may_be_a_secret() -> None:
    with pytest.raises(ConfigError) as refused:
        Config(database={"url": "mysql://u:hush@h/db"})

    assert "hush" not in str(refused.value)


def test_load_overrides_sections_key_by_key(file: Path) -> None:
    file.write_text("[worker]\nmax_concurrent = 5\nbatch_size = 7")

    config = Config.load(
        file,
        {"FORGE_WORKER_MAX_CONCURRENT": "6", "FORGE_PAYLOAD_MAX_INPUT": "1MB"},
        worker={"max_concurrent": 8},
        auth={"secret": "x" * 32},
        app="shop:app",
    )

    assert (config.worker.max_concurrent, config.worker.batch_size) == (8, 7)
    assert config.auth.secret == "x" * 32
    assert config.payload.max_input == 1024**2
    assert config.app == "shop:app"


def test_load_takes_a_section_as_an_object(file: Path) -> None:
    file.write_text("[worker]\nbatch_size = 7")

    config = Config.load(file, {}, worker=WorkerConfig(poll_interval="1s"))

    assert config.worker.poll_interval == timedelta(seconds=1)
    assert config.worker.batch_size == 7


def test_what_load_cannot_override_is_refused(file: Path) -> None:
    file.write_text("")

    with pytest.raises(ConfigError) as refused:
        Config.load(file, {}, worker={"max_concurrent": 0}, atuh={"secret": "x" * 32})

    assert refused.value.problems == (
        "Config.load(…): [atuh] is not a section; did you mean [auth]?",
        "Config.load(…): [worker] max_concurrent must be a whole number from 1 to 10000, not 0",
    )


@pytest.mark.parametrize(
    "text",
    [
        "[transport.sqs]\nqueue_url = ''",
        "[transport.sqs]\nqueue_url = 'q'\nregion = ' '",
        "[transport.sqs]\nqueue_url = 'q'\nendpoint_url = ''",
        "[[transport.sqs.routes]]\nqueue_url = ''",
        "[server]\nhost = ''",
        "[worker]\nmetrics_host = ''",
    ],
)
def test_an_empty_text_is_refused(file: Path, text: str) -> None:
    file.write_text(text)

    with pytest.raises(ConfigError, match="must be text that is not empty"):
        Config.load(file, {})
