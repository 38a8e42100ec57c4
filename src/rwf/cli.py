"""The ``rwf`` command's way in: it says what to install when the ``cli`` extra is missing.

The commands are in :mod:`rwf.commands`. Exit codes: 0 done, 1 failed, 2 wrong usage or a missing
package.
"""

import sys

EXTRA = {"typer", "rich", "matplotlib", "pyarrow"}


def main() -> None:
    """Run the command line, and turn the errors a user can mend into one line."""
    try:
        from rwf.commands import app

        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        _stop(f'the command line needs {package}. Install it: pip install "rwf[cli]"', code=2)
    except (ValueError, OSError) as error:
        _stop(str(error), code=1)


def _stop(message: str, code: int) -> None:
    sys.stderr.write(f"rwf: {message}\n")
    raise SystemExit(code) from None
