"""Platform of an executable, read from its own headers: operating system, processor, C library and libraries.

Nothing is executed, so a package for one platform can be made on another.
"""

import dataclasses
import pathlib
import re
import struct

# Libraries that every Linux distribution of the manylinux policy has. A binary that needs another one is refused.
LINUX_LIBRARIES = re.compile(r"(libc|libm|libgcc_s|libdl|libpthread|librt|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+")


class UnsupportedBinary(Exception):
    """A file that is no executable for a platform with packages."""


@dataclasses.dataclass(frozen=True)
class Platform:
    """Operating system (`linux`, `macos`), processor (`x64`, `arm64`) and the oldest version that runs it.

    The version is that of glibc on Linux and of the system on macOS.
    """

    system: str
    processor: str
    version: tuple[int, int] = (0, 0)

    @property
    def npm(self):
        """Name in npm's terms: `process.platform` and `process.arch`."""
        return {"linux": "linux", "macos": "darwin"}[self.system] + "-" + self.processor

    @property
    def wheel(self):
        """Platform tag of a wheel."""
        major, minor = self.version
        if self.system == "linux":
            return f"manylinux_{major}_{minor}_" + {"x64": "x86_64", "arm64": "aarch64"}[self.processor]
        # Since macOS 11 only the major version counts.
        minor = 0 if major >= 11 else minor
        return f"macosx_{major}_{minor}_" + {"x64": "x86_64", "arm64": "arm64"}[self.processor]

    @property
    def debian(self):
        """Debian architecture."""
        return {"x64": "amd64", "arm64": "arm64"}[self.processor]


def read_platform(path):
    """Returns the platform of the executable at `path`."""
    data = pathlib.Path(path).read_bytes()
    try:
        if data.startswith(b"\x7fELF"):
            return read_elf(data)
        if data.startswith(b"\xcf\xfa\xed\xfe"):
            return read_mach_o(data)
    except (struct.error, IndexError, ValueError) as error:
        raise UnsupportedBinary(f"`{path}` is damaged: {error}") from error
    except UnsupportedBinary as error:
        raise UnsupportedBinary(f"`{path}` {error}") from error
    raise UnsupportedBinary(f"`{path}` is no executable of Linux or macOS")


def processor(table, number):
    if number not in table:
        raise UnsupportedBinary(f"is for the processor {number:#x}; packages exist for x64 and arm64")
    return table[number]


def read_elf(data):
    if data[4] != 2 or data[5] != 1:
        raise UnsupportedBinary("is no 64-bit little-endian executable")
    (machine,) = struct.unpack_from("<H", data, 18)
    (sections_at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + size * index) for index in range(count)]

    def contents(section):
        return data[section[4] : section[4] + section[5]]

    def string(table, offset):
        return table[offset : table.index(b"\0", offset)].decode()

    libraries, glibc = [], []
    for section in sections:
        kind, link = section[1], section[6]
        if kind == 6:  # SHT_DYNAMIC
            strings, entries = contents(sections[link]), contents(section)
            entries = struct.iter_unpack("<qQ", entries)
            libraries += [string(strings, value) for tag, value in entries if tag == 1]  # DT_NEEDED
        elif kind == 0x6FFFFFFE:  # SHT_GNU_verneed
            strings, needs = contents(sections[link]), contents(section)
            versions = version_needs(needs, section[7])
            glibc += re.findall(r"^GLIBC_(\d+)\.(\d+)", "\n".join(string(strings, at) for at in versions), re.MULTILINE)
    if not glibc:
        raise UnsupportedBinary("is not linked with glibc")
    others = sorted(library for library in libraries if not LINUX_LIBRARIES.fullmatch(library))
    if others:
        raise UnsupportedBinary(f"needs {', '.join(others)}: link only libraries that every distribution has")
    newest = max((int(major), int(minor)) for major, minor in glibc)
    return Platform("linux", processor({62: "x64", 183: "arm64"}, machine), newest)


def version_needs(data, count):
    """Yields the offsets of the names of all needed symbol versions."""
    at = 0
    for _ in range(count):
        _, auxiliaries, _, first, following = struct.unpack_from("<HHIII", data, at)
        auxiliary = at + first
        for _ in range(auxiliaries):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, auxiliary)
            yield name
            auxiliary += step
        at += following


def read_mach_o(data):
    kind, _, _, count = struct.unpack_from("<IIII", data, 4)
    at, version = 32, None
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0x32:  # LC_BUILD_VERSION
            (version,) = struct.unpack_from("<I", data, at + 12)
        elif command == 0x24:  # LC_VERSION_MIN_MACOSX
            (version,) = struct.unpack_from("<I", data, at + 8)
        at += size
    if version is None:
        raise UnsupportedBinary("names no oldest version of macOS")
    return Platform("macos", processor({0x01000007: "x64", 0x0100000C: "arm64"}, kind), (version >> 16, version >> 8 & 0xFF))
