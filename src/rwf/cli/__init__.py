"""The ``rwf`` command: every command parses, calls one function of the library, and prints.

Errors that a user can correct become one line and an exit code: 0 done; 1 failed, for example
because of the contents of the data; 2 wrong usage, such as an unknown option or column, an output
that exists, or a missing package; 3 a model file that cannot be used; 130 interrupted by Ctrl-C.
"""

import sys

from rwf.errors import ModelFileError, NoSuchColumnError, RWFError

EXTRA = {"typer", "rich", "matplotlib", "pyarrow"}  # packages of the extra rwf[cli]
MAPS = {"xarray", "netCDF4", "rioxarray", "rasterio", "dask", "pandas"}  # of rwf[maps]

FAILED, USAGE, MODEL_FILE, INTERRUPTED = 1, 2, 3, 130


def main() -> None:
    """Run the command line."""
    try:
        from rwf.cli.app import app

        app()
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA | MAPS:
            raise
        extra = "cli" if package in EXTRA else "maps"
        _stop(f'this command needs {package}. Install it: pip install "rwf[{extra}]"', USAGE)
    except KeyboardInterrupt:
        _stop("interrupted.", INTERRUPTED)
    except (ValueError, OSError, MemoryError, ArithmeticError, RWFError) as error:
        _stop(str(error) or type(error).__name__, _code(error))


def _code(error: BaseException) -> int:
    from rwf.cli.checks import UsageError

    if isinstance(error, UsageError | NoSuchColumnError):
        return USAGE
    return MODEL_FILE if isinstance(error, ModelFileError) else FAILED


def _stop(message: str, code: int) -> None:
    sys.stderr.write(f"rwf: {message}\n")
    raise SystemExit(code) from None
