"""Where chunks are computed: processes here, or a Dask or Ray cluster. Only joblib is told."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pickle import PicklingError
from typing import Any, TypeAlias

from bestarm.errors import InputError

# Workers that give memory back after every array spend half their time asking for it again.
KEEP_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": "2147483647",
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
ENGINES = ("dask", "dask://HOST:PORT", "ray", "ray://HOST:PORT")


ATTEMPTS = 5  # as often workers may be lost before one gives up
PORTION = 32  # tasks at a time, where an engine gives nothing back before the last of them is done

Lost: TypeAlias = tuple[type[BaseException], ...]  # the errors that mean a worker was lost


def computed(
    work: Callable[..., Any], tasks: Sequence[Any], n_jobs: int = -1, engine: str | None = None
) -> Iterator[Any]:
    """Yield `work(*task)` of every task as they are finished; what a lost worker had in hand is computed again."""
    left = dict(enumerate(tasks))
    if not left:
        return
    with engine_context(engine, n_jobs) as lost:
        for attempt in range(ATTEMPTS):
            try:
                for place, result in _pooled(work, dict(left), n_jobs):
                    del left[place]
                    yield result
                return
            except PicklingError as error:
                why = str(error.__cause__ or error).strip('\n"').splitlines()[-1]
                raise InputError(
                    f"what is to be computed cannot be sent to workers: {why}; n_jobs=1 computes it here"
                ) from error
            except lost as error:
                if attempt == ATTEMPTS - 1:
                    raise InputError(f"workers were lost again and again: {type(error).__name__}: {error}") from error


def _pooled(work: Callable[..., Any], tasks: dict[int, Any], n_jobs: int) -> Iterator[tuple[int, Any]]:
    """Yield results with the place of their task; no backend is named: joblib.parallel_config says which."""
    from joblib import Parallel, delayed

    jobs = [delayed(_placed)(place, work, task) for place, task in tasks.items()]
    try:
        pool = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    except ValueError:  # this backend returns lists only
        for start in range(0, len(jobs), PORTION):
            yield from Parallel(n_jobs=n_jobs, batch_size=1)(jobs[start : start + PORTION])
        return
    yield from pool(jobs)


def _placed(place: int, work: Callable[..., Any], task: Any) -> tuple[int, Any]:
    return place, work(*task)


@contextmanager
def engine_context(engine: str | None, n_jobs: int) -> Iterator[Lost]:
    """Point joblib at an engine while the context lasts."""
    if engine is None:
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        yield (TerminatedWorkerError,)
        return
    kind, _, address = engine.partition("://")
    if kind == "dask":
        with _dask(address, n_jobs) as found:
            yield found
    elif kind == "ray":
        with _ray(address, n_jobs) as found:
            yield found
    else:
        raise InputError(f"unknown engine {engine!r}; {', '.join(ENGINES)} are known, or none for local processes")


@contextmanager
def _dask(address: str, n_jobs: int) -> Iterator[Lost]:
    try:
        import dask.config
        from distributed import Client, KilledWorker, LocalCluster
        from joblib import parallel_config
    except ImportError as error:
        raise InputError("the dask engine needs dask: pip install 'bestarm-bai[dask]'") from error
    cluster: Any = None
    try:
        if address:
            client = Client(f"tcp://{address}", timeout=5)
        else:
            workers = n_jobs if n_jobs > 0 else None
            with dask.config.set({"distributed.nanny.pre-spawn-environ": KEEP_MEMORY}):
                cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
            client = Client(cluster)
    except (OSError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from error
    try:
        with parallel_config("dask", client=client):
            yield (KilledWorker,)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


@contextmanager
def _ray(address: str, n_jobs: int) -> Iterator[Lost]:
    try:
        import ray
        from joblib import parallel_config
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise InputError("the ray engine needs ray: pip install 'bestarm-bai[ray]'") from error
    ours = not ray.is_initialized()
    if ours:
        try:
            where: dict[str, Any] = (
                {"address": f"ray://{address}"} if address else {"num_cpus": n_jobs if n_jobs > 0 else None}
            )
            if not address:
                where["include_dashboard"] = False
            ray.init(**where, runtime_env={"env_vars": KEEP_MEMORY}, log_to_driver=False)
        except (OSError, ConnectionError, TimeoutError) as error:
            raise InputError(f"no Ray cluster answers at {address}: {error}") from error
    register_ray()
    try:
        with parallel_config("ray"):
            yield (ray.exceptions.RayError,)
    finally:
        if ours:
            ray.shutdown()
