"""The passphrase manager with ciphertexts of the Pulumi CLI."""

import time
from pathlib import Path

import pytest
import yaml
from lakewright_engine.model.errors import SecretsError, UnsupportedFeatureError
from lakewright_engine.state.secrets import PassphraseManager, refuse_other_providers

SETTINGS = yaml.safe_load((Path(__file__).parents[1] / "backend-sample" / "Pulumi.dev.yaml").read_text())
SALT = SETTINGS["encryptionsalt"]
CIPHERTEXT = SETTINGS["config"]["conf:token"]["secure"]


@pytest.fixture
def conformance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "conformance")


@pytest.mark.usefixtures("conformance")
def test_ciphertext_of_the_cli_is_decrypted() -> None:
    manager = PassphraseManager.from_salt(SALT, "dev")
    manager.unlock()
    assert manager.decrypt(CIPHERTEXT) == "s3cr3t-value"
    assert manager.decrypt(manager.encrypt("ünïcödé\n")) == "ünïcödé\n"
    assert manager.encrypt("same") != manager.encrypt("same")


def test_passphrase_is_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    file = tmp_path / "passphrase"
    file.write_text("conformance\n")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(file))
    assert PassphraseManager.from_salt(SALT, "dev").decrypt(CIPHERTEXT) == "s3cr3t-value"
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(SecretsError, match="nowhere"):
        PassphraseManager.from_salt(SALT, "dev")


def test_wrong_passphrase_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "hunter2")
    with pytest.raises(SecretsError, match="incorrect passphrase for stack 'dev'") as caught:
        PassphraseManager.from_salt(SALT, "dev").decrypt(CIPHERTEXT)
    assert "hunter2" not in str(caught.value)


def test_passphrase_is_not_needed_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    manager = PassphraseManager.from_salt(SALT, "dev")
    with pytest.raises(SecretsError, match="PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE"):
        manager.encrypt("x")
    with pytest.raises(SecretsError, match="PULUMI_CONFIG_PASSPHRASE"):
        PassphraseManager.create("new")


@pytest.mark.usefixtures("conformance")
def test_key_is_derived_once() -> None:
    manager = PassphraseManager.from_salt(SALT, "dev")
    manager.prepare()
    manager.unlock()
    started = time.process_time()
    for _ in range(20):
        PassphraseManager.from_salt(SALT, "dev").decrypt(CIPHERTEXT)
    assert time.process_time() - started < 0.1, "twenty derivations take seconds"


@pytest.mark.usefixtures("conformance")
@pytest.mark.parametrize("broken", ["", "v1", "v2:AAAA:v1:x:y", "v1:%%:v1:x:y"])
def test_invalid_salt_is_reported(broken: str) -> None:
    with pytest.raises(SecretsError, match="encryption salt of stack 'dev'"):
        PassphraseManager.from_salt(broken, "dev").unlock()


@pytest.mark.usefixtures("conformance")
@pytest.mark.parametrize("damaged", ["", "v1:AAAA", "v2:a:b", CIPHERTEXT[:-8] + "AAAAAA==", "v1:ü:ü"])
def test_damaged_ciphertext_is_reported(damaged: str) -> None:
    with pytest.raises(SecretsError, match="cannot be decrypted"):
        PassphraseManager.from_salt(SALT, "dev").decrypt(damaged)


def test_other_secrets_providers_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="awskms://key"):
        refuse_other_providers("awskms://key?region=eu", "dev")
    refuse_other_providers("passphrase", "dev")
