"""The sandbox's access keys: an AWS shared-credentials file with the profiles `admin` and `lakekeeper`."""

import configparser
import io
import os
import secrets
import string
from pathlib import Path

from pydantic import BaseModel, SecretStr

from lakewright_sandbox.errors import CredentialsFileError

ADMIN = "admin"
LAKEKEEPER = "lakekeeper"
PROFILES = (ADMIN, LAKEKEEPER)

_KEY_ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class IamAccessKey(BaseModel, frozen=True):
    """A long-lived key pair of an IAM user."""

    access_key_id: str
    secret_access_key: SecretStr


def new_access_key(prefix: str = "AKIA") -> IamAccessKey:
    """Return a random key pair in AWS's shape: an id of 20 characters and a secret of 40."""
    key_id = prefix + "".join(secrets.choice(_KEY_ID_ALPHABET) for _ in range(20 - len(prefix)))
    # Letters and digits only: a secret that starts with `-` would be an option on a command line.
    secret = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(40))
    return IamAccessKey(access_key_id=key_id, secret_access_key=SecretStr(secret))


def load_or_create(path: Path) -> dict[str, IamAccessKey]:
    """Return the keys of every profile; create the file if it is missing, readable by its owner alone.

    Raises:
        CredentialsFileError: The file lacks a profile or one of its keys.
    """
    try:
        return load(path)
    except FileNotFoundError:
        _write(path, {profile: new_access_key() for profile in PROFILES})
        return load(path)


def load(path: Path) -> dict[str, IamAccessKey]:
    """Return the keys in the file.

    Raises:
        FileNotFoundError: There is no such file.
        CredentialsFileError: The file lacks a profile or one of its keys.
    """
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text())
        return {
            profile: IamAccessKey(
                access_key_id=parser[profile]["aws_access_key_id"],
                secret_access_key=SecretStr(parser[profile]["aws_secret_access_key"]),
            )
            for profile in PROFILES
        }
    except (configparser.Error, KeyError, UnicodeDecodeError) as error:
        # The parser's message quotes the line, which may contain the secret.
        raise CredentialsFileError(
            f"{path}: expected profiles {' and '.join(PROFILES)} with aws_access_key_id and aws_secret_access_key; "
            f"reading it failed with {type(error).__name__}. Delete the file to get new keys."
        ) from None


def _write(path: Path, keys: dict[str, IamAccessKey]) -> None:
    parser = configparser.RawConfigParser()
    for profile, key in keys.items():
        parser[profile] = {
            "aws_access_key_id": key.access_key_id,
            "aws_secret_access_key": key.secret_access_key.get_secret_value(),
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    parser.write(text)
    write_private(path, text.getvalue().encode())


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable by its owner alone, so that no reader sees a partial file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)  # a killed process with this id may have left it
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    temporary.replace(path)
