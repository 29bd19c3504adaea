"""The engine of all benchmarks: it runs jobs in processes, keeps each finished run, and resumes.

The result of a :class:`Run` is a JSON file of its own, written in one piece when the run ends.
What is found there is not run again: an interrupted benchmark goes on where it stopped, and
benchmarks that share a folder share their runs.

The name of the file ends in a key, a digest of the run's identity: the configuration, the data,
the seed, and versions. Neither the places and names of modules nor their code are part of it.
Where a change of code changes results, raise the revision that stands in the identity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm import tqdm  # comes with skorch

from benchmarks.common.json_files import write_json

Result = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run: how its file's name starts, what determines its result, and what computes it.

    `identity` is plain data, as JSON holds it. `compute` gets the data that a job shares with
    others, if it shares any.
    """

    name: str
    identity: dict[str, Any]
    compute: Callable[..., Result]

    @property
    def file_name(self) -> str:
        return f"{self.name}_{key(self.identity)}.json"

    def is_finished(self, folder: Path) -> bool:
        return (folder / self.file_name).exists()

    def result(self, folder: Path, *shared: Any) -> Result:
        """Read the result, after the run unless it is finished."""
        path = folder / self.file_name
        if not path.exists():
            with threadpool_limits(1):
                result = self.compute(*shared)
            write_json(path, {"identity": self.identity, "result": result})
        return json.loads(path.read_text())["result"]


class FinishedRun(Run):
    """A run that is read, never computed: nothing where it is not finished."""

    def result(self, folder: Path, *shared: Any) -> Result:
        return super().result(folder, *shared) if self.is_finished(folder) else {}


def key(identity: dict[str, Any]) -> str:
    """Digest of plain data; the order of names does not count."""
    text = json.dumps(identity, sort_keys=True)
    if " at 0x" in text:  # another one in each process: no finished run would ever be found
        raise ValueError(f"An identity has the address of an object in it: {text}")
    return sha256(text.encode()).hexdigest()[:16]


def run_all(
    jobs: Sequence[Iterable[Run]], *, folder: Path, n_jobs: int = 1, shared: Sequence[Any] = ()
) -> list[list[Result]]:
    """Results of the runs of each job.

    One process takes a job and its runs in turn; a job that makes its runs as it is iterated
    makes them there. `shared` is data that the runs of all jobs compute with: it is loaded once,
    and large arrays are mapped to memory.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = dict(as_done(partial(_run_job, folder), jobs, n_jobs=n_jobs, shared=shared))
    return [results[i] for i in range(len(jobs))]


def as_done(
    compute: Callable[..., Any], jobs: Sequence[Any], *, n_jobs: int = 1, shared: Sequence[Any] = ()
) -> Iterator[tuple[int, Any]]:
    """Yield number and result of each job as it ends, under a bar with the time that is left.

    `compute` gets the job and what is `shared`, in a process of one thread.
    """
    done = Parallel(n_jobs, return_as="generator_unordered")(
        delayed(_numbered)(compute, i, job, shared) for i, job in enumerate(jobs)
    )
    yield from tqdm(done, total=len(jobs), unit="job", disable=not jobs)


def _numbered(
    compute: Callable[..., Any], i: int, job: Any, shared: Sequence[Any]
) -> tuple[int, Any]:
    with threadpool_limits(1):
        return i, compute(job, *shared)


def _run_job(folder: Path, job: Iterable[Run], *shared: Any) -> list[Result]:
    return [run.result(folder, *shared) for run in job]
