"""`python -m demo`: run the acts, print their times, and clean up."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from demo import acts
from demo.stage import REPOSITORY, STACK, DemoError, Stage

PROGRAMME = {
    "A sandbox: a catalog and AWS, on this machine": acts.sandbox,
    "A tenant, declared in one file": acts.declare,
    "A Spark job on real data, with vended credentials alone": acts.job,
    "The same again: nothing to do": acts.apply_again,
    "Behind the stack's back": acts.tamper,
    "Drift, found": acts.find_drift,
    "Drift, healed": acts.heal,
}


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the sandbox running, to look around")
    parser.add_argument("--dir", type=Path, default=REPOSITORY / ".demo", help="where to play; emptied first")
    arguments = parser.parse_args()
    keep: bool = arguments.keep
    stage = Stage(arguments.dir.resolve())
    try:
        for title, act in PROGRAMME.items():
            with stage.act(title):
                act(stage)
    except DemoError as error:
        stage.console.print(f"\nThe demo failed: {error}", style="red", markup=False)
        return 1
    finally:
        if not keep and (stage.sandbox / "sandbox.json").exists():
            stage.output("lakewright", "sandbox", "down", "--dir", str(stage.sandbox))
    stage.console.print()
    stage.console.print(stage.programme())
    stage.console.print()
    stage.console.print(format_next_commands(stage, keep=keep), markup=False)
    return 0


def format_next_commands(stage: Stage, *, keep: bool) -> str:
    """Return the next commands to try."""
    if not keep:
        return "The sandbox is stopped. `make demo ARGS=--keep` leaves it running, to look around."
    exports = "\n".join(f"  export {name}={shlex.quote(value)}" for name, value in stage.settings().items())
    return (
        f"The sandbox is running. To look around:\n  . .venv/bin/activate\n{exports}\n  cd {stage.project}\n"
        f"  lakewright stack output {STACK}\n  lakewright sandbox status --dir {stage.sandbox}\n"
        f"To stop it:\n  lakewright sandbox down --dir {stage.sandbox}"
    )


if __name__ == "__main__":
    sys.exit(main())
