"""A cluster of two nodes on this host: daemons of Debian, in a folder of ours.

Started for the tests of this folder and stopped after them.  Jobs of partition ``high``
preempt those of ``low``, which are queued again; both have the first node.  ``pair``
has both nodes.  Each node has two cores and four GPUs, which are all /dev/null.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from launching import clean_environment

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol")
SECONDS, START_SECONDS = 120, 40
NODES = ("n1", "n2")
CONFIGURATION = """
ClusterName=test
FirstJobId={job}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
TaskPluginParam=Cores
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=pmi2
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=1,sched_interval=2,sched_min_interval=0
KillWait=5
GresTypes=gpu
NodeName=DEFAULT CPUs=2 Gres=gpu:4
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]}
PartitionName=low Nodes=n1 Default=YES PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=n1 PriorityTier=10 PreemptMode=OFF
PartitionName=pair Nodes=n1,n2 PriorityTier=1 PreemptMode=OFF
"""


def missing():
    """Why there can be no cluster, "" where there can."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    absent = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if absent:
        return f"needs Debian's slurm-wlm and munge ({', '.join(absent)})"
    if os.geteuid() != 0:
        return "slurmd needs root"
    if os.cpu_count() < 2:
        return "needs two cores"
    if importlib.util.find_spec("mpi4py") is None:
        return "needs mpi4py"
    from mpi4py import MPI  # noqa: PLC0415

    if MPI.get_vendor()[0] != "MPICH":
        return "srun --mpi=pmi2 serves MPICH"
    return ""


def free_ports(count):
    """Ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


class Cluster:
    """What tests ask of it; ``folder`` is where jobs run."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        bins = Path(sys.executable).parent
        path = f"{bins}:{os.environ['PATH']}:/usr/sbin:/sbin"
        more = {"SLURM_CONF": f"{folder}/slurm.conf", "PATH": path}
        self.env = clean_environment({**more, "OMP_NUM_THREADS": "1"})
        self.host = socket.gethostname().partition(".")[0]

    def start(self):
        for name in ("munge", "state", *(f"spool/{node}" for node in NODES)):
            (self.folder / name).mkdir(mode=0o755, parents=True)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        text = CONFIGURATION.format(
            host=self.host,
            folder=self.folder,
            ports=free_ports(1 + len(NODES)),
            # MPI of two clusters on one machine meets where jobs have one number
            job=os.getpid() % 6000 * 10 + 1,
        )
        (self.folder / "slurm.conf").write_text(text)
        for index in range(4):
            (self.folder / f"gpu{index}").symlink_to("/dev/null")
        gpus = f"Name=gpu File={self.folder}/gpu[0-3]\n"
        (self.folder / "gres.conf").write_text(gpus)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid"}
        files |= {"seed-file": "seed", "log-file": "log"}
        places = [f"--{name}={key.parent / file}" for name, file in files.items()]
        self.daemon("munged", "--foreground", *places)
        self.wait((key.parent / "socket").exists)
        self.daemon("slurmctld", "-D")
        for node in NODES:
            self.daemon("slurmd", "-D", "-N", node)
        idle = ("sinfo", "-h", "-p", "pair", "-t", "idle", "-o", "%D")
        self.wait(
            lambda: self.run(*idle, check=False) == str(len(NODES)), START_SECONDS
        )

    def daemon(self, *argv):
        log = (self.folder / f"{argv[0]}-{len(self.daemons)}.out").open("w")
        made = subprocess.Popen(
            argv, env=self.env, stdout=log, stderr=log, start_new_session=True
        )
        self.daemons.append(made)

    def stop(self):
        with contextlib.suppress(subprocess.SubprocessError, AssertionError):
            self.run("scancel", "--partition=low,high,pair", check=False)
            self.run("scancel", "--user=root", check=False)
            self.wait(lambda: not self.run("squeue", "-h"))
        for one in reversed(self.daemons):
            one.send_signal(signal.SIGTERM)
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()

    def wait(self, condition, seconds=SECONDS):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not reached:\n{self.told()}"
            time.sleep(0.1)

    def told(self):
        """The ends of all logs."""
        logs = [*self.folder.glob("*.log"), *self.folder.glob("*.out")]
        return "\n".join(f"{log.name}:\n{log.read_text()[-1500:]}" for log in logs)

    def run(self, *argv, check=True, **env):
        done = subprocess.run(
            [str(word) for word in argv],
            env={**self.env, **{name: str(value) for name, value in env.items()}},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert not check or done.returncode == 0, (argv, done.stderr)
        return done.stdout.strip()

    def submit(self, file, *options, **env):
        """Return the id of a new job."""
        return self.run("sbatch", "--parsable", *options, file, **env)

    def show(self, job):
        """What Slurm tells of a job."""
        words = self.run("scontrol", "-o", "show", "job", job).split()
        return dict(word.partition("=")[::2] for word in words)

    def state(self, job):
        return self.show(job)["JobState"]

    def start_again(self, job):
        """Let a job that was queued again begin soon, with more time.

        By itself Slurm waits two minutes.  Not at once: slurmd takes no credential of
        the second in which it ended the job.
        """
        self.run("scontrol", "update", f"job={job}", "StartTime=now+5", "TimeLimit=10")

    def finish(self, job, name):
        """Wait for the end of a job; return its output."""
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        self.wait(lambda: self.state(job) in ended)
        text = (self.folder / f"{name}-{job}.out").read_text()
        assert self.state(job) == "COMPLETED", text
        return text


@pytest.fixture(scope="session")
def cluster():
    why = missing()
    if why:
        pytest.skip(why)
    for last in (False, False, True):
        # not below the folder of pytest, which munged finds too open to be safe
        folder = Path(tempfile.mkdtemp(prefix="distbfs-slurm-"))
        folder.chmod(0o755)
        made = Cluster(folder)
        try:
            try:
                made.start()
            except AssertionError:  # another program may have taken a port
                if last:
                    raise
                continue
            yield made
            return
        finally:
            made.stop()
            shutil.rmtree(folder, ignore_errors=True)
