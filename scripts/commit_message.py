"""Check the message of a commit: `python scripts/commit_message.py FILE`, the commit-msg hook of pre-commit.

The subject has at most 72 characters, starts with an imperative verb in upper case and has no full stop. An empty line
and a body that says why follow. Exit status 1 when a rule is broken.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MAX_SUBJECT = 72
GENERATED = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")
"""Subjects that git writes itself."""
VERBS = {"bring", "embed", "feed", "need", "pass", "address", "process", "focus", "compress", "express", "suppress"}
"""Imperatives that look like another form of a verb."""
_SCISSORS = re.compile(r"^# -+ >8 -+$.*", re.MULTILINE | re.DOTALL)


def problems(message: str) -> list[str]:
    """Return one sentence for each rule that a message breaks; comments of git do not count."""
    lines = [line for line in _SCISSORS.sub("", message).splitlines() if not line.startswith("#")]
    text = "\n".join(lines).strip()
    subject, _, body = text.partition("\n")
    if subject.startswith(GENERATED):
        return []
    if not subject:
        return ["The message is empty: write a subject and a body."]
    sentences: list[str] = []
    if len(subject) > MAX_SUBJECT:
        sentences.append(
            f"The subject has {len(subject)} characters, at most {MAX_SUBJECT}: move details into the body."
        )
    if subject.endswith("."):
        sentences.append("The subject ends with a full stop: remove it.")
    word = subject.split()[0]
    if not word[0].isupper():
        sentences.append(f"The subject starts with {word!r}: start it with a capital letter.")
    if re.search(r"(ed|ing|[^s]s)$", word) and word.lower() not in VERBS:
        sentences.append(f"The subject starts with {word!r}: use the imperative, such as 'Add' or 'Refuse'.")
    if body and not body.startswith("\n"):
        sentences.append("The second line is not empty: separate the subject from the body.")
    if not body.strip():
        sentences.append("There is no body: say why the change is made.")
    return sentences


def main() -> int:
    """Print the rules that the message in a file breaks."""
    sentences = problems(Path(sys.argv[1]).read_text("utf-8"))
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
