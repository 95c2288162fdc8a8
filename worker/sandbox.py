"""The least rights a child needs: limits of the kernel, Landlock for files, seccomp for the rest.

confine() is called inside a child before it touches bytes from a stranger. What the kernel does
not offer is left out; describe() says what it offers. Nothing here needs privileges.
"""

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_SECCOMP_GET_ACTION_AVAIL = 2
_SECCOMP_RET_ALLOW = 0x7FFF0000
_SECCOMP_RET_ERRNO_EPERM = 0x00050001

# The three calls have the same numbers on every architecture (linux/landlock.h).
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION = 1
_LANDLOCK_PATH_BENEATH = 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_WRITE_FILE = 1 << 1
_REMOVE_FILE = 1 << 5
_MAKE_REG = 1 << 8
_TRUNCATE = 1 << 14
_ACCESS_BITS = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many file rights each version of Landlock knows, from the version that added some."""
_NETWORK_VERSION = 4
_SCOPE_VERSION = 6


@dataclass(frozen=True)
class _Machine:
    """What a seccomp filter must know of an architecture (linux/audit.h, asm/unistd.h)."""

    audit_arch: int
    seccomp: int
    refused: tuple[int, ...]


_X86_64 = _Machine(
    0xC000003E,
    317,
    # socket, connect, bind, socketpair, execve, ptrace, unshare, process_vm_readv and _writev,
    # execveat, io_uring_setup (which opens sockets past any filter), pidfd_getfd
    (41, 42, 49, 53, 59, 101, 272, 310, 311, 322, 425, 438),
)
_AARCH64 = _Machine(
    0xC00000B7,
    277,
    (198, 203, 200, 199, 221, 117, 97, 270, 271, 281, 425, 438),
)
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}
_X32_BIT = 0x40000000


@dataclass(frozen=True)
class Confinement:
    """What this kernel lets us take away from a child: foreign files, the network."""

    files: bool
    network: bool


@dataclass(frozen=True)
class Limits:
    """What a child may use at most; beyond cpu_seconds the kernel ends it with SIGXCPU."""

    memory_bytes: int
    cpu_seconds: int
    file_bytes: int
    open_files: int = 64


def describe() -> Confinement:
    """What confine() can do on this machine."""
    version = _landlock_version()
    return Confinement(
        files=version >= 1, network=version >= _NETWORK_VERSION or _has_seccomp_filters()
    )


def confine(limits: Limits, read: Sequence[Path] = (), write: Sequence[Path] = ()) -> Confinement:
    """Leave this process the named files to read and folders to write in; gives what was done.

    Modules that are still to be imported need libraries() among read. Network, starting
    programs and looking into other processes are refused. A RuntimeError when the process has
    more than one thread, since the others would go on unconfined.
    """
    if sys.platform != "linux":
        _set_limits(limits)
        return Confinement(files=False, network=False)
    if len(list(Path("/proc/self/task").iterdir())) != 1:
        raise RuntimeError("a process is confined before it starts threads")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    version = _landlock_version()
    if version:
        _restrict_files(version, read, write)
    filtered = _refuse_calls()
    _set_limits(limits)
    return Confinement(files=version >= 1, network=filtered or version >= _NETWORK_VERSION)


def libraries() -> list[Path]:
    """Where Python, its packages and the system's shared libraries are read from."""
    system = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache")
    machine = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")
    found = {*sys.path, sys.prefix, sys.base_prefix, *system, *machine}
    return [Path(name) for name in sorted(found) if name and Path(name).exists()]


def _set_limits(limits: Limits) -> None:
    for kind, value in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        # The hard limit ends, a little later, a process that would ignore SIGXCPU.
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = value + 5 if kind == resource.RLIMIT_CPU else value
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(kind, (min(value, most), most))


def _landlock_version() -> int:
    """The kernel's Landlock version, 0 when it has none or it is switched off."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION))


def _restrict_files(version: int, read: Iterable[Path], write: Iterable[Path]) -> None:
    bits = max(count for since, count in _ACCESS_BITS.items() if since <= version)
    handled = (1 << bits) - 1
    attributes = struct.pack("=Q", handled)
    if version >= _NETWORK_VERSION:
        attributes += struct.pack("=Q", 0b11)  # TCP bind and connect
    if version >= _SCOPE_VERSION:
        attributes += struct.pack("=Q", 0b11)  # abstract sockets, signals to others
    ruleset = _checked(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path in read:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        for path in write:
            rights = _READ_FILE | _READ_DIR | _WRITE_FILE | _MAKE_REG | _REMOVE_FILE | _TRUNCATE
            _allow(ruleset, path, rights & handled)
        _checked(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    if not path.is_dir():
        rights &= _READ_FILE | _WRITE_FILE | _TRUNCATE
    beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, beneath)
        _checked(_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_PATH_BENEATH, rule, 0)
    finally:
        os.close(beneath)


def _machine() -> _Machine | None:
    """The architecture's numbers; None where they are unknown or Python itself is 32-bit."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    return _MACHINES.get(os.uname().machine)


def _has_seccomp_filters() -> bool:
    machine = _machine()
    if machine is None:
        return False
    action = struct.pack("=I", _SECCOMP_RET_ERRNO_EPERM & 0xFFFF0000)
    return _syscall(machine.seccomp, _SECCOMP_GET_ACTION_AVAIL, 0, action) == 0


class _Program(ctypes.Structure):
    """struct sock_fprog: the filter as the kernel takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _refuse_calls() -> bool:
    """Answer EPERM to the refused calls, and to any call of a foreign kind; True when set."""
    machine = _machine()
    if machine is None or not _has_seccomp_filters():
        return False
    code = _filter(machine)
    program = _Program(len(code) // 8, code)
    return _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program)) == 0


def _filter(machine: _Machine) -> bytes:
    """A classic BPF program over struct seccomp_data: call number at 0, architecture at 4."""
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    last = len(machine.refused) + 5
    # A jump counts from the line after it: from line n to the last one it is last - n - 1.
    lines = [
        (load, 0, 0, 4),
        (equal, 0, last - 2, machine.audit_arch),
        (load, 0, 0, 0),
        (at_least, last - 4, 0, _X32_BIT),
        *((equal, last - n - 1, 0, call) for n, call in enumerate(machine.refused, start=4)),
        (give, 0, 0, _SECCOMP_RET_ALLOW),
        (give, 0, 0, _SECCOMP_RET_ERRNO_EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _prctl(option: int, *values: int) -> int:
    arguments = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, *arguments))


def _syscall(number: int, *values: int | bytes | None) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    arguments = [ctypes.c_long(v) if isinstance(v, int) else v for v in values]
    return int(library.syscall(ctypes.c_long(number), *arguments))


def _checked(number: int, *values: int | bytes | None) -> int:
    result = _syscall(number, *values)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
