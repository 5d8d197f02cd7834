"""The real machine: this host."""

from __future__ import annotations

import errno
import os
import stat as st
import time
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from statecfg.remote.graph.above import above
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.names import ActionStatus
from statecfg.remote.graph.nodetype import FACETS
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import accounts, files, mount_points, paths, process, validation
from statecfg.remote.machine.batch import Batch
from statecfg.remote.machine.digests import Digests
from statecfg.remote.machine.files import failed
from statecfg.remote.machine.guard import allowed
from statecfg.remote.machine.paths import normal, open_directory, open_file, open_parent, read_link, sync_directory
from statecfg.remote.machine.world import ANYTHING, Effect, Entries, Fields, Inputs, Machine, Probe, Stat, called

PROBED = 16 << 20  # maximum bytes of output of a read-only program


class Facets:
    """What the machines of one run share: the facets, each loaded at its first use, and the start time of the run.

    :param digests: the recorded digests of files
    """

    def __init__(self, digests: Optional[Digests] = None) -> None:
        self.digests = digests
        self.loaded: Dict[str, Entries] = {}
        self.changed = 0
        self.began = time.time()
        self.swept: Set[Tuple[int, int]] = set()

    def facet(self, name: str, host: Machine) -> Entries:
        """Return a facet.

        :raises LookupError: if there is no facet with this name
        """
        entries = self.loaded.get(name)
        if entries is None:
            if name not in FACETS:
                raise LookupError(f"unknown facet {name}; valid: {sorted([*FACETS, 'users', 'groups'])}")
            before = self.changed
            entries = FACETS[name].load(host)
            if before == self.changed:  # otherwise it may be outdated already
                self.loaded[name] = entries
        return entries

    def forget(self, effect: Effect) -> None:
        """Drop the facets that an effect changes, so that they are loaded again."""
        self.changed += 1
        unknown = effect.get("unknown", ())
        for name in list(self.loaded):
            if name in effect or name in unknown or "*" in unknown or FACETS[name].volatile:
                self.loaded.pop(name, None)


class RealMachine(Machine):
    """This host.

    :param facets: shared by the machines of one run
    :param listen: receives the output of ops' programs when it arrives
    :param batch: receives the files that are written; they have their names after its `finish`
    """

    def __init__(
        self,
        facets: Optional[Facets] = None,
        listen: Optional[Callable[[bytes], None]] = None,
        batch: Optional[Batch] = None,
    ) -> None:
        self.facets = facets if facets is not None else Facets()
        self.listen, self.batch = listen, batch
        self.open_parent = open_parent if batch is None else batch.open_parent
        self.memo: Dict[str, Any] = {}
        # Calls of writing methods (an op without any bypasses the machine), and those that failed without an effect.
        self.calls = self.kept = 0

    # Reading

    def stat(self, path: str) -> Optional[Stat]:
        try:
            parent, name, _ = self.open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return files.stat_of(os.lstat(name, dir_fd=parent), parent, name)
        except FileNotFoundError:
            return None
        finally:
            os.close(parent)

    apparent = stat

    def is_known(self, path: str) -> bool:
        return True

    def canonical(self, path: str) -> str:
        """Return the path with the links of its directories followed, or unchanged if a directory is missing."""
        try:
            parent, name, directory = open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return normal(path)
        os.close(parent)
        return directory.rstrip("/") + "/" + name if name != "." else directory

    target = staticmethod(read_link)
    mount_points = staticmethod(mount_points.points)

    def read(self, path: str) -> bytes:
        with os.fdopen(open_file(path), "rb") as stream:
            return stream.read()

    def open(self, path: str) -> IO[bytes]:
        return os.fdopen(open_file(path), "rb")

    def digest(self, path: str) -> str:
        return paths.digest_of(path) if self.facets.digests is None else self.facets.digests.of(path)

    def listdir(self, path: str) -> List[str]:
        opened = open_directory(path)
        try:
            return sorted(name for name in os.listdir(opened) if not files.temporary(name))
        finally:
            os.close(opened)

    def writable(self, path: str) -> bool:
        """Tell whether this process may create and remove names in the directory `path`."""
        return os.access(path, os.W_OK | os.X_OK, effective_ids=True)

    def member(self, group: str) -> bool:
        """Tell whether this process is in a group, so that it may give files to the group."""
        return accounts.group_id(group) in (os.getegid(), *os.getgroups())

    def entry(self, facet: str, key: str) -> Optional[Fields]:
        look_up = accounts.FIELDS.get(facet)
        return look_up(key) if look_up is not None else self.facet(facet).get(key)

    def facet(self, name: str) -> Entries:
        if name == "users":
            import pwd

            return {entry.pw_name: accounts.user_fields(entry.pw_name) or {} for entry in pwd.getpwall()}
        if name == "groups":
            import grp

            return {entry.gr_name: accounts.group_fields(entry.gr_name) or {} for entry in grp.getgrall()}
        return self.facets.facet(name, self)

    def probe(
        self, argv: Sequence[str], timeout: float = 60.0, inputs: Optional[Inputs] = None, **options: Any
    ) -> Probe:
        with allowed():
            outcome = process.run(argv, timeout, apart=True, kept=PROBED, **options)
        if outcome.cut:
            raise OSError(errno.EFBIG, f"{argv[0]} prints more than {PROBED} bytes")
        if outcome.reason and 0 <= outcome.status < 126:
            return Probe(-1, outcome.output, outcome.reason.encode())
        return Probe(outcome.status, outcome.output, outcome.errors or outcome.reason.encode())

    # Writing

    def write(
        self,
        path: str,
        content: Union[str, bytes, Blob],
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        backup: Optional[str] = None,
        validate: Optional[Sequence[str]] = None,
    ) -> Result:
        # Other users may be able to change the directory, so this holds it open, unlike `durable.replace`.
        self.calls += 1
        blob = Blob.of(content)
        try:
            parent, name, directory = self.open_parent(path)
        except OSError as problem:
            self.kept += 1
            return failed("write", path, problem)
        temporary, source, intact = "", -1, True
        try:
            info = files.lstat(name, parent)
            if info is not None and not st.S_ISREG(info.st_mode) and not st.S_ISLNK(info.st_mode):
                return error(f"cannot write {path}: {called(files.file_type_of(info))} is in the way")
            old_info = info if info is not None and st.S_ISREG(info.st_mode) else None
            proven = True
            if old_info is not None and self._holds(directory.rstrip("/") + "/" + name, old_info, blob):
                if not files.changes_hands(old_info, owner):
                    intact = False
                    return files.permit(parent, name, path, mode, owner, group) or ok()
                if blob.data is None and blob.path is None:
                    source = open_file(directory.rstrip("/") + "/" + name)
                    blob, proven = Blob(blob.sha256, blob.size, path=f"/proc/self/fd/{source}"), False
            self._sweep(parent)
            temporary = files.temporary_name()
            if old_info is None and mode is None and blob.hides():
                mode = 0o600
            dress = (old_info, mode, owner, group, parent, name)
            trial = (temporary, parent, blob, lambda opened: files.dress(opened, *dress), proven)
            if self.batch is not None and validate is None and not backup and name != ".":
                result, temporary = self.batch.add(path, temporary, files.begin(*trial), info), ""
                return result
            files.fill(*trial)
            if validate is not None:
                refused = validation.validate(validate, directory, temporary, path, self.listen)
                if refused is not None:
                    return refused
            if not files.same(info, files.lstat(name, parent)):
                return error(files.OVERTAKEN % path)
            intact = False
            if backup and old_info is not None:
                mount_points.keep(parent, name, name + backup)
            mount_points.install(temporary, name, parent)
            temporary = ""
            sync_directory(parent)
            return ok()
        except (OSError, LookupError) as problem:
            return failed("write", path, problem)
        finally:
            self.kept += intact
            if temporary:
                files.unlink(temporary, parent)
            if source >= 0:
                os.close(source)
            os.close(parent)

    def _holds(self, path: str, info: os.stat_result, blob: Blob) -> bool:
        """Tell whether the old file already has this content. An unreadable file counts as different."""
        try:
            return info.st_size == blob.size and self.digest(path) == blob.sha256
        except PermissionError:
            return False

    def _sweep(self, parent: int) -> None:
        """Remove what interrupted runs left in this directory, once per run."""
        info = os.fstat(parent)
        if (info.st_dev, info.st_ino) not in self.facets.swept:
            self.facets.swept.add((info.st_dev, info.st_ino))
            files.sweep(parent, self.facets.began)

    def mkdir(
        self,
        path: str,
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        parents: bool = False,
    ) -> Result:
        self.calls += 1
        try:
            files.ids(owner, group)  # find unknown names before creating anything
            above = os.path.dirname(normal(path))
            if parents and above != "/" and self.stat(above) is None:
                result = self.mkdir(above, parents=True)
                if result["status"] != ActionStatus.OK:
                    return result
            parent, name, _ = open_parent(path)
        except (OSError, LookupError) as problem:
            return failed("make directory", path, problem)
        made_here, has_mode = False, mode is not None
        try:
            try:
                # Never grant more than the final mode, not even for a moment.
                os.mkdir(name, 0o700, dir_fd=parent)
                made_here = True
                mode = 0o755 if mode is None else mode
            except FileExistsError:
                info = files.lstat(name, parent)
                if info is not None and not st.S_ISDIR(info.st_mode):
                    return error(f"cannot make directory {path}: {called(files.file_type_of(info))} is in the way")
            refused = files.permit(parent, name, path, mode, owner, group, made_here and not has_mode)
            sync_directory(parent)
            return refused or ok()
        except OSError as problem:
            if made_here:
                os.rmdir(name, dir_fd=parent)
            return failed("make directory", path, problem)
        finally:
            os.close(parent)

    def symlink(self, path: str, target: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        self.calls += 1
        try:
            parent, name, _ = open_parent(path)
        except OSError as problem:
            return failed("link", path, problem)
        temporary = ""
        try:
            info = files.lstat(name, parent)
            if info is not None and st.S_ISDIR(info.st_mode):
                return error(f"cannot link {path}: a directory is in the way")
            uid, gid = files.ids(owner, group)
            self._sweep(parent)
            temporary = files.temporary_name()
            os.symlink(target, temporary, dir_fd=parent)
            if (uid, gid) != (-1, -1):
                os.chown(temporary, uid, gid, dir_fd=parent, follow_symlinks=False)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            temporary = ""
            sync_directory(parent)
            return ok()
        except (OSError, LookupError) as problem:
            return failed("link", path, problem)
        finally:
            if temporary:
                files.unlink(temporary, parent)
            os.close(parent)

    def chmod(self, path: str, mode: int) -> Result:
        return self._change("set the mode of", path, mode, None, None)

    def chown(self, path: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        return self._change("set the owner of", path, None, owner, group)

    def _change(self, what: str, path: str, mode: Optional[int], owner: Optional[str], group: Optional[str]) -> Result:
        self.calls += 1
        try:
            parent, name, _ = open_parent(path)
        except OSError as problem:
            return failed(what, path, problem)
        try:
            return files.permit(parent, name, path, mode, owner, group) or ok()
        except (OSError, LookupError) as problem:
            return failed(what, path, problem)
        finally:
            os.close(parent)

    def remove(self, path: str, recursive: bool = False) -> Result:
        self.calls += 1
        if normal(path) == "/":
            return error("cannot remove /: it contains the whole system")
        try:
            parent, name, _ = open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return ok()
        except OSError as problem:
            return failed("remove", path, problem)
        try:
            mount_points.remove(name, parent, recursive)
            sync_directory(parent)
            return ok()
        except FileNotFoundError:
            return ok()
        except OSError as problem:
            return failed("remove", path, problem)
        finally:
            os.close(parent)

    def run(
        self,
        argv: Sequence[str],
        effect: Effect = ANYTHING,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        input: Optional[bytes] = None,
        timeout: float = 600.0,
        codes: Tuple[int, ...] = (0,),
        interruptible: bool = True,
        first: Optional[Callable[[], Optional[Result]]] = None,
        reads: bool = False,
    ) -> Result:
        self.calls += 1
        refused = first() if first is not None else None
        if refused is not None:
            return refused
        outcome = process.run(argv, timeout, cwd, env, user, input, listen=self.listen, interruptible=interruptible)
        self.facets.forget(effect)
        log = outcome.output.decode("utf-8", "replace")
        if outcome.reason:
            return error(outcome.reason, log)
        if outcome.status in codes:
            return ok(log)
        how = f"exit status {outcome.status}" if outcome.status >= 0 else "ended by signal %d" % -outcome.status
        last = log.strip().rsplit("\n", 1)[-1][-300:]
        return error(f"{argv[0]}: {how}{': ' + last if last else ''}", log)

    def outside(self, function: Callable[[], Any]) -> Any:
        from statecfg.remote.graph.acting import acting_on

        self.calls += 1
        try:
            return acting_on(self, function)
        finally:
            self.facets.forget(ANYTHING)


above.this_machine = RealMachine
