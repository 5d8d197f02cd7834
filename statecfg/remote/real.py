"""The real machine: this host, read and changed for good."""

from __future__ import annotations

import errno
import hashlib
import os
import stat as st

from statecfg.remote import accounts, process
from statecfg.remote.guard import allowed
from statecfg.remote.model import Blob, error, ok
from statecfg.remote.nodetype import TABLES
from statecfg.remote.paths import normal, open_parent, sync_directory
from statecfg.remote.world import ANYTHING, Machine, Probe, Stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

    from statecfg.remote.model import Result
    from statecfg.remote.world import Effect

TEMPORARY = ".statecfg-"
_KINDS = {st.S_IFREG: "file", st.S_IFDIR: "directory", st.S_IFLNK: "symlink"}


class Facets:
    """The tables of this host, each loaded when first asked for and kept until something changes it."""

    def __init__(self) -> None:
        self.loaded: Dict[str, Dict[str, Dict[str, Any]]] = {}

    def forget(self, effect: Effect) -> None:
        """Drop what an effect touches, so that it is read anew."""
        unknown = effect.get("unknown", ())
        for name in list(self.loaded):
            if name in effect or name in unknown or "*" in unknown:
                del self.loaded[name]


class RealMachine(Machine):
    """This host.

    :param facets: shared by the machines of one run
    :param listen: gets the output of the programs that ops run, as it comes
    """

    def __init__(self, facets: Optional[Facets] = None, listen: Optional[Callable[[bytes], None]] = None) -> None:
        self.facets = facets if facets is not None else Facets()
        self.listen = listen
        self.triggered_by = ()
        self.acted = False

    # Reading

    def stat(self, path: str) -> Optional[Stat]:
        try:
            parent, name, _ = open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return _stat(os.lstat(name, dir_fd=parent), parent, name)
        except FileNotFoundError:
            return None
        finally:
            os.close(parent)

    def settled(self, path: str) -> bool:
        return True

    apparent = stat

    def canonical(self, path: str) -> str:
        """Return the path with the links of its directories followed; as it is where a directory is missing."""
        try:
            parent, name, place = open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return normal(path)
        os.close(parent)
        return place.rstrip("/") + "/" + name if name != "." else place

    def open(self, path: str) -> int:
        """Open a file for reading, without hanging on a pipe or device. Raises OSError."""
        parent, name, _ = open_parent(path, follow=True)
        try:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        finally:
            os.close(parent)
        if not st.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise OSError(errno.EINVAL, "is not a regular file", path)
        return opened

    def read(self, path: str) -> bytes:
        with os.fdopen(self.open(path), "rb") as stream:
            return stream.read()

    def digest(self, path: str) -> str:
        digest = hashlib.sha256()
        with os.fdopen(self.open(path), "rb", 0) as stream:
            piece = stream.read(1 << 18)
            while piece:
                digest.update(piece)
                piece = stream.read(1 << 18)
        return digest.hexdigest()

    def listdir(self, path: str) -> List[str]:
        parent, name, _ = open_parent(path, follow=True)
        try:
            opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        finally:
            os.close(parent)
        try:
            return sorted(name for name in os.listdir(opened) if not name.startswith(TEMPORARY))
        finally:
            os.close(opened)

    def writable(self, path: str) -> bool:
        """Tell whether this process may make and remove names in the directory `path`."""
        return os.access(path, os.W_OK | os.X_OK)

    def entry(self, table: str, key: str) -> Optional[Dict[str, Any]]:
        if table == "users":
            return accounts.user_fields(key)
        if table == "groups":
            return accounts.group_fields(key)
        return self.table(table).get(key)

    def table(self, name: str) -> Dict[str, Dict[str, Any]]:
        if name == "users":
            import pwd

            return {entry.pw_name: accounts.user_fields(entry.pw_name) or {} for entry in pwd.getpwall()}
        if name == "groups":
            import grp

            return {entry.gr_name: accounts.group_fields(entry.gr_name) or {} for entry in grp.getgrall()}
        if name not in self.facets.loaded:
            if name not in TABLES:
                raise LookupError("no facet is called %s; there are: users, groups, %s" % (name, ", ".join(sorted(TABLES))))
            self.facets.loaded[name] = TABLES[name].load(self)
        return self.facets.loaded[name]

    def probe(self, argv: Sequence[str], timeout: float = 60.0, **options: Any) -> Probe:
        with allowed():
            outcome = process.run(argv, timeout, apart=True, **options)
        if outcome.reason and outcome.status >= 0 and outcome.status < 126:
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
        blob = Blob.of(content)
        try:
            parent, name, place = open_parent(path)
        except OSError as problem:
            return _failed("write", path, problem)
        temporary = ""
        try:
            old = _lstat(name, parent)
            if old is not None and not st.S_ISREG(old.st_mode) and not st.S_ISLNK(old.st_mode):
                return error("cannot write %s: a %s stands there" % (path, _kind(old)))
            if old is not None and st.S_ISREG(old.st_mode):
                if old.st_size == blob.size and self.digest(place.rstrip("/") + "/" + name) == blob.sha256:
                    return self._permit(parent, name, path, mode, owner, group)
            else:
                old = None
            temporary = TEMPORARY + os.urandom(9).hex()
            opened = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent
            )
            try:
                for piece in blob.chunks():
                    view = memoryview(piece)
                    while view:
                        view = view[os.write(opened, view) :]
                _dress(opened, old, mode, owner, group, parent, name)
                os.fsync(opened)
            finally:
                os.close(opened)
            if validate is not None:
                trial = place.rstrip("/") + "/" + temporary
                argv = [trial if word == "{}" else word.replace("{}", trial) for word in validate]
                outcome = process.run(argv, 60.0, listen=self.listen)
                if outcome.status != 0 or outcome.reason:
                    said = outcome.output.decode("utf-8", "replace").replace(trial, path).strip()
                    return error("the new content is refused by %s: %s" % (validate[0], said or outcome.reason), said)
            if backup and old is not None:
                _keep(parent, name, name + backup)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            temporary = ""
            sync_directory(parent)
            return ok()
        except (OSError, LookupError) as problem:
            return _failed("write", path, problem)
        finally:
            if temporary:
                _unlink(temporary, parent)
            os.close(parent)

    def mkdir(
        self,
        path: str,
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        parents: bool = False,
    ) -> Result:
        if parents:
            above = os.path.dirname(normal(path))
            if above != "/" and self.stat(above) is None:
                made = self.mkdir(above, parents=True)
                if made["status"] != "ok":
                    return made
        try:
            parent, name, _ = open_parent(path)
        except OSError as problem:
            return _failed("make directory", path, problem)
        try:
            try:
                # No wider than it will be, from the first moment on.
                os.mkdir(name, 0o700, dir_fd=parent)
                mode = 0o755 if mode is None else mode
                sync_directory(parent)
            except FileExistsError:
                found = _lstat(name, parent)
                if found is not None and not st.S_ISDIR(found.st_mode):
                    return error("cannot make directory %s: a %s stands there" % (path, _kind(found)))
            return self._permit(parent, name, path, mode, owner, group)
        except (OSError, LookupError) as problem:
            return _failed("make directory", path, problem)
        finally:
            os.close(parent)

    def symlink(self, path: str, target: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        try:
            parent, name, _ = open_parent(path)
        except OSError as problem:
            return _failed("link", path, problem)
        temporary = TEMPORARY + os.urandom(9).hex()
        try:
            found = _lstat(name, parent)
            if found is not None and st.S_ISDIR(found.st_mode):
                return error("cannot link %s: a directory stands there" % path)
            os.symlink(target, temporary, dir_fd=parent)
            if owner is not None or group is not None:
                _chown_link(temporary, parent, owner, group)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            temporary = ""
            sync_directory(parent)
            return ok()
        except (OSError, LookupError) as problem:
            return _failed("link", path, problem)
        finally:
            if temporary:
                _unlink(temporary, parent)
            os.close(parent)

    def chmod(self, path: str, mode: int) -> Result:
        return self._at("set the mode of", path, mode, None, None)

    def chown(self, path: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        return self._at("set the owner of", path, None, owner, group)

    def _at(self, what: str, path: str, mode: Optional[int], owner: Optional[str], group: Optional[str]) -> Result:
        try:
            parent, name, _ = open_parent(path)
        except OSError as problem:
            return _failed(what, path, problem)
        try:
            return self._permit(parent, name, path, mode, owner, group)
        except (OSError, LookupError) as problem:
            return _failed(what, path, problem)
        finally:
            os.close(parent)

    def _permit(
        self, parent: int, name: str, path: str, mode: Optional[int], owner: Optional[str], group: Optional[str]
    ) -> Result:
        """Give what stands at `name` the mode, owner and group that are given. Raises OSError, LookupError."""
        if mode is None and owner is None and group is None:
            return ok()
        found = os.lstat(name, dir_fd=parent)
        if st.S_ISLNK(found.st_mode):
            if mode is not None:
                return error("cannot set the mode of %s: it is a link" % path)
            _chown_link(name, parent, owner, group)
            return ok()
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        try:
            info = os.fstat(opened)
            if st.S_ISREG(info.st_mode) and info.st_nlink > 1 and info.st_uid not in (0, os.geteuid()):
                return error("cannot change %s: it has other names (hard links) that its owner made" % path)
            _own(opened, info, owner, group)
            if mode is not None:
                os.fchmod(opened, mode)
            os.fsync(opened)
        finally:
            os.close(opened)
        return ok()

    def remove(self, path: str, recursive: bool = False) -> Result:
        try:
            parent, name, _ = open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return ok()
        except OSError as problem:
            return _failed("remove", path, problem)
        try:
            _remove(name, parent, recursive)
            sync_directory(parent)
            return ok()
        except FileNotFoundError:
            return ok()
        except OSError as problem:
            return _failed("remove", path, problem)
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
    ) -> Result:
        outcome = process.run(
            argv, timeout, cwd, env, user, input, listen=self.listen, interruptible=interruptible
        )
        self.facets.forget(effect)
        log = outcome.output.decode("utf-8", "replace")
        if outcome.reason:
            return error(outcome.reason, log)
        if outcome.status in codes:
            return ok(log)
        how = "exit status %d" % outcome.status if outcome.status >= 0 else "ended by signal %d" % -outcome.status
        last = log.strip().rsplit("\n", 1)[-1][-300:]
        return error("%s: %s%s" % (argv[0], how, ": " + last if last else ""), log)


def _stat(info: os.stat_result, parent: int, name: str) -> Stat:
    kind = _kind(info)
    return Stat(
        kind,
        st.S_IMODE(info.st_mode),
        accounts.user_name(info.st_uid),
        accounts.group_name(info.st_gid),
        info.st_size,
        os.readlink(name, dir_fd=parent) if kind == "symlink" else "",
        (info.st_dev, info.st_ino, info.st_mtime_ns),
    )


def _kind(info: os.stat_result) -> str:
    return _KINDS.get(st.S_IFMT(info.st_mode), "other")


def _lstat(name: str, parent: int) -> Optional[os.stat_result]:
    try:
        return os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return None


def _dress(
    opened: int,
    old: Optional[os.stat_result],
    mode: Optional[int],
    owner: Optional[str],
    group: Optional[str],
    parent: int,
    name: str,
) -> None:
    """Give a new file the owner, attributes and mode it is to have: as told, else as the old one had them."""
    info = os.fstat(opened)
    uid = accounts.user_id(owner) if owner is not None else old.st_uid if old is not None else info.st_uid
    gid = accounts.group_id(group) if group is not None else old.st_gid if old is not None else info.st_gid
    if (uid, gid) != (info.st_uid, info.st_gid):
        os.fchown(opened, uid, gid)
    if old is not None:
        _copy_attributes(parent, name, opened)
    os.fchmod(opened, mode if mode is not None else st.S_IMODE(old.st_mode) if old is not None else 0o644)


def _copy_attributes(parent: int, name: str, opened: int) -> None:
    """Carry access lists and labels over from the old file; a file system without them has none to carry."""
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        for attribute in os.listxattr(source):
            os.setxattr(opened, attribute, os.getxattr(source, attribute))
    except OSError as problem:
        if problem.errno not in (errno.ENOTSUP, errno.ENODATA):
            raise
    finally:
        os.close(source)


def _own(opened: int, info: os.stat_result, owner: Optional[str], group: Optional[str]) -> None:
    uid = accounts.user_id(owner) if owner is not None else info.st_uid
    gid = accounts.group_id(group) if group is not None else info.st_gid
    if (uid, gid) != (info.st_uid, info.st_gid):
        os.fchown(opened, uid, gid)


def _chown_link(name: str, parent: int, owner: Optional[str], group: Optional[str]) -> None:
    uid = accounts.user_id(owner) if owner is not None else -1
    gid = accounts.group_id(group) if group is not None else -1
    os.chown(name, uid, gid, dir_fd=parent, follow_symlinks=False)


def _keep(parent: int, name: str, kept: str) -> None:
    """Keep the old file under another name: the same inode, so nothing is copied and nothing can be half there."""
    temporary = TEMPORARY + os.urandom(9).hex()
    os.link(name, temporary, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    os.rename(temporary, kept, src_dir_fd=parent, dst_dir_fd=parent)


def _unlink(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:  # the failure that left it there is the one to report
        return


def _remove(name: str, parent: int, recursive: bool) -> None:
    found = os.lstat(name, dir_fd=parent)
    if not st.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=parent)
        return
    if recursive:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if os.fstat(opened).st_dev != os.fstat(parent).st_dev:
                raise OSError(errno.EBUSY, "another file system is mounted there", name)
            for inside in os.listdir(opened):
                _remove(inside, opened, True)
        finally:
            os.close(opened)
    os.rmdir(name, dir_fd=parent)


def _failed(what: str, path: str, problem: Exception) -> Result:
    """Return the error result of a failed call, with what the system said and a cure where one is known."""
    if not isinstance(problem, OSError):
        return error("cannot %s %s: %s" % (what, path, problem))
    where = " (%s)" % problem.filename if problem.filename and str(problem.filename) != path and "/" in str(problem.filename) else ""
    cure = _CURES.get(problem.errno or 0, "")
    return error("cannot %s %s: %s%s%s" % (what, path, problem.strerror, where, "; " + cure if cure else ""))


_CURES = {
    errno.EPERM: "is the file immutable (lsattr), or is root needed (-b)?",
    errno.EACCES: "is root needed (-b)?",
    errno.EROFS: "the file system is mounted read-only",
    errno.EBUSY: "something is mounted there",
}
