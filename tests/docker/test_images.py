"""The images' files: linted, and their install steps run in a clean place."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from quick_compiler import quick_compiler

from distbfs.device import portable

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
IMAGES = sorted(DOCKER.glob("*.Dockerfile"))
PREFIX = "/opt/distbfs"
INSTALL_SECONDS = 280
LEVEL = (portable.levels() or ("none",))[-1]
BASE = re.compile(r"[\w/.-]+:\d+\.\d+\.\d+-[\w.-]+@sha256:[0-9a-f]{64}")
EXTRAS = {
    "cpu": {"mpich", "serve", "plot"},
    "cuda": {"mpich", "cuda13", "serve", "plot"},
}
EACH = pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.stem)


def steps_of(image):
    """The instructions of a Dockerfile as (stage, word, text)."""
    text = re.sub(r"\\\n", " ", image.read_text())
    stage, steps = "", []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            stage = rest.partition(" AS ")[2]
        steps.append((stage, word, rest.strip()))
    return steps


def install_step(image):
    """What the build stage runs once it has a compiler."""
    runs = [text for s, word, text in steps_of(image) if (s, word) == ("build", "RUN")]
    assert len(runs) == 2
    assert " gcc " in runs[0]
    return runs[1]


def copied(steps, folder):
    """Copy what the build stage copies from the source, as docker does."""
    for stage, word, text in steps:
        if stage != "build" or word != "COPY":
            continue
        *names, target = shlex.split(text)
        for name in names:
            place = folder / (name if target == "./" else target)
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, place, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, place)


def bare(home):
    """An environment with nothing of this one but where pip finds packages.

    With a compiler for the build that is quick, for one level of processors.
    """
    kept = {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    kept |= {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")}
    python = Path(sys.executable).resolve()
    path = f"{python.parent}:/usr/bin:/bin"
    built = {"DISTBFS_CC": quick_compiler(home), "DISTBFS_PORTABLE": LEVEL}
    return {**kept, **built, "PATH": path, "HOME": str(home), "PYTHON": str(python)}


def install(image, folder):
    """Run the install step of an image; returns where it installed."""
    steps = steps_of(image)
    copied(steps, folder / "src")
    run = install_step(image)
    prefix = folder / "prefix"
    words = [w.replace(PREFIX, str(prefix)) for w in shlex.split(run)]
    (folder / "home").mkdir()
    done = subprocess.run(
        words,
        cwd=folder / "src",
        env=bare(folder / "home"),
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return prefix


@EACH
def test_what_every_image_has(image):
    steps = steps_of(image)
    bases = [text.split()[0] for _, word, text in steps if word == "FROM"]
    stages = [text.partition(" AS ")[2] for _, word, text in steps if word == "FROM"]
    for base in bases:
        assert base in stages or BASE.fullmatch(base)
    assert [text for stage, word, text in steps if word == "USER"] == ["10001"]
    users = [stage for stage, word, _ in steps if word == "USER"]
    assert users == ["runtime"]
    assert all(
        text.startswith("runtime AS") for _, w, text in steps[-1:] if w == "FROM"
    )
    [(stage, health)] = [(s, text) for s, word, text in steps if word == "HEALTHCHECK"]
    assert stage == "service"
    assert json.loads(health.partition("CMD ")[2])[:2] == ["distbfs", "query"]
    builds = [s for s, word, text in steps if word == "COPY" and "--from=build" in text]
    assert builds == ["runtime"]


@pytest.mark.skipif(not shutil.which("hadolint"), reason="needs hadolint")
def test_hadolint():
    command = ["hadolint", "-c", DOCKER / "hadolint.yaml", *IMAGES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_compose():
    yaml = pytest.importorskip("yaml")
    whole = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    for name, service in whole["services"].items():
        image = DOCKER / Path(service["build"]["dockerfile"]).name
        assert image.stem == name
        stages = {stage for stage, _, _ in steps_of(image)}
        assert service["build"]["target"] in stages
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert service["cap_drop"] == ["ALL"]


def test_the_apptainer_recipe_installs_as_the_images_do():
    text = (DOCKER / "distbfs.def").read_text()
    [cuda] = [image for image in IMAGES if image.stem == "cuda"]
    run = install_step(cuda)
    assert f"/src/{run}" in text
    name, _, digest = steps_of(cuda)[0][2].split()[0].partition("@")
    assert f"From: {name.partition(':')[0]}@{digest}\n" in text
    for stage, word, rest in steps_of(cuda):
        if (stage, word) == ("build", "COPY"):
            assert all(
                f"    {name} /src/{name}\n" in text for name in rest.split()[:-1]
            )


def project():
    """What pyproject.toml says, read as pip reads it."""
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(name):
    """The requirements of a lock file, by name: those that this Python takes."""
    text = re.sub(r"\\\n", " ", (DOCKER / f"{name}.lock").read_text())
    found = {}
    for line in text.splitlines():
        pin, *hashes = line.split(" --hash=")
        assert hashes, line
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64} *", x) for x in hashes), line
        requirement = Requirement(pin)
        assert [item.operator for item in requirement.specifier] == ["=="], line
        if requirement.marker is None or requirement.marker.evaluate():
            found[canonicalize_name(requirement.name)] = requirement
    return found


def extras_of(name):
    """The extras that the lock file of an image is made for."""
    commands = re.sub(r"\\\n", " ", (DOCKER / "lock").read_text()).splitlines()
    [command] = [x for x in commands if x.endswith(f"-o docker/{name}.lock")]
    return re.findall(r"--extra (\w+)", command)


@EACH
def test_locks_name_what_pyproject_asks_for(image):
    whole = project()["project"]
    pins = locked(image.stem)
    wanted = list(whole["dependencies"])
    assert set(extras_of(image.stem)) == EXTRAS[image.stem]
    for extra in EXTRAS[image.stem]:
        wanted += whole["optional-dependencies"][extra]
    for text in wanted:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate():
            pin = pins[canonicalize_name(requirement.name)]
            [version] = [item.version for item in pin.specifier]
            assert requirement.specifier.contains(version), text


def test_the_lock_of_the_build_names_the_backend():
    pins = locked("build")
    for text in project()["build-system"]["requires"]:
        requirement = Requirement(text)
        [item] = pins[canonicalize_name(requirement.name)].specifier
        assert requirement.specifier.contains(item.version)


@EACH
def test_the_install_step_takes_its_lock(image):
    """And pip takes nothing that no lock file names."""
    run = install_step(image)
    assert run == f"docker/install {PREFIX} {image.stem}"
    steps = [x for x in (DOCKER / "install").read_text().splitlines() if " pip " in x]
    for step in steps:
        offline = "--no-deps" in step or step.endswith("pip check")
        assert "--require-hashes" in step or offline, step


@pytest.mark.parametrize("name", ["build", "cpu", "cuda"])
def test_locks_name_no_host(name):
    text = (DOCKER / f"{name}.lock").read_text()
    assert "://" not in text
    assert "-url" not in text


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu")
    prefix = install(DOCKER / "cpu.Dockerfile", folder)
    return prefix, folder / "home"


@pytest.mark.thorough
@pytest.mark.slow
def test_the_cpu_image_installs_and_serves(installed, tmp_path):
    """Its commands run in a tree that has nothing else, the health check too."""
    prefix, home = installed
    env = bare(home) | {"PATH": f"{prefix}/bin:/usr/bin:/bin", "DISTBFS_CC": "none"}

    def run(*words):
        done = subprocess.run(
            words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = run("distbfs", "doctor")
    assert "mpi4py" in said
    assert f"portable, {LEVEL}: " in said
    run("distbfs", "generate", "kronecker", "--scale", "8", "-o", "graph")
    assert "harmonic_mean_TEPS" in run(
        *("mpiexec", "-n", "2", "distbfs", "graph500", "--scale", "8")
    )
    steps = steps_of(DOCKER / "cpu.Dockerfile")
    [command] = [t for s, word, t in steps if (s, word) == ("service", "CMD")]
    [health] = [t for _, word, t in steps if word == "HEALTHCHECK"]
    places = {"/data": str(tmp_path), "/run/distbfs": str(tmp_path)}

    def words_of(text):
        for old, new in places.items():
            text = text.replace(old, new)
        return json.loads(text)

    serve = ["distbfs", *words_of(command)]
    with subprocess.Popen(
        serve, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        assert "ready" in run(*words_of(health.partition("CMD ")[2]))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.thorough
@pytest.mark.slow
def test_the_cuda_image_finds_its_packages(installed, tmp_path):
    """Without installing gigabytes: pip resolves what its lock file names."""
    copied(steps_of(DOCKER / "cuda.Dockerfile"), tmp_path)
    prefix, home = installed
    pip = [prefix / "bin" / "python", "-m", "pip", "install", "--dry-run"]
    done = subprocess.run(
        [*pip, "--require-hashes", "-r", "docker/cuda.lock"],
        cwd=tmp_path,
        env=bare(home),
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    [line] = [x for x in done.stdout.splitlines() if x.startswith("Would install")]
    for name in ("cupy-cuda13x", "nvidia-nccl-cu13", "nvidia-cuda-nvrtc"):
        assert f" {name}-" in line
