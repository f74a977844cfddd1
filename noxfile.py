"""What CI runs, as sessions: ``nox -l`` lists them, ``nox -s lint`` runs one.

Options after ``--`` go to pytest: ``nox -s tests -- tests/search -k sets``.
"""

from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "docs", "tests", "mpi"]
RANKS = (1, 2, 4)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests that need neither several ranks nor a GPU."""
    session.install("-e", ".[mpich,test-all]")
    chosen = session.posargs or ["tests", "--ignore=tests/mpi", "-n", "auto"]
    session.run("pytest", *chosen)


@nox.session
@nox.parametrize("ranks", RANKS)
def mpi(session: nox.Session, ranks: int) -> None:
    """Run the tests of MPI."""
    session.install("-e", ".[mpich,test-all]")
    command = ("python", "-m", "pytest", "--with-mpi", "tests/mpi", *session.posargs)
    environment = {"OMP_NUM_THREADS": "1"}
    session.run("mpiexec", "-n", str(ranks), *command, env=environment)


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting, and the rules of ruff."""
    session.install("ruff>=0.5")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    session.install("-e", ".[dev]")
    session.run("mypy")
    session.run("mypy", "--config-file", "tests/gpu/mypy.ini", "tests/gpu")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the pages, warnings as errors, and test every block in them."""
    session.install("-e", ".[mpich,dev]")
    options = ("-W", "--keep-going", "-q", "-b", "html")
    session.run("sphinx-build", *options, "docs", "docs/_build/html")
    session.run("pytest", "tests/docs", *session.posargs)


@nox.session
def links(session: nox.Session) -> None:
    """Ask for every page of other sites that the pages link to; needs a network."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-q", "-b", "linkcheck", "docs", "docs/_build/links")


@nox.session
def build(session: nox.Session) -> None:
    """Make the sdist and the wheel; install the wheel and ask for its version."""
    session.install("build", "hatchling", "-e", ".[cuda13]")
    kernels = {"DISTBFS_PORTABLE": "all", "DISTBFS_CUBINS": "all"}  # or no wheel
    words = ("-m", "build", "--no-isolation", "--outdir", "dist")
    session.run("python", *words, env=kernels)
    wheel = max(Path("dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    session.install("--force-reinstall", str(wheel))
    session.chdir(session.create_tmp())  # not the package of this tree
    session.run("distbfs", "--version")
