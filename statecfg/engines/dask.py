"""Workers of an existing Dask cluster.

Dask only starts the workers' side: the installed function `work` is called once per worker, with JSON as its argument.
It makes a certificate, listens on the worker's address, and announces its port and certificate as an event of the topic
`statecfg`. Then the controller connects to the worker directly, and each side accepts only the other's
certificate. So Dask's scheduler sees two certificates and a port, and no byte that goes to a host.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import operator
import pkgutil
import queue
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from statecfg.engines import tls
from statecfg.engines.link import Link
from statecfg.problems import InvalidInput, problem

TOPIC = "statecfg"
WORK = "statecfg.engines.dask:work"  # the function that the tasks call
CONNECT = 15.0  # seconds to reach the scheduler, and each worker
START = 30.0  # seconds for the workers to start their tasks
CLOSE = 5.0  # seconds to leave the cluster
WAIT = 60.0  # seconds that a task waits for the controller
INSTALL = "pip install 'statecfg[dask]'"
SAME = "install the same version of statecfg[dask] on each worker"
USE_TLS = "use tls://HOST:PORT, and give the scheduler and its workers certificates"
CERTIFICATES = "set distributed.comm.tls.ca-file, .client.cert and .client.key in ~/.config/dask/distributed.yaml"
LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application")


def work(request: bytes) -> None:
    """Serve one controller. This is the task of a Dask worker; it ends when the controller closes the connection.

    :param request: JSON with `run`, the run's id, and `certificate`, the controller's
    """
    from dask import config
    from distributed import get_worker, secede

    from statecfg.engines import open_files, relay

    open_files.allow()
    asked = json.loads(request)
    worker = get_worker()
    secede()  # a run can be long: the worker's other tasks don't wait for it
    told: dict[str, object] = {"run": asked["run"], "worker": worker.contact_address}
    try:
        own = tls.certificate()
        with _listen(_address(worker.listen_address)[0], str(config.get("statecfg.ports", "0"))) as listener:
            worker.log_event(TOPIC, {**told, "port": listener.getsockname()[1], "certificate": own.public})
            link = tls.accept(listener, own, asked["certificate"], WAIT)
    except (OSError, ValueError) as error:
        worker.log_event(TOPIC, {**told, "error": f"it can't be reached: {error}"})
        return
    relay.serve(link)


def _listen(host: str, ports: str) -> socket.socket:
    """Listen on the first free port.

    :param ports: a port or a range, as 9000-9009; "0" for any
    :raises OSError: no port is free
    :raises ValueError: `ports` is neither
    """
    first, _, last = ports.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()):
        raise ValueError(f"statecfg.ports is {ports!r}, and not a port or a range such as 9000-9009")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in range(int(first), int(last or first) + 1):
        with contextlib.suppress(OSError):
            return socket.create_server((host, port), family=family)
    raise OSError(f"no port is free on {host} (statecfg.ports: {ports})")


def _address(address: str) -> tuple[str, int]:
    """Return host and port of an address of Dask, such as tls://[::1]:40000."""
    parts = urlsplit(address)
    return parts.hostname or "", parts.port or 0


def _is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address or a name."""
    try:
        found = [str(each[4][0]) for each in socket.getaddrinfo(host, None)]
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)


def _wrong(detail: str, help: str = "") -> InvalidInput:
    return InvalidInput([problem("SC0453", detail, help)])


class DaskWorkers:
    """The workers of the cluster with this scheduler.

    :param url: `dask://HOST:PORT` on this machine, or `tls://HOST:PORT`
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._client: Any = None
        self._tasks: dict[str, Any] = {}  # a worker's address → the future of its task
        self._events: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()

    def start(self) -> Sequence[Link]:
        """Start a task on each worker, and connect to it.

        :returns: a link for each worker; a worker that can't be used has a closed link, which tells why
        :raises InvalidInput: the cluster can't be used
        """
        own = tls.certificate()
        address = _scheduler(self.url)
        try:
            self._client = _client(address)
            workers = self._workers(address)
            answers = self._answers(workers, own)
            with ThreadPoolExecutor(min(32, len(workers))) as pool:
                reached = list(pool.map(lambda worker: _reach(worker, answers[worker], own), workers))
        except BaseException:
            self.close()
            raise
        return [_link(worker, each) for worker, each in zip(workers, reached, strict=True)]

    def close(self) -> None:
        """Leave the cluster. The workers' tasks end when their links are closed. Repeated calls change nothing."""
        client, self._client = self._client, None
        if client is not None:
            self._tasks.clear()
            client.close(timeout=CLOSE)

    def _workers(self, scheduler: str) -> list[str]:
        """Return the addresses of the workers.

        :raises InvalidInput: there are none, or the controller can't reach them safely
        """
        workers = sorted(self._client.scheduler_info()["workers"])
        if not workers:
            raise _wrong(f"the scheduler {self.url} has no workers", "start workers: dask worker --help")
        scheme = scheduler.partition("://")[0]
        for worker in workers:
            if not worker.startswith(f"{scheme}://") or (scheme == "tcp" and not _is_loopback(_address(worker)[0])):
                raise _wrong(f"the worker {worker} is on another machine, and the cluster has no TLS", USE_TLS)
        return workers

    def _answers(self, workers: Sequence[str], own: tls.Certificate) -> dict[str, Mapping[str, Any]]:
        """Start the task on each worker; return what each announces, or an `error`."""
        run = secrets.token_hex(16)
        self._client.subscribe_topic(TOPIC, lambda event: self._events.put(event[1]))
        request = json.dumps({"run": run, "certificate": own.public}).encode()
        for worker in workers:
            options = {"workers": [worker], "allow_other_workers": False, "retries": 0, "pure": False}
            # Both functions are Python's, so a scheduler or worker without statecfg can load the tasks: a worker that
            # can't load a message leaves the cluster.
            loaded = self._client.submit(pkgutil.resolve_name, WORK, key=f"statecfg-load-{run}-{worker}", **options)
            call = operator.methodcaller("__call__", request)
            self._tasks[worker] = self._client.submit(call, loaded, key=f"statecfg-{run}-{worker}", **options)
        answers: dict[str, Mapping[str, Any]] = {}
        deadline = time.monotonic() + START
        while len(answers) < len(workers) and time.monotonic() < deadline:
            try:
                event = self._events.get(timeout=0.1)
            except queue.Empty:
                # A task that has ended without an announcement has not found the function.
                for worker, task in self._tasks.items():
                    if task.done():
                        answers.setdefault(worker, {"error": f"it can't run statecfg: {SAME}"})
                continue
            if event.get("run") == run and event.get("worker") in self._tasks:
                answers[event["worker"]] = event
        busy = {"error": f"it has not started its task within {START:g} s: other tasks occupy it"}
        return {worker: answers.get(worker, busy) for worker in workers}


def _scheduler(url: str) -> str:
    """Return the scheduler's address, as Dask writes it.

    :raises InvalidInput: the URL is wrong, or names another machine without TLS
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        port = None
    if port is None or not parts.hostname or parts.scheme not in ("dask", "tls") or parts.path or parts.username:
        raise _wrong(f"{url} is not the address of a Dask scheduler", "write dask://127.0.0.1:PORT or tls://HOST:PORT")
    if parts.scheme == "dask" and not _is_loopback(parts.hostname):
        raise _wrong(f"{parts.hostname} is not this machine, and dask:// does not encrypt", USE_TLS)
    return f"{'tcp' if parts.scheme == 'dask' else 'tls'}://{parts.netloc}"


def _client(scheduler: str) -> Any:
    """Connect to the scheduler.

    :raises InvalidInput: Dask is missing or lacks certificates, or the scheduler does not answer
    """
    try:
        from distributed import Client, Security
    except ModuleNotFoundError as missing:
        raise _wrong(f"Dask is not installed ({missing.name} is missing)", INSTALL) from None
    for name in LOGGERS:  # statecfg tells what the user needs; Dask's lines would destroy the progress view
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        # Dask would repeat a refused connection until the timeout.
        socket.create_connection(_address(scheduler), CONNECT).close()
        security = Security(**({"require_encryption": True} if scheduler.startswith("tls:") else {}))
        if security.require_encryption and not (security.tls_ca_file and security.tls_client_cert):
            raise _wrong("Dask's configuration names no certificates for tls://", CERTIFICATES)
        return Client(scheduler, security=security, timeout=CONNECT, set_as_default=False)
    except (OSError, RuntimeError, ValueError) as error:
        name = scheduler.replace("tcp:", "dask:")
        raise _wrong(f"the scheduler {name} can't be used: {error}", "check its address, its log and TLS") from None


def _reach(worker: str, answer: Mapping[str, Any], own: tls.Certificate) -> socket.socket | str:
    """Return the connection to a worker, or why there is none."""
    if "error" in answer:
        return str(answer["error"])
    try:
        return tls.connect((_address(worker)[0], int(answer["port"])), own, str(answer["certificate"]), CONNECT)
    except (OSError, KeyError, ValueError) as error:
        return f"no connection to its port {answer.get('port')}: {error}"


def _link(worker: str, reached: socket.socket | str) -> Link:
    if isinstance(reached, socket.socket):
        return Link(worker, reached, lambda: "")
    near, far = socket.socketpair()
    far.close()
    return Link(worker, near, lambda: reached)
