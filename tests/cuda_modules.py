"""Which modules of the package are of CUDA: by their name, or by their place."""

import re
from pathlib import Path

import distbfs

NAMES = r"cuda(_\w+)?|\w+_cuda|nccl(_\w+)?|nv(ml|rtc|shmem)|peers|peer_memory|symmetric"
PLACES = (
    r"device\.(gate|host_memory|programs|stop_word|take|timed_graph)",
    r"search\.(device_\w+|domain|shared_tuples)",
    r"search\.runners\.(replays|seat|streamed)",
    r"multisearch\.(domain_\w+|outer_bits)",
    r"benchmark\.device_validation",
    r"validation\.between",
)
CUDA = re.compile(rf"distbfs\.((\w+\.)*({NAMES})(\.\w+)*|{'|'.join(PLACES)})")


def every_module():
    """Return the names of all modules of CUDA, without packages."""
    root = Path(distbfs.__file__).parent
    files = [x for x in root.rglob("*.py") if x.name != "__init__.py"]
    names = [x.relative_to(root.parent).with_suffix("").parts for x in sorted(files)]
    return [x for x in map(".".join, names) if CUDA.fullmatch(x)]
